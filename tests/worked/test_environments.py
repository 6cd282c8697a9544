"""Environments of Gymnasium: its own checker, the totals of the losses, and river's evaluation."""

import copy
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from river import bandit

import aftereffect as ae
from aftereffect.losses.environments import LossesEnv, advertising, composite, days

ae.environments.register()
NAMES = ("aftereffect/Composite-v0", "aftereffect/Advertising-v0", "aftereffect/Days-v0")


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_and_accepts_it(name: str) -> None:
    env = gymnasium.make(name)
    with warnings.catch_warnings():
        # The checker wants to render, and warns of a range that is finite but wide.
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)
    assert env.spec is not None


@pytest.mark.parametrize(("make", "sign"), [(composite, -1.0), (advertising, 1.0), (days, 1.0)])
def test_rewards_are_the_totals_of_the_arms_played(make, sign: float) -> None:
    env = make(horizon=60, max_delay=5)
    env.reset(seed=3)
    arms = np.random.default_rng(1).integers(0, env.losses.n_arms, size=60)
    steps = [env.step(arm) for arm in arms]
    totals = env.losses.totals(arms)
    np.testing.assert_array_equal([sign * reward for _, reward, *_ in steps], totals)
    np.testing.assert_array_equal([float(observed[0]) for observed, *_ in steps], totals)
    assert [truncated for *_, truncated, _ in steps] == [False] * 59 + [True]
    assert [info["round"] for *_, info in steps] == list(range(1, 61))


def test_a_seed_gives_the_same_episode_and_another_one_another() -> None:
    env = composite(horizon=200)
    episodes = []
    for seed in (5, 5, 6):
        env.reset(seed=seed)
        episodes.append([env.step(0)[1] for _ in range(200)])
    assert episodes[0] == episodes[1] != episodes[2]


def test_a_copy_goes_on_alone() -> None:
    env = composite(horizon=40)
    env.reset(seed=1)
    env.step(1)
    twin = copy.deepcopy(env)
    assert [env.step(0)[1] for _ in range(39)] == [twin.step(0)[1] for _ in range(39)]


def test_a_world_that_tires_reacts_to_what_is_played() -> None:
    env = days(world=3, noise=0.0, change="fatigue", half_life=0.001, horizon=60)
    env.reset(seed=1)
    rewards = [env.step(0)[1] for _ in range(40)]
    # Each play in a row is 7% weaker than the one before.
    np.testing.assert_allclose(np.array(rewards[1:30]) / rewards[:29], 0.93, rtol=1e-6)


def test_a_step_out_of_turn_is_refused() -> None:
    env = composite(horizon=2)
    with pytest.raises(ae.OutOfTurn, match="step must follow reset, but reset has not been called"):
        env.step(0)
    env.reset()
    env.step(0)
    for action, rule in ((4, "at most 3, but got 4"), (-1, "at least 0, but got -1"), (0.5, "an int, but got 0.5")):
        with pytest.raises(ae.InvalidArgument, match=f"action must be {rule}"):
            env.step(action)
    env.step(0)
    with pytest.raises(ae.OutOfTurn, match="step must follow reset, but the episode ended after round 2"):
        env.step(0)
    with pytest.raises(TypeError, match="losses must be a Losses, but got 3"):
        LossesEnv(3)


def test_river_evaluates_on_it() -> None:
    """What river says was earned is what the losses say, and a player that knows nothing of the delay learns less."""
    env = gymnasium.make("aftereffect/Composite-v0", horizon=300, gap=0.4)
    policies = [bandit.EpsilonGreedy(epsilon=0.1, seed=1), bandit.RandomPolicy(seed=1)]
    rows = list(bandit.evaluate(policies=policies, env=env, n_episodes=3, seed=2))
    assert len(rows) == 2 * 3 * 300
    for episode in range(3):
        for policy in range(2):
            mine = [row for row in rows if (row["episode"], row["policy_idx"]) == (episode, policy)]
            assert mine[-1]["reward_stat"] == pytest.approx(sum(row["reward"] for row in mine))
