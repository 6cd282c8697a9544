"""`CoinCleanWrapper`: blocks, stretches and fed losses, against an independent computation from coins and totals."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.kits import refused, total_at
from tests.rounds import tell_all

import aftereffect as ae
from aftereffect.core import effects, random
from aftereffect.players.wrapper.coins import DrawnCoins


def player(coins: Any = None, d: int = 2, K: int = 3, seed: int | None = 5, **settings: Any) -> ae.CoinCleanWrapper:
    return ae.CoinCleanWrapper(ae.AdaptiveTsallis(K), max_delay=d, coins=coins, seed=seed, **settings)


def coin_clean(coins: list[int], d: int) -> list[bool]:
    """Round t from 1 is coin-clean if t > d and the d coins before it are 0."""
    return [t > d and not any(coins[t - 1 - d : t - 1]) for t in range(1, len(coins) + 1)]


def expected_feeds(coins: list[int], totals: list[float | None], d: int) -> list[float | None]:
    """For each round, the sum over the stretch that ends there; None if none ends there or a total of it is missing.

    A stretch ends in a coin-clean round whose coin is 1; it contains the coin-clean rounds since the previous coin that
    is 1.
    """
    clean = coin_clean(coins, d)
    found: list[float | None] = []
    for t in range(1, len(coins) + 1):
        if not (coins[t - 1] and clean[t - 1]):
            found.append(None)
            continue
        first = t
        while first > 1 and clean[first - 2] and not coins[first - 2]:
            first -= 1
        parts = totals[first - 1 : t]
        found.append(None if None in parts else math.fsum(part for part in parts if part is not None))
    return found


@given(
    st.lists(st.booleans() | st.just(False), min_size=1, max_size=60),
    st.integers(0, 4),
    st.sampled_from(["minimize", "maximize"]),
    st.sampled_from([(0.0, 1.0), (-1.0, 2.0), (-3.0, -0.5), (0.25, 4.0)]),
    st.integers(0, 2**32),
)
def test_fed_losses_are_the_sums_over_coin_clean_rounds(
    coins: list[bool], d: int, direction: str, ends: tuple[float, float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    lo, hi = min(ends[0], 0.0), max(ends[1], 0.0)
    game = player(coins, d, seed=seed, direction=direction, low=ends[0], high=ends[1])
    # Given coins have no β: C is that of β = 1/(d+1), which is √((2d+1)(d+1) + 2d(d+1) + d²).
    C = math.sqrt((2 * d + 1) * (d + 1) + 2 * d * (d + 1) + d * d)
    assert game.scale == pytest.approx(C, rel=1e-14)
    totals: list[float | None] = [
        None if rng.random() < 0.1 else float(rng.uniform(ends[0], ends[1]) / (d + 1)) for _ in coins
    ]
    feeds, arm, fresh = expected_feeds([int(coin) for coin in coins], totals, d), None, True
    start = 1
    for t, total in enumerate(totals, start=1):
        played = game.ask()
        assert fresh or played == arm
        told = game.tell(total)
        whole = feeds[t - 1]
        assert (told.draw, told.update) == (fresh, whole is not None)
        if whole is not None:
            rounds = next(g for g in range(1, t + 1) if g == t or coins[t - 1 - g]) - d
            edge = (rounds + d) * hi - whole if direction == "maximize" else whole - (rounds + d) * lo
            assert told.fed_loss == pytest.approx(edge / ((hi - lo) * C), rel=1e-12, abs=1e-13)
            assert 0.0 <= told.fed_loss <= (rounds + d) / C * (1 + 1e-12)
            assert t - rounds + 1 >= start, "nothing is summed twice, nor before the block"
            start = t + 1
        arm, fresh = played, whole is not None


def test_terms_of_what_is_fed_by_hand() -> None:
    # d = 2, β = ½: C² = 1.5·4 + 8 + 4 = 18. A gap of 5 has 3 clean rounds and 5 actions. Range [−1, 3], rewards:
    # the fed loss is (15 − Y)/(4C), with weight 3/C, offset 2·3/(4C) and top 5/C.
    C = math.sqrt(18.0)
    game = player(0.5, d=2, direction="maximize", low=-1.0, high=3.0)
    assert effects.stretch_terms(game.effects, 2, 3, game.scale) == pytest.approx((3 / C, 1.5 / C, 5 / C), rel=1e-14)
    game = player(0.5, d=2, low=-1.0, high=3.0)
    assert effects.stretch_terms(game.effects, 2, 3, game.scale) == pytest.approx((3 / C, 0.5 / C, 5 / C), rel=1e-14)
    assert player(d=4).update_probability == 0.2


@pytest.mark.parametrize("lazy", [1.0, 0.3])
def test_without_delay_and_always_heads_it_is_the_plain_wrapper(lazy: float) -> None:
    # β = 1 and d = 0: C = 1, one round per block. With β < 1 the blocks are the wrapper's, but all rounds are fed.
    ours = player(lazy, d=0, seed=3)
    plain = ae.CompositeLossWrapper(ae.AdaptiveTsallis(3), max_delay=0, coins=lazy, seed=3)
    block: list[float] = []
    for t in range(1, 301):
        arm = ours.ask()
        other = plain.ask()
        assert lazy < 1.0 or arm == other
        block.append(total_at(t, arm))
        told, same = ours.tell(block[-1]), plain.tell(total_at(t, other))
        assert (told.draw, told.update) == (same.draw, same.update)
        if lazy == 1.0:
            assert told == same
            assert ours.bandit.state() == plain.bandit.state()
        elif told.update:
            assert told.fed_loss == pytest.approx(math.fsum(block) / math.sqrt((2 - lazy) / lazy**2), rel=1e-13)
            block = []


@pytest.mark.parametrize(("d", "beta"), [(0, 0.4), (1, 0.5), (3, 0.25), (3, 0.9), (10, 1 / 11)])
def test_blocks_end_at_gaps_of_d_plus_1(d: int, beta: float) -> None:
    # The coins of this seed, drawn gap by gap, against the update rounds of the player.
    game, coins = player(beta, d, seed=8), DrawnCoins(beta, 0, random.stream(8, 0, random.COINS))
    T = 600
    ones = [0, *(t for t in range(1, T + 1) if coins.read(t))]
    expected = [b for a, b in itertools.pairwise(ones) if b - a > d]
    found = []
    for t in range(1, T + 1):
        game.ask()
        if game.tell(0.25).update:
            found.append(t)
    assert found == expected
    assert len(found) > 5 or beta == 0.9


def test_amended_totals_are_the_ones_summed() -> None:
    # d = 1, rounds 2 to 5 are clean; two totals are late, one is corrected, round 1 is not in the stretch.
    game = player([0, 0, 0, 0, 1, 0], d=1)
    tell_all(game, (0.5, None, 0.75, None))
    game.amend(2, 0.25)
    game.amend(3, 0.5)
    game.amend(1, 1.0)
    game.ask()
    game.amend(4, 0.125)  # in the middle of a round
    told = game.tell(0.5)
    assert told.update
    assert told.fed_loss == pytest.approx((0.25 + 0.5 + 0.125 + 0.5) / game.scale, rel=1e-14)
    assert game.counts.amended == 4
    assert refused(lambda: game.amend(5, 0.5), ae.OutOfTurn).startswith("round must be in the open block")


def test_a_void_stretch_leaves_the_block_open_and_its_rounds_behind() -> None:
    # d = 1: at the 1 in round 3 the total of round 2 is missing; at the 1 in round 6 only rounds 5 and 6 are summed.
    game = player([0, 0, 1, 0, 0, 1], d=1)
    for total in (0.5, None, 0.5, 1.0, 0.25, 0.5):
        arm = game.ask()
        told = game.tell(total)
        assert told.draw is (told.round == 1)
    assert told.arm == arm
    assert told.fed_loss == pytest.approx(0.75 / game.scale, rel=1e-14)
    assert (game.counts.missing, game.counts.void_windows) == (1, 1)


@pytest.mark.parametrize("policy", ["raise", "void", "clip"])
def test_sums_that_cannot_be(policy: str) -> None:
    # d = 2, one clean round: 3 actions contribute, so the total is at most 3. For two clean rounds the sum is at most
    # 4, although each total may be 3.
    game = player([0, 0, 0, 1], d=2, out_of_range=policy)
    tell_all(game, (0.0, 0.0, 3.0))
    game.ask()
    before = game.state()
    if policy == "raise":
        message = refused(lambda: game.tell(2.0), ae.InvalidTotal)
        assert message == "total must keep the sum of the last 2 totals in [0, 4], but with total 2.0 the sum is 5.0"
        assert game.state() == before
        return
    told = game.tell(2.0)
    assert told.fed_loss == (None if policy == "void" else pytest.approx(4.0 / game.scale, rel=1e-14))
    assert game.counts.out_of_range == 1


def test_whom_it_takes() -> None:
    for bandit in (ae.Exp3(2, learning_rate=0.1), ae.TsallisFTRL(2, learning_rate=1.0)):
        message = refused(lambda bandit=bandit: ae.CoinCleanWrapper(bandit, max_delay=1), ae.InvalidArgument)
        assert message.startswith("bandit must learn from sums over varying numbers of rounds")
    anything: Any = object()
    message = refused(lambda: ae.CoinCleanWrapper(anything, max_delay=1), ae.InvalidArgument)
    assert message.startswith("bandit must learn from sums over varying numbers of rounds, which may exceed 1")
    assert refused(lambda: player(d=-1)) == "max_delay must be at least 0, but got -1"


def test_a_panel_feeds_the_average_of_its_units() -> None:
    units, d = 3, 1
    many = ae.Panel(player(0.4, d, seed=6), n_units=units)
    bandit, stream = ae.AdaptiveTsallis(3), random.stream(6, 0, random.ARMS)
    clock = DrawnCoins(0.4, d, random.stream(6, 0, random.COINS))
    scale, block, arms = many.player.scale, [], [bandit.draw(stream) for _ in range(units)]
    updates = 0
    for t in range(1, 201):
        assert many.ask() == arms
        block.append([total_at(t + 5 * unit, arm) for unit, arm in enumerate(arms)])
        told = many.tell(block[-1])
        assert told.update is clock.read(t)
        if told.update:
            rounds = clock.gap - d
            fed = np.sum(block[-rounds:], axis=0) / scale
            assert told.fed_losses == pytest.approx(fed, rel=1e-13)
            bandit.learn_sums(arms, told.fed_losses, rounds / scale, 0.0, (rounds + d) / scale)
            assert (many.probabilities == bandit.probabilities).all()
            arms, block, updates = [bandit.draw(stream) for _ in range(units)], [], updates + 1
    assert updates > 20


def test_a_certificate_charges_for_void_stretches_and_not_for_reports_that_come_late() -> None:
    player = ae.CoinCleanWrapper(ae.MatchedTsallis(3), max_delay=2, seed=1)
    for t in range(1, 2001):
        player.ask()
        done = player.tell(None if t % 5 == 0 else 0.5)
        # In an update round the stretch is void, and what comes later is of no use.
        if t % 5 == 0:
            player.amend(t, 0.5)
            assert not done.update
    void, found = player.counts.void_windows, player.certificate()
    assert player.counts.missing == 400
    assert 30 < void < 100
    # β = 1/3: (2 + 6 − 1)/(2/3)² for each.
    assert found.terms["missing"] == pytest.approx(void * 7.0 * 2.25)
    assert found.informative
