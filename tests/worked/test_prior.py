"""A prior of the default player, and corrections of closed blocks: units, engines, saved states, bad input."""

import json
from typing import Any

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import tell_all

import aftereffect as ae

PRIOR = ae.Prior([0.2, 0.6, 0.5], updates=4)


def test_the_estimates_are_what_that_many_updates_would_have_added() -> None:
    # An update feeds 1/β rounds on average, divided by C and by the range.
    player = ae.default_player(3, max_delay=2, prior=PRIOR, seed=1)
    beta, C = 1.0 / 3.0, ae.theory.stretch_scale(2, 1.0 / 3.0)
    assert player.bandit.estimated_losses == pytest.approx(np.array([0.0, 0.4, 0.3]) * 4 / (beta * C))
    # In other units, or as rewards, only the coins differ.
    same = ae.default_player(3, max_delay=2, low=0.0, high=50.0, prior=ae.Prior([10.0, 30.0, 25.0], 4), seed=1)
    assert same.probabilities == pytest.approx(player.probabilities)
    rewards = ae.default_player(3, max_delay=0, direction="maximize", prior=PRIOR, seed=1)
    assert rewards.bandit.estimated_losses == pytest.approx([1.6, 0.0, 0.4])
    assert rewards.probabilities.argmax() == 1


def test_nothing_known_is_the_player_without_a_prior() -> None:
    plain = ae.default_player(3, max_delay=1, seed=5)
    for prior in (ae.Prior([0.3, 0.3, 0.3], 7), ae.Prior([0.1, 0.2, 0.3], 0)):
        player = ae.default_player(3, max_delay=1, prior=prior, seed=5)
        assert player.probabilities == pytest.approx(plain.probabilities, rel=1e-12)
        assert player.bandit.prior_price == pytest.approx(0.0, abs=1e-12)


def test_the_bounds_include_the_price() -> None:
    plain, player = (ae.default_player(3, max_delay=2, prior=prior, seed=1) for prior in (None, PRIOR))
    bandit: Any = player.bandit
    price = player.factor * bandit.prior_price
    assert 0.0 < bandit.prior_price <= bandit.prior.max()
    assert player.worst_case(50_000) == pytest.approx(plain.worst_case(50_000) + price)
    assert player.regret_bound(50_000) == pytest.approx(plain.regret_bound(50_000) + price)
    assert bandit.regret_bound(9) == pytest.approx(plain.bandit.regret_bound(9) + bandit.prior_price)
    for each in (plain, player):
        each.ask()
        each.tell(0.5)
    terms = player.certificate().terms
    assert terms["prior"] == pytest.approx(price)
    assert "prior" not in plain.certificate().terms
    # It does not depend on the run, so it may be stopped by what it shows.
    assert player.certificate().any_time == pytest.approx(plain.certificate().any_time + price)


def corrected_player() -> ae.CoinCleanWrapper:
    player = ae.default_player(3, max_delay=0, prior=PRIOR, seed=2)
    q = float(player.probabilities[player.ask()])
    arm = player.tell(0.5).arm
    player.correct(arm=arm, probability=q, measured=1, was=0.5, now=0.75)
    return player


def test_a_correction_between_two_blocks_takes_effect_at_once() -> None:
    player, told = corrected_player(), ae.default_player(3, max_delay=0, prior=PRIOR, seed=2)
    before = told.probabilities
    arm = told.ask()
    told.tell(0.5)
    bandit: Any = told.bandit
    step = np.zeros(3)
    step[arm] = 0.25 / before[arm]
    bandit.insert(step)
    assert (player.probabilities == told.probabilities).all()
    assert player.corrections == pytest.approx(0.25 * (1.0 - float(player.probabilities[arm] / before[arm])))


@pytest.mark.parametrize("pending", [False, True])
def test_saved_and_restored(pending: bool) -> None:
    player = corrected_player()
    if pending:
        player.ask()
        player.correct(arm=0, probability=0.5, measured=1, was=0.25, now=1.0)
    twin = ae.restore(json.loads(json.dumps(player.state())))
    for each in (player, twin):
        tell_all(each, (0.25, 0.5, 1.0))
    assert (player.probabilities == twin.probabilities).all()
    assert player.state() == twin.state()
    assert player.corrections == twin.corrections
    assert repr(twin.bandit) == repr(player.bandit)
    assert "prior=[" in repr(twin.bandit)
    # Without a prior or a correction the state is as it always was.
    plain = ae.default_player(3, max_delay=0, seed=2).state()
    assert "corrections" not in plain
    assert "prior" not in plain["inside"]["settings"]


@pytest.mark.parametrize(("change", "message"), [
    ({"probability": 5e-324}, "probability must be at least 1e-100, but got 5e-324"),
    ({"was": 1e9}, r"was must lie in \[0, 1\], the range of a sum of 1 totals, but got 1000000000.0"),
    ({"measured": 10**400}, "measured must be at most 1, but got 1000"),
])
@pytest.mark.parametrize("pending", [False, True])
def test_a_correction_that_cannot_be_changes_nothing(change: dict[str, Any], message: str, pending: bool) -> None:
    player = corrected_player()
    if pending:
        player.ask()
    before = player.state()
    given = {"arm": 0, "probability": 0.5, "measured": 1, "was": 0.25, "now": 1.0}
    with pytest.raises(ae.InvalidArgument, match=message):
        player.correct(**given | change)
    assert player.state() == before
    player.correct(**given | {"probability": 1e-100})
    tell_all(player, [0.5] * 3)
    assert np.isfinite(player.probabilities).all()
    json.dumps(player.state(), allow_nan=False)


def test_a_window_has_d_plus_one_totals() -> None:
    player = ae.CompositeLossWrapper(ae.AdaptiveTsallis(2), max_delay=1, coins=[0, 0, 1, 0, 1], seed=1)
    while player.bandit.updates == 0:
        arm = player.ask()
        player.tell(0.5)
    given = {"arm": arm, "probability": 0.5, "was": 0.5, "now": 1.0}
    with pytest.raises(ae.InvalidArgument, match="measured must be max_delay \\+ 1 = 2, but got 1"):
        player.correct(**given, measured=1)
    player.correct(**given, measured=2)
    assert player.corrections is not None


def test_corrections_are_clipped_or_refused_out_of_range() -> None:
    for policy in ("raise", "void", "clip"):
        player = ae.default_player(2, max_delay=0, out_of_range=policy, seed=2)
        given: dict[str, Any] = {"arm": player.ask(), "probability": 0.5, "measured": 1, "was": 0.5}
        player.tell(0.5)
        before = player.state()
        if policy == "clip":
            player.correct(**given, now=7.0)
            assert player.counts.out_of_range == 1
        else:
            with pytest.raises(ae.InvalidTotal, match=r"now must lie in \[0, 1\], the range of a sum of 1 totals"):
                player.correct(**given, now=7.0)
            assert player.state() == before


test_bad_priors_are_refused = refuses([
    ((0.2, 0.3), r"prior must be a Prior\(means, updates\)"),
    (ae.Prior([0.2], 1), r"prior.means must have shape \(2,\)"),
    (ae.Prior([0.2, 1.5], 1), "prior.means must be at most 1"),
    (ae.Prior([0.2, float("nan")], 1), "prior.means must be finite"),
    (ae.Prior([0.2, 0.3], -1), "prior.updates must be at least 0"),
], lambda prior: ae.default_player(2, max_delay=1, prior=prior))


def test_bad_corrections_are_refused() -> None:
    player = ae.default_player(2, max_delay=0, seed=2)
    good: dict[str, Any] = {"arm": 0, "probability": 0.5, "measured": 1, "was": 0.5, "now": 0.25}
    with pytest.raises(ae.OutOfTurn, match="a block must have been closed"):
        player.correct(**good)
    player.ask()
    player.tell(0.5)
    before = player.state()
    for name, value in (("arm", 2), ("probability", 0.0), ("measured", 0), ("now", None), ("unit", 1), ("units", 2)):
        with pytest.raises(ae.AftereffectError, match=f"{name if name != 'now' else 'total'} must"):
            player.correct(**{**good, name: value})
    assert player.state() == before
    paper = ae.CompositeLossWrapper.tuned(n_arms=2, max_delay=0, horizon=100, seed=1)
    with pytest.raises(ae.InvalidArgument, match="bandit must be an AdaptiveTsallis for a correction"):
        paper.correct(**good)


def test_a_pilot_is_worth_its_estimates_and_the_updates_of_its_rounds() -> None:
    pilot, rng = ae.carryover.Pilot(n_arms=3, rounds=120, max_lag=1, seed=1), np.random.default_rng(2)
    curves = pilot.estimate(np.array([2.0, 5.0, 2.0])[pilot.arms] + rng.normal(scale=0.01, size=120))
    given: dict[str, Any] = {"max_delay": 1, "direction": "maximize", "low": -2.0, "high": 8.0}
    found = ae.carryover.prior(curves, rounds=120, **given)
    # Around 3, the middle of the range, and hardly drawn together.
    assert found.means == pytest.approx([2.0, 5.0, 2.0], abs=0.02)
    # Rewards with d = 1 have β = 1/5, so that a block has 1/(β(1−β)) = 25/4 rounds on average.
    assert found.updates == pytest.approx(120 / 6.25)
    assert ae.default_player(3, prior=found, **given, seed=1).probabilities[1] > 0.9
    narrow = ae.carryover.prior(curves, rounds=0, max_delay=1, low=2.5, high=3.001)
    assert (narrow.means, narrow.updates) == (pytest.approx([0.5, 3.001, 0.5], abs=0.02), 0.0)
    for low, high in ((0.0, 1.0), (0.0, 2.9), (-5.0, -1.0)):
        with pytest.raises(ae.InvalidArgument, match=f"mean total .* 3, .* but got low={low} and high={high}"):
            ae.carryover.prior(curves, rounds=120, max_delay=1, low=low, high=high)
    with pytest.raises(ae.InvalidArgument, match="rounds must be at least 0, but got -1"):
        ae.carryover.prior(curves, rounds=-1, max_delay=1)


def test_estimates_that_are_all_noise_are_no_prior() -> None:
    pilot, rng, spreads = ae.carryover.Pilot(n_arms=3, rounds=60, max_lag=2, seed=1), np.random.default_rng(5), []
    for noise in (rng.normal(size=60) for _ in range(4)):
        curves = pilot.estimate(noise)
        means = ae.carryover.prior(curves, rounds=60, max_delay=2, direction="maximize", high=10.0).means
        spreads.append((np.ptp(means), np.ptp(curves.arrived.values[:, -1])))
    assert all(shown < 0.7 * estimated for shown, estimated in spreads)
    assert min(spreads)[0] == 0.0


def test_an_arm_that_was_drawn_too_seldom_gets_the_mean_of_the_others() -> None:
    arms = np.repeat(np.random.default_rng(1).integers(2, size=100), 3)
    arms[150:153] = 2
    q = np.where(np.arange(300) % 3 == 0, 0.4, np.nan)
    totals = np.array([1.0, 3.0, 9.0])[arms] + np.random.default_rng(2).normal(scale=0.01, size=300)
    given: dict[str, Any] = {"max_lag": 1, "n_arms": 3, "exposure": "adaptive", "probabilities": q}
    curves = ae.carryover.estimate(arms, totals, **given)
    assert curves.unmeasured == (2,)
    means = ae.carryover.prior(curves, rounds=300, max_delay=1, high=10.0).means
    assert means == pytest.approx([4.0, 6.0, 5.0], abs=0.02)
