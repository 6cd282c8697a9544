"""`ae.carryover.watch`, against enumeration of all arms."""

import itertools
import math

import numpy as np
import pytest
from tests.refusals import refuses
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.carryover import martingale
from aftereffect.carryover.martingale import Block, blocks_of, least_probabilities, tsallis_probabilities, watch
from aftereffect.core import effects

BLOCKS, D = 7, 1
MEASURED = [1, 3, 2, 1, 2, 2, 1]
# The clean totals of each block with either arm, fixed in advance.
RNG = np.random.default_rng(4)
CLEAN = [RNG.random((2, m)) * (1.0 + n % 2) for n, m in enumerate(MEASURED)]


def player() -> ae.CoinCleanWrapper:
    return ae.default_player(n_arms=2, max_delay=D, seed=0)


def block(made: ae.CoinCleanWrapper, n: int, arm: int, late: float = 0.0) -> Block:
    totals, m = CLEAN[n][arm] + late, MEASURED[n]
    return Block(arm, totals.tolist(), effects.stretch_loss(made.effects, D, m, made.scale, totals.sum()), m)


def enumerated(leak: float = 0.0) -> tuple[dict, dict]:
    """Return probability and result of every history; leak: what arm 1 adds to the clean totals of the next block."""
    made = player()
    played, mass = {(): []}, {(): 1.0}
    for n in range(BLOCKS):
        for arms in itertools.product(range(2), repeat=n):
            base = ae.MatchedTsallis(2)
            for b in played[arms]:
                base.learn_sums([b.arm], [b.fed], *effects.stretch_terms(made.effects, D, b.measured, made.scale))
            for arm in range(2):
                late = leak if arms and arms[-1] == 1 else 0.0
                played[*arms, arm] = [*played[arms], block(made, n, arm, late)]
                mass[*arms, arm] = mass[arms] * base.probabilities[arm]
    # The first bet is in block 6.
    found = {arms: watch(made, blocks) for arms, blocks in played.items() if len(arms) >= 4}
    return mass, found


def test_the_wealth_has_mean_one_after_every_history_so_at_every_stopping_time():
    mass, found = enumerated()
    moved = 0
    for arms, now in found.items():
        for n in range(len(arms) + 2, BLOCKS + 1):
            later = {a: f for a, f in found.items() if len(a) == n and a[: len(arms)] == arms}
            parity = n % 2
            # Blocks of this parity between now and n only.
            if len(arms) % 2 == parity:
                mean = sum(mass[a] * math.exp(f.log_wealth[parity]) for a, f in later.items()) / mass[arms]
                assert mean == pytest.approx(math.exp(now.log_wealth[parity]), rel=1e-12)
                moved += any(f.log_wealth[parity] != now.log_wealth[parity] for f in later.values())
    assert moved > 10
    for level in (0.3, 0.45, 0.5):
        ends = [a for a in found if len(a) == BLOCKS]
        assert sum(mass[a] for a in ends if found[a].log_evidence >= -math.log(level)) <= level


def test_the_wealth_grows_on_average_if_the_arm_before_leaves_something():
    mass, found = enumerated(leak=0.8)
    ends = [a for a in found if len(a) == BLOCKS]
    assert sum(mass[a] * math.exp(max(found[a].log_wealth)) for a in ends) > 1.0
    assert any(abs(sum(mass[a] * math.exp(found[a].log_wealth[p]) for a in ends) - 1.0) > 1e-3 for p in (0, 1))


@pytest.mark.parametrize("made", [ae.MatchedTsallis(3), ae.AdaptiveTsallis(3)])
def test_no_outcome_makes_an_arm_less_probable_than_its_bound(made: ae.AdaptiveTsallis):
    rng = np.random.default_rng(0)
    closest = 0.0
    for _ in range(60):
        terms = (1.0, 0.2, float(rng.uniform(0.5, 3.0)))
        least = least_probabilities(made, terms)
        for arm in range(3):
            for loss in (0.0, 0.1, 0.5, 0.9, 1.0):
                twin = made.from_state(made.state())
                twin.learn_sums([arm], [loss * terms[2]], *terms)
                ratio = least / twin.probabilities
                assert ratio.max() <= 1.0
                closest = max(closest, ratio.max())
        arm = int(rng.choice(3, p=made.probabilities))
        made.learn_sums([arm], [float(rng.random() ** 2 * terms[2] * (0.3 + 0.3 * arm))], *terms)
    assert closest > 0.9


@pytest.mark.parametrize("made", [ae.TsallisFTRL(2, learning_rate=0.4), ae.Exp3(2, learning_rate=0.2)])
def test_with_a_fixed_rate_the_bound_is_reached_by_a_loss_of_one(made: ae.Bandit):
    made.update(1, 0.7)
    least = least_probabilities(made, (1.0, 0.0, 1.0))
    for arm in range(2):
        for loss in (0.0, 0.5, 1.0):
            twin = made.from_state(made.state())
            twin.update(arm, loss)
            assert np.all(least <= twin.probabilities)
        assert twin.probabilities[arm] == pytest.approx(least[arm], rel=1e-5)


def test_the_probabilities_of_tsallis_are_those_of_the_base():
    base = ae.MatchedTsallis(4)
    for arm, loss in ((0, 0.9), (2, 0.4), (0, 1.0), (3, 0.1)):
        base.update(arm, loss)
    found = tsallis_probabilities(base.estimated_losses[np.newaxis], np.array([base.learning_rate]))
    np.testing.assert_allclose(found[0], base.probabilities, rtol=1e-10)


def bills(rounds: int, seed: int, delay: int) -> tuple[ae.CoinCleanWrapper, list[float]]:
    """Return a player told d = 0 and its totals; arm 1 costs `delay` rounds late."""
    table = ae.tables.iid(rounds, means=[0.4, 0.8], seed=seed)
    late = ae.spreads.kernels(table, weights=[[1.0, 0.0], [1.0 - delay, float(delay)]]).stream()
    made, totals = ae.default_player(n_arms=2, max_delay=0, out_of_range="clip", seed=seed), []
    for _ in range(rounds):
        totals.append(late.play(made.ask()))
        made.tell(totals[-1])
    return made, totals


def test_late_effects_give_an_alarm_and_others_do_not():
    made, totals = bills(600, 3, 1)
    found = watch(made, blocks_of(made, totals))
    assert found.alarm
    assert found.p_value < 0.05
    assert "last longer than 0 rounds" in found.sentence
    made, totals = bills(600, 3, 0)
    found = watch(made, blocks_of(made, totals))
    assert not found.alarm
    assert found.sentence.startswith("In 600 blocks the test finds no sign")


def test_blocks_are_those_that_the_player_played():
    made, clean = ae.default_player(n_arms=3, max_delay=2, seed=5), []
    totals = (0.3 * np.random.default_rng(1).random(200)).tolist()
    starts, fed = [], []
    for t, total in enumerate(totals):
        made.ask()
        played = made.tell(None if t == 40 else total)
        if played.draw:
            starts.append(t)
        if played.update:
            fed.append(played.fed_loss)
    totals[40] = None
    found = blocks_of(made, totals)
    assert [b.fed for b in found] == fed
    for b, start, end in zip(found, starts, starts[1:], strict=False):
        clean = [x for x in totals[start + 2 : end] if x is not None]
        assert b.totals == clean
        assert b.measured <= end - start - 2


def test_the_test_stops_at_a_void_total_whose_arm_decides_when_its_block_ends():
    # Nothing lasts longer than a round. Every second total of arm 0 is void, so that the next block begins one later.
    for seed in range(3):
        made, totals = ae.default_player(n_arms=2, max_delay=0, out_of_range="void", seed=seed), []
        for t in range(400):
            totals.append(2.0 if made.ask() == 0 and t % 2 == 0 else 0.5)
            made.tell(totals[-1])
        blocks, first = blocks_of(made, totals), totals.index(2.0)
        assert [b.fed for b in blocks] == [0.5] * first + [None]
        found = watch(made, blocks)
        assert (found.blocks, found.alarm) == (first, False)
        assert f"stopped before block {first + 1}, in which reported totals were out of range" in found.sentence


def test_the_test_stops_at_a_void_sum_of_totals_that_are_possible_each():
    coins = [0, 1] + [0, 0, 1] * 3
    made = ae.CoinCleanWrapper(ae.MatchedTsallis(2), max_delay=1, coins=coins, out_of_range="void", seed=0)
    totals = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 2.0, 2.0, 0.5, 0.5, 0.5]
    tell_all(made, totals)
    assert [b.fed is None for b in blocks_of(made, totals)] == [False, False, True]


def reported(made: ae.CoinCleanWrapper, rounds: int = 30) -> list[float]:
    totals = np.random.default_rng(7).random(rounds).tolist()
    tell_all(made, totals)
    return totals


def test_blocks_that_the_player_did_not_play_are_refused():
    made = player()
    totals = reported(made)
    made.ask()
    assert blocks_of(made, totals)
    for wrong in (totals[:-1], [*totals, 0.5]):
        with pytest.raises(ae.InvalidArgument, match=f"each of the player's 30 rounds, but got {len(wrong)}"):
            blocks_of(made, wrong)
    with pytest.raises(ae.InvalidArgument, match="played again it differs in"):
        blocks_of(made, totals[::-1])
    other = player().fresh(0, run=1)
    with pytest.raises(ae.InvalidArgument, match="must have played run 0 of its seed"):
        blocks_of(other, reported(other))
    amended = player()
    reported(amended, 1)
    amended.amend(1, 0.4)
    with pytest.raises(ae.InvalidArgument, match="differs in windows"):
        blocks_of(amended, [0.4])
    corrected = player()
    totals = reported(corrected)
    corrected.correct(arm=0, probability=0.5, measured=1, was=0.5, now=0.6)
    with pytest.raises(ae.InvalidArgument, match=r"differs in .*corrections"):
        blocks_of(corrected, totals)


def test_the_wealth_of_a_long_run_does_not_overflow(monkeypatch: pytest.MonkeyPatch):
    # At this rate probabilities hardly change, and need not be bounded anew in every block, which takes long.
    made = ae.CompositeLossWrapper(ae.TsallisFTRL(10, learning_rate=1e9), max_delay=0, seed=1)
    monkeypatch.setattr(martingale, "least_probabilities", lambda bandit, terms: 0.999 * bandit.probabilities)
    found = watch(made, [Block(0, [1.02**n], 0.0, 1) for n in range(4500)])
    assert max(found.log_wealth) > 710.0
    assert (found.alarm, found.p_value, found.blocks_needed) == (True, 0.0, 0.0)
    assert "p < 1e-300" in found.sentence


GOOD = Block(0, [0.1], 0.1, 1)

test_a_block_that_cannot_be_is_refused = refuses([
    ({"arm": 7}, r"blocks\[1\].arm must be at most 1, but got 7"),
    ({"totals": [0.1, math.nan]}, r"blocks\[1\].totals must be finite, but .* is nan"),
    ({"fed": math.nan}, r"blocks\[1\].fed must be a finite number, but got nan"),
    ({"fed": 1e9}, r"blocks\[1\].fed must be at most"),
    ({"measured": 0}, r"blocks\[1\].measured must be at least 1, but got 0"),
], lambda wrong: watch(player(), [GOOD, GOOD._replace(**wrong)]))


def test_a_player_that_has_settled_leaves_no_power():
    made = ae.default_player(n_arms=2, max_delay=0, seed=0)
    better = Block(0, [0.0], 0.0, 1)
    found = watch(made, [Block(1, [0.9], 0.9, 1), *[better] * 60])
    assert found.no_power
    assert found.growth < 0.02
    assert "no power left" in found.sentence
    tell_all(made, [0.5] * 60)
    equal = watch(made, blocks_of(made, [0.5] * 60))
    assert not equal.no_power
    assert equal.growth > 0.03
    with pytest.raises(ae.InvalidArgument, match="block 33 has an arm of probability 0, 0"):
        watch(made, [Block(n % 2, [0.5], 0.5, 1) for n in range(60)])


def test_what_cannot_be_watched_is_refused():
    panel = ae.Panel(ae.default_player(n_arms=2, max_delay=0, seed=0), n_units=2)
    with pytest.raises(ae.InvalidArgument, match="single unit to be watched, but has 2 units"):
        watch(panel.player, [])
    other = ae.CompositeLossWrapper(ae.UCB1(2), max_delay=0, seed=0)
    with pytest.raises(ae.InvalidArgument, match="whose next probabilities can be bounded, but got"):
        watch(other, [Block(0, [0.1], 0.1, 1)])
    with pytest.raises(ae.InvalidArgument, match="level"):
        watch(player(), [], level=0.0)
