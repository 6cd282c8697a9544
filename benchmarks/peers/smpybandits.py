"""SMPyBandits' Exp3 and Tsallis-INF, choice and getReward, on K = 10 Bernoulli arms.

Prints one line of JSON, after the output of the library itself. The library draws from NumPy's global
generator, which is not seeded, since only the time matters here.
"""

import json
import random
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from SMPyBandits.Policies.Exp3 import Exp3
from SMPyBandits.Policies.TsallisInf import TsallisInf

K = 10


def played(make: Callable[[int], Any], seconds: float) -> dict[str, Any]:
    """Play one policy for this many seconds."""
    chance = random.Random(1)
    means = [0.7 - 0.4 * arm / (K - 1) for arm in range(K)]
    policy = make(K)
    policy.startGame()
    rounds, spent = 0, 0.0
    begin = time.perf_counter()
    while spent < seconds:
        for _ in range(100):
            arm = policy.choice()
            policy.getReward(arm, 1.0 if chance.random() < means[arm] else 0.0)
        rounds += 100
        spent = time.perf_counter() - begin
    return {"rounds": rounds, "seconds": spent}


def main(seconds: float) -> None:
    """Measure both policies."""
    measures = {"Exp3": played(Exp3, seconds), "Tsallis-INF": played(TsallisInf, seconds)}
    versions = {name: version(name) for name in ("SMPyBandits", "numpy", "scipy")}
    print(json.dumps({"measures": measures, "versions": versions}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
