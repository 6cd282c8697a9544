"""`choose_delay`: the bound of every d, computed once more from the theory, and the d that is chosen."""

import math
from typing import Any

import matplotlib
import numpy as np
import pytest
from tests.refusals import refuses

import aftereffect as ae
from aftereffect import theory
from aftereffect.core.errors import InvalidArgument

matplotlib.use("Agg")
RATE = ae.MatchedTsallis(2).first_rate


def fade(half_life: float, d: int) -> float:
    """What is left after d rounds."""
    return float(2.0 ** (-(d + 1) / half_life))


def test_without_assumptions_the_bound_has_the_tails_of_all_rounds() -> None:
    found = ae.choose_delay(half_life=3, n_arms=2, horizon=2_000_000)
    assert found.delays.tolist()[:33] == list(range(33))
    for d, inside, bound in zip(found.delays, found.inside, found.bounds, strict=True):
        left = fade(3, d)
        worst = theory.stretch_worst_case(2, int(d), 2_000_000, 1 / (d + 1), RATE)
        assert inside == pytest.approx(1.0 - left, abs=1e-12)
        # No more can be lost than the whole range in every round.
        assert bound == pytest.approx(min(worst + 2.0 * 2_000_000 * left, 2_000_000))
    assert found.bounds[found.place] == found.bounds.min() < 1_000_000
    # A longer horizon weighs the tails more.
    assert found.max_delay > ae.choose_delay(half_life=3, n_arms=2, horizon=200_000).max_delay


@pytest.mark.parametrize("horizon", [None, 100])
def test_where_no_bound_says_anything_the_first_to_do_so_is_chosen(horizon: int | None) -> None:
    found = ae.choose_delay(half_life=2, n_arms=3, horizon=horizon)

    def half(d: int, T: int) -> bool:
        return theory.stretch_worst_case(3, d, T, 1 / (d + 1), RATE) + 2.0 * T * fade(2, d) < T / 2

    first = int(found.since.min())
    assert half(found.max_delay, first)
    assert not any(half(int(d), first - 1) for d in found.delays)
    # More than a quarter left, each round costs half of the largest regret for ever.
    assert [bool(math.isinf(since)) for since in found.since[:5]] == [True, True, True, True, False]
    assert bool(np.isnan(found.bounds).all()) is (horizon is None)


def test_rewards_pay_for_tails_once_and_effects_of_either_sign_five_times() -> None:
    T, weights = 100_000, [0.6, 0.3, 0.1]
    for price, direction, low, high in ((1.0, "maximize", 0.0, 4.0), (5.0, "minimize", -1.0, 3.0)):
        found = ae.choose_delay(weights=weights, n_arms=2, horizon=T, direction=direction, low=low, high=high)
        worst = [theory.stretch_worst_case(2, d, T, 0.4 / (d + 1) if d else 1.0, RATE) for d in range(3)]
        tails = np.array([0.4, 0.1, 0.0])
        assert found.bounds == pytest.approx(4.0 * np.minimum(np.array(worst) + price * T * tails, T))


def test_if_all_arms_are_alike_a_short_d_is_best() -> None:
    found = ae.choose_delay(half_life=3, n_arms=5, horizon=50_000, assume="alike")
    assert found.max_delay == 0
    share = 1.0 - 2.0 ** (-1 / 3)
    worst = theory.stretch_worst_case(5, 0, 50_000, 1.0, RATE)
    # At most the mean delay is added for effects that are cut off.
    assert 0.0 < found.bounds[0] - worst / share < 1.0 / share
    assert 0 < ae.choose_delay(half_life=10, n_arms=5, horizon=50_000, assume="alike").max_delay < 10


def test_arms_that_fade_apart() -> None:
    curves = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
    found = ae.choose_delay(curves=curves, n_arms=2, horizon=100_000)
    assert (found.max_delay, found.inside.tolist()) == (3, [0.0, 0.0, 0.0, 1.0])
    with pytest.raises(InvalidArgument, match="curves must be the same for all arms if assume is 'alike'"):
        ae.choose_delay(curves=curves, n_arms=2, assume="alike")
    same = ae.choose_delay(curves=[[0.5, 0.5]] * 2, n_arms=2, assume="alike")
    assert same.since.tolist() == ae.choose_delay(weights=[0.5, 0.5], n_arms=2, assume="alike").since.tolist()
    # Nothing is seen without delay.
    assert math.isinf(ae.choose_delay(weights=[0.0, 1.0], n_arms=2, assume="alike").since[0])


def test_simulated_regret() -> None:
    curves = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    found = ae.choose_delay(curves=curves, n_arms=2, horizon=3_000, runs=4, seed=1)
    # The second arm seems free of cost if its bills come too late.
    assert found.regrets[0] > 3.0 * found.regrets[2]
    losses = ae.spreads.kernels(ae.tables.iid(3_000, means=[0.3, 0.5], seed=1), weights=curves)
    told = ae.simulate(ae.default_player(2, max_delay=2), losses, runs=4, seed=1)
    assert found.regrets[2] == pytest.approx(told.mean_regret)
    rewards = {"n_arms": 2, "horizon": 500, "runs": 2, "direction": "maximize"}
    good = ae.choose_delay(weights=[1.0], means=[0.2, 0.9], **rewards).regrets
    assert 0.0 < good[0] < 0.35 * 500


@pytest.mark.parametrize(("adviser", "opens"), [("lags", True), (ae.advisers.Opinion([3.0, 1.0]), False)])
def test_an_advised_player_has_the_bounds_with_its_budget_and_opening(adviser: Any, opens: bool) -> None:
    T = 200_000
    found = ae.choose_delay(half_life=3, n_arms=2, horizon=T, direction="maximize", adviser=adviser)
    for d, bound in zip(found.delays.tolist(), found.bounds, strict=True):
        beta = 0.7 / (d + 1) if d else 1.0
        factor = theory.stretch_scale(d, beta) / (1.0 - beta) ** d
        opening = math.ceil(8.0 * factor) if opens else 0
        worst = opening + theory.stretch_worst_case(2, d, T - opening, beta, RATE, advice=(8.0, 0.5))
        assert bound == pytest.approx(min(worst + T * fade(3, d), T))
    # The budget and the opening grow with d, so what arrives late may cost more.
    assert found.max_delay < ae.choose_delay(half_life=3, n_arms=2, horizon=T, direction="maximize").max_delay


def test_an_advised_player_is_simulated_as_it_is_played() -> None:
    found = ae.choose_delay(weights=[0.5, 0.5], n_arms=2, horizon=400, runs=2, seed=1, adviser="lags")
    losses = ae.spreads.kernels(ae.tables.iid(400, means=[0.3, 0.5], seed=1), weights=[[0.5, 0.5]] * 2)
    told = ae.simulate(ae.default_player(2, max_delay=1, adviser="lags"), losses, runs=2, seed=1)
    assert found.regrets[1] == pytest.approx(told.mean_regret)
    alone = ae.choose_delay(weights=[0.5, 0.5], n_arms=2, horizon=400, runs=2, seed=1)
    assert found.regrets[1] != alone.regrets[1]


def measured(effects: Any, error: float, verdict: str = "not refuted", **more: Any) -> ae.carryover.Curves:
    """Return curves with bands of three standard errors, each of this size, but for what remains after the last lag."""
    effects = np.asarray(effects, dtype=float)
    effects = effects - effects.mean(axis=0)
    arrived = effects.cumsum(axis=1)
    remaining = arrived[:, -1:] - arrived
    wide = np.full(effects.shape, 3.0 * error)
    none_left = wide * (np.arange(effects.shape[1]) < effects.shape[1] - 1)
    tables = [(effects, wide), (arrived, wide), (arrived, wide), (remaining, none_left)]
    bands = [ae.carryover.Bands(values, values - w, values + w, 3.0) for values, w in tables]
    alike = ae.carryover.Alike(0.01 if verdict == "apart" else 0.5, verdict)
    given = {"base": 0.5, "rounds": 500, "order": 0, "noise": 0.1, "dof": 400.0} | more
    given |= {"differences": (effects - effects[0])[1:].ravel(), "covariance": np.eye(effects[1:].size) * error**2}
    return ae.carryover.Curves("the mean of the arms", 0.95, "randomised", *bands, alike=alike, **given)


# What all arms have in common at lags 1 to 3 is large; arms differ at lags 0 and 2.
COMMON = np.array([[0.0, 0.3, 0.3, 0.3, 0.0]])
LATE = COMMON + np.array([[0.5, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.2, 0.0, 0.0]])


def test_of_measured_curves_only_differences_between_arms_count() -> None:
    T = 10**7
    found = ae.choose_delay(curves=measured(LATE, 0.001), n_arms=2, horizon=T)
    spreads = np.array([0.2, 0.2, 0.0, 0.0, 0.0])
    assert found.delays.tolist() == [0, 1, 2, 3, 4]
    assert found.inside == pytest.approx(1.0 - spreads / 0.3)
    assert found.left[:4] == pytest.approx(spreads[:4] + 0.006)
    assert found.left[4] == 0.0
    for d in range(5):
        beta = 1.0 / (d + 1)
        worst = theory.stretch_worst_case(2, d, T, beta, RATE)
        price, ends = theory.late_price(spreads, d, beta)
        assert found.bounds[d] == pytest.approx(worst + price * T + ends)
        price, ends = theory.late_price(found.left, d, beta)
        assert found.worst[d] == pytest.approx(worst + price * T + ends)
    assert found.max_delay == 2
    same = ae.choose_delay(curves=measured(LATE - COMMON, 0.001), n_arms=2, horizon=T)
    assert same.bounds == pytest.approx(found.bounds)


def test_what_cannot_be_told_from_0_is_taken_as_0_and_its_price_is_stated() -> None:
    # What remains after lag 1 is 0.1 to either side of the mean: told from 0 if 1.96 standard errors are less.
    clear, unclear = (ae.choose_delay(curves=measured(LATE, error), n_arms=2) for error in (0.05, 0.052))
    assert (clear.max_delay, unclear.max_delay) == (2, 0)
    assert unclear.left[0] == pytest.approx(0.2 + 6.0 * 0.052)
    with pytest.warns(ae.AftereffectWarning, match="no effect of any arm can be told from 0"):
        ae.choose_delay(curves=measured(LATE, 1.0), n_arms=2)


def test_measured_curves_are_chosen_by_what_the_arms_differ_in() -> None:
    # Whole effects differ by 0.1. A d of 0 would cost more than half of that in every round.
    curves = measured([[0.5, 0.0, 0.0], [0.0, 0.4, 0.0]], 0.001)
    found = ae.choose_delay(curves=curves, n_arms=2, horizon=1_000)
    assert math.isinf(found.since[0])
    assert found.max_delay == 1
    assert found.since[1] == pytest.approx(ae.choose_delay(curves=curves, n_arms=2).since[1])


test_measured_curves_that_do_not_fit_are_refused = refuses([
    ({"n_arms": 2, "assume": "alike"}, r"curves must fade alike if assume is 'alike', .* \(p = 0.01\)"),
    ({"n_arms": 2, "horizon": 100, "means": [0.2, 0.4], "runs": 1}, r"means must not be given with measured curves"),
    ({"n_arms": 3}, "curves must be of n_arms = 3 arms, but got curves of 2"),
    ({"n_arms": 2, "high": 0.2}, r"high - low must be at least 0.294, by which arms differ, but got 0.2"),
], lambda given: ae.choose_delay(curves=measured(LATE, 0.001, "apart"), **given))


def test_measured_curves_that_fade_alike() -> None:
    weights = np.array([0.5, 0.3, 0.2, 0.0])
    found = ae.choose_delay(
        curves=measured(np.outer([0.0, 1.0, 0.4], weights), 1e-4), n_arms=3, horizon=50_000, assume="alike"
    )
    wanted = ae.choose_delay(weights=weights, n_arms=3, horizon=50_000, assume="alike")
    assert found.bounds == pytest.approx(wanted.bounds)
    assert (found.worst >= found.bounds).all()


def test_the_regret_simulated_on_measured_curves() -> None:
    curves = measured([[0.5, 0.0, 0.0], [0.0, 0.0, 0.9]], 0.001)
    found = ae.choose_delay(curves=curves, n_arms=2, horizon=3_000, runs=4, seed=1, direction="maximize")
    # The second arm seems to gain nothing if the player is told no delay.
    assert found.regrets[0] > 0.9 * 0.4 * 3_000
    assert found.regrets[2] < 0.3 * found.regrets[0]
    assert found.to_frame().columns.tolist() == ["d", "inside", "bound", "since", "left", "worst", "regret"]
    assert str(found).splitlines()[0].split() == ["d", "inside", "bound", "left", "bound", "if", "so", "regret"]
    assert "may be left after d: " in repr(found)
    assert len(found.plot().lines) == 4
    with pytest.raises(InvalidArgument, match="horizon must be at most"):
        ae.choose_delay(curves=curves, n_arms=2, horizon=10**8, runs=1)


def test_how_it_is_shown() -> None:
    found = ae.choose_delay(weights=[0.75, 0.25], n_arms=2, horizon=10_000, runs=1)
    assert repr(found).startswith("DelayChoice(max_delay: 1, assume: anything, inside: 100.0%, bound: ")
    assert "<td>anything</td>" in found._repr_html_()
    lines = str(found).splitlines()
    assert lines[0].split() == ["d", "inside", "bound", "regret"]
    assert [line.endswith("<- chosen") for line in lines[1:]] == [False, True]
    frame = found.to_frame()
    assert frame.columns.tolist() == ["d", "inside", "bound", "since", "regret"]
    assert frame["inside"].tolist() == [0.75, 1.0]
    axes = found.plot()
    assert axes.get_ylabel() == "regret after 10,000 rounds"
    assert len(axes.lines) == 3
    open_ended = ae.choose_delay(weights=[0.75, 0.25], n_arms=2)
    assert open_ended.plot(axes).get_ylabel() == "round"
    assert str(open_ended).splitlines()[0].split() == ["d", "inside", "since"]


test_arguments = refuses([
    ({}, "exactly one of half_life, weights, curves must be given, but got none"),
    ({"half_life": 1, "weights": [1.0]}, "exactly one of .*, but got half_life and weights"),
    ({"half_life": 0}, "half_life must be at least 1e-09"),
    ({"half_life": 1e6}, "half_life must be at most 100000"),
    ({"weights": [0.7, 0.7]}, "weights must have a sum greater than 0 and at most 1"),
    ({"curves": [[1.0]]}, r"curves must have shape \(2, lags\)"),
    ({"curves": [[1.0], [0.0]]}, r"curves\[1\] must have a sum greater than 0"),
    ({"half_life": 1, "runs": 1}, "horizon must be given if runs are"),
    ({"half_life": 1, "runs": 1, "horizon": 9, "means": [0.5]}, r"means must have shape \(2,\)"),
], lambda given: ae.choose_delay(n_arms=2, **given))
