"""pymab's Exp3 on K = 10 Bernoulli arms: called round by round, and in pymab's own compiled experiment.

Prints one line of JSON.
"""

import json
import random
import sys
import time
from importlib.metadata import version
from typing import Any

import numpy as np
from pymab import BanditEnvironment, BernoulliReward, Experiment, ExperimentConfig
from pymab.policies.adversarial import EXP3Policy

K = 10
GAMMA = 0.3


def called(seconds: float) -> dict[str, Any]:
    """Select and update from Python for this many seconds."""
    chance = random.Random(1)
    generator = np.random.default_rng(2)
    means = [0.7 - 0.4 * arm / (K - 1) for arm in range(K)]
    policy = EXP3Policy(n_arms=K, gamma=GAMMA)
    rounds, spent = 0, 0.0
    begin = time.perf_counter()
    while spent < seconds:
        for _ in range(1000):
            arm = policy.select_action(rng=generator)
            policy.update(action=arm, reward=1.0 if chance.random() < means[arm] else 0.0)
        rounds += 1000
        spent = time.perf_counter() - begin
    return {"rounds": rounds, "seconds": spent}


def experiment(seconds: float) -> dict[str, Any]:
    """Run one replicate in pymab, with a length estimated from a short trial to take this many seconds."""
    world = BanditEnvironment(means=np.linspace(0.7, 0.3, K), reward_model=BernoulliReward())

    def timed(horizon: int) -> float:
        config = ExperimentConfig(horizon=horizon, n_replicates=1, seed=3, backend="rust")
        policies = {"exp3": EXP3Policy(n_arms=K, gamma=GAMMA)}
        trial = Experiment(environment=world, policies=policies, config=config)
        begin = time.perf_counter()
        trial.run()
        return time.perf_counter() - begin

    rounds = max(1000, int(10_000 * seconds / timed(10_000)))
    return {"rounds": rounds, "seconds": timed(rounds)}


def main(seconds: float) -> None:
    """Measure both, and print the result."""
    measures = {"Exp3, select and update": called(seconds), "Exp3, its Rust experiment": experiment(seconds)}
    versions = {name: version(name) for name in ("pymab", "numpy")}
    print(json.dumps({"measures": measures, "versions": versions}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
