"""river's Exp3, pull and update, on K = 10 Bernoulli arms. Prints one line of JSON.

Its weights are not kept as logarithms and overflow eventually. Then a new policy continues, so that the measurement
lasts as long as those of the other libraries, and the round in which the first policy failed is reported.
"""

import json
import random
import sys
import time
from importlib.metadata import version

from river import bandit

K = 10
GAMMA = 0.3


def main(seconds: float) -> None:
    """Play for this many seconds."""
    chance = random.Random(1)
    means = [0.7 - 0.4 * arm / (K - 1) for arm in range(K)]
    arms = list(range(K))
    policy = bandit.Exp3(gamma=GAMMA, seed=2)
    rounds, age, policies, broke_at, reason = 0, 0, 1, None, None
    begin = time.perf_counter()
    spent = 0.0
    while spent < seconds:
        try:
            for _ in range(1000):
                arm = policy.pull(arms)
                policy.update(arm, 1.0 if chance.random() < means[arm] else 0.0)
                age += 1
                rounds += 1
        except (OverflowError, ValueError) as error:
            if broke_at is None:
                broke_at, reason = age + 1, f"{type(error).__name__}: {error}"
            policies += 1
            policy, age = bandit.Exp3(gamma=GAMMA, seed=1 + policies), 0
        spent = time.perf_counter() - begin
    found = {"rounds": rounds, "seconds": spent, "broke_at": broke_at, "reason": reason}
    versions = {name: version(name) for name in ("river", "numpy")}
    print(json.dumps({"measures": {"Exp3, pull and update": found}, "versions": versions}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
