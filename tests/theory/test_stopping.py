"""docs/theory/adaptive.md, section 10: runs stopped by what they show, over all coins, arms and stopping rules."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.theory.adaptive_reference import State, distribution, step
from tests.theory.enumeration import corner, random_components
from tests.theory.stretches import Play
from tests.theory.test_adaptive_enumeration import signed

import aftereffect as ae
from aftereffect import theory
from aftereffect.core.text import amount

TINY = 1e-9


def quiet(game: Play) -> int:
    return 2 * game.d if game.windows else game.d


def fed(game: Play, end: int, gap: int) -> tuple[int, ...]:
    """The rounds that an update uses, `gap` rounds after the previous coin."""
    return tuple(range(end - (game.d + 1 if game.windows else gap - game.d) + 1, end + 1))


def arrives(game: Play, arms: tuple[int, ...]) -> float:
    """The total of the last round."""
    t = len(arms)
    return float(sum(game.parts[t - 1 - s, s, arms[t - 1 - s]] for s in range(min(game.d, t - 1) + 1)))


def best_rule(game: Play, u: int, *, stopped: bool) -> float:
    """The largest mean, over stopping rules, of the regret against u minus the certificate, by backward induction.

    stopped: with the price of stopping; otherwise the certificate of a fixed horizon.
    """
    d, span, beta = game.d, game.hi - game.lo, game.beta
    ends, per_moved, factor = d, d, game.C / (1.0 - beta) ** d
    if game.windows:
        ends, per_moved, factor = theory.sharp_terms(d, 2 * d + 1, beta)
    always = np.cumsum(game.rho[:, u])

    def after(t: int, z: int, arm: int | None, arms: tuple[int, ...], state: State, seen: tuple[float, ...]) -> float:
        """z: rounds since the last coin. arm: None after an update. seen: what was paid, costs, mass moved."""
        paid, base, moved = seen
        here = -math.inf
        if t:
            m = None if arm is None else max(z - quiet(game), 0)
            extra = ends + theory.stopping_price(d, beta, m, windows=game.windows)
            if not stopped:
                extra = min(ends, t) + (factor * (m + d) / game.C if m and not game.windows else 0.0)
            here = game.sign * (paid - always[t - 1]) - span * (extra + per_moved * moved + factor * base)
        if t == game.T:
            return here
        onward, q = 0.0, distribution(state.losses, state.rate)
        for a, coin in itertools.product(range(game.K) if arm is None else (arm,), (0, 1)):
            chance = (q[a] if arm is None else 1.0) * (beta if coin else 1.0 - beta)
            now, gap = (*arms, a), z + 1
            got = paid + arrives(game, now)
            if coin and gap > quiet(game):
                losses, weight, offset, top = game.feed(fed(game, t + 1, gap), [])
                done = step(state, a, float(losses[a]), weight, offset, top, game.exact)
                told = got, base + done.cost + done.penalty, moved + done.moved
                onward += chance * after(t + 1, 0, None, now, done.after, told)
            else:
                onward += chance * after(t + 1, 0 if coin else gap, a, now, state, (got, base, moved))
        return max(here, onward)

    return after(0, 0, None, (), State((0.0,) * game.K, game.first_rate), (0.0, game.h * game.first_rate, 0.0))


# n_arms, max_delay, horizon, update_probability, first_rate, windows
CASES = [
    (2, 0, 5, 0.5, 0.01, False),
    (2, 1, 6, 0.5, 0.01, False),
    (3, 1, 5, 0.5, 0.1, False),
    (2, 2, 7, 1 / 3, 0.01, False),
    (2, 1, 6, 1 / 3, 0.01, True),
]


@pytest.mark.parametrize(("K", "d", "T", "beta", "rate", "windows"), CASES)
def test_no_rule_exceeds_the_certificate_of_stopped_runs(
    K: int, d: int, T: int, beta: float, rate: float, windows: bool
) -> None:
    rng = np.random.default_rng(T)
    parts = random_components(rng, T, d, K)
    trials = [(parts, 0.0, 1.0), (parts, 0.0, -1.0), (signed(rng, T, d, K), -0.5, 1.0)]
    trials += [(corner(rng, parts), 0.0, 1.0) for _ in range(3)]
    for trial, lo, sign in trials:
        game = Play(trial, beta, rate, lo=lo, sign=sign, windows=windows)
        assert max(best_rule(game, u, stopped=True) for u in range(K)) <= TINY


def test_the_certificate_of_a_fixed_horizon_fails_if_the_run_is_stopped() -> None:
    # One arm costs 1 in every round, at once, the other nothing.
    parts = np.zeros((5, 3, 2))
    parts[:, 0, 1] = 1.0
    game = Play(parts, 1 / 3, 0.001)
    assert best_rule(game, 0, stopped=False) > 0.1
    mean = game.means()
    assert mean.regret[0] <= theory.stretch_certificate(2, 1 / 3, mean.moved[0], mean.base[0]) - 1.0


@pytest.mark.parametrize(("d", "beta"), [(0, 0.3), (1, 0.5), (3, 0.25), (3, 0.1)])
def test_the_wait_for_the_next_update(d: int, beta: float) -> None:
    # wait[z]: the mean wait if the last coin was z rounds ago; d + 1 stands for all longer times.
    wait = np.zeros(d + 2)
    for _ in range(3000):
        ended = np.where(np.arange(d + 2) >= d, 0.0, wait[0])
        wait = 1.0 + beta * ended + (1.0 - beta) * wait[np.minimum(np.arange(d + 2) + 1, d + 1)]
    assert wait.max() == pytest.approx(1.0 / (beta * (1.0 - beta) ** d))
    assert wait[d + 1] == pytest.approx(1.0 / beta)
    for m, longest in ((0, wait.max()), (2, wait[d + 1])):
        last = 1.5 * (m + 1.0 / beta + d) / (1.0 - beta) ** d
        assert theory.stopping_price(d, beta, m) == pytest.approx(3 * d + longest + last)


class Steps(NamedTuple):
    """Means for runs that are stopped in round τ of block N, which ends in e, and played on to e + d.

    mixed: Σ ℓ°_t − ρ_t(I_{t−d}). moved: Σ ⟨q_{n+1} − q_n, G_n⟩ over n < N, plus G_N(J_N) − ⟨q_N, G_N⟩. stale: Σ
    ρ_t(I_{t−d}) − ρ_t(u). fresh: Σ Y_n(J_n) − Y_n(u) over n ≤ N. drawn: the same with ⟨q_n, Y_n⟩ for Y_n(J_n).
    """

    mixed: Any
    moved: Any
    stale: Any
    fresh: Any
    drawn: Any


def steps(game: Play, latest: int, rule: Any) -> Iterator[tuple[float, Steps]]:
    """Every run with its probability; there are no effects after round `latest`, by which every run is stopped."""
    d, H, K = game.d, game.T, game.K

    def onward(coins: tuple[int, ...], n: int, arms: tuple[int, ...], state: State, found: Any) -> Any:
        """found: (end, rounds, arm, q) of each block so far."""
        start = len(arms)
        gaps = itertools.accumulate(coins, lambda z, coin: 0 if coin else z + 1, initial=0)
        clean = [z >= d for z in gaps]
        end = next((t for t in range(start + 1, H + 1) if coins[t - 1] and clean[t - 1]), H + d)
        rounds = [t for t in range(start + 1, min(end, H) + 1) if clean[t - 1]]
        q = distribution(state.losses, state.rate)
        for arm in range(K):
            now = arms + (arm,) * (min(end, H) - start)
            blocks = [*found, (end, rounds, arm, q)]
            stop = next(t for t in range(1, H + 1) if t >= latest or rule(t, coins[:t], now[:t]))
            if end >= stop:
                yield q[arm], blocks
                continue
            losses, weight, offset, top = game.feed(tuple(rounds), [])
            after = step(state, arm, float(losses[arm]), weight, offset, top, True).after
            for chance, rest in onward(coins, n + 1, now, after, blocks):
                yield q[arm] * chance, rest

    for coins in itertools.product((0, 1), repeat=H):
        weight = math.prod(game.beta if coin else 1.0 - game.beta for coin in coins)
        for chance, blocks in onward(coins, 1, (), State((0.0,) * K, game.first_rate), []):
            yield weight * chance, shown(game, blocks)


def shown(game: Play, blocks: Any) -> Steps:
    d, H = game.d, game.T
    last = min(blocks[-1][0] + d, H)
    starts = [0, *(end for end, *_ in blocks)]
    arms = [arm for k, (end, _, arm, _) in enumerate(blocks) for _ in range(starts[k], min(end, H))]
    arms += [arms[-1]] * (last - len(arms))
    later = range(d + 1, last + 1)
    mixed = sum(game.parts[t - 1 - s, s, arms[t - 1 - s]] - game.parts[t - 1 - s, s, arms[t - d - 1]]
                for t in later for s in range(d + 1))
    stale = sum((game.rho[t - 1, arms[t - d - 1]] - game.rho[t - 1] for t in later), np.zeros(game.K))
    moved, fresh, drawn = 0.0, np.zeros(game.K), np.zeros(game.K)
    for k, (end, rounds, arm, q) in enumerate(blocks):
        whole = game.rho[np.array(rounds, dtype=int) - 1].sum(axis=0)
        fresh += whole[arm] - whole
        drawn += q @ whole - whole
        pairs = [(r, s) for r in range(end + 1, end + d + 1) for s in range(d + 1) if r + s <= end + d and r <= H]
        part = sum((game.parts[r - 1, s] for r, s in pairs), np.zeros(game.K))
        moved += (np.array(blocks[k + 1][3]) - q) @ part if k + 1 < len(blocks) else part[arm] - q @ part
    return Steps(mixed, moved, stale, fresh, drawn)


@pytest.mark.parametrize(("d", "latest", "beta"), [(0, 6, 0.5), (1, 5, 0.5), (2, 6, 1 / 3)])
@pytest.mark.parametrize("seed", range(3))
def test_every_step_for_stopped_runs(d: int, latest: int, beta: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Play goes on to the end of the block, and for d more rounds; effects end d rounds before the last round here.
    parts = np.zeros((latest + 2 * d, d + 1, 2))
    parts[:latest] = random_components(rng, latest, d, 2)
    game = Play(parts, beta, 0.05)
    verdicts: dict[Any, bool] = {}

    def rule(t: int, coins: tuple[int, ...], arms: tuple[int, ...]) -> bool:
        return verdicts.setdefault((coins, arms), bool(rng.random() < 0.3))

    runs = list(steps(game, latest, rule))
    assert math.fsum(chance for chance, _ in runs) == pytest.approx(1.0)
    mean = Steps(*(sum(chance * np.asarray(one[k]) for chance, one in runs) for k in range(5)))
    assert mean.mixed == pytest.approx(mean.moved, abs=TINY)
    assert (1.0 - beta) ** d * mean.stale == pytest.approx(mean.fresh, abs=TINY)
    assert mean.fresh == pytest.approx(mean.drawn, abs=TINY)


@pytest.mark.parametrize("windows", [False, True])
def test_the_certificate_of_a_player_for_stopped_runs(windows: bool) -> None:
    made = ae.CompositeLossWrapper if windows else ae.CoinCleanWrapper
    player: Any = made(ae.MatchedTsallis(3), max_delay=2, seed=5, high=4.0)
    beta, kinds = player.update_probability, set()
    for _ in range(400):
        player.ask()
        done = player.tell(1.0)
        shown = player.certificate()
        rest = sum(shown.terms[name] for name in ("drift", "first rate", "penalty", "cost"))
        m = None if done.update else max(player.coins.since(done.round) - player.QUIET * 2, 0)
        ends = 16.0 / 3.0 if windows else 2.0
        price = theory.stopping_price(2, beta, m, windows=windows)
        assert shown.any_time == pytest.approx(rest + 4.0 * (ends + price))
        assert shown.any_time > shown.value
        player.ask()
        assert player.certificate() == shown
        kinds.add(m if m is None else m > 0)
    assert kinds == {None, False, True}
    assert f"the number is {amount(shown.any_time)} instead" in str(shown)
    # The report of the last round may be missing, unless it is an update round, but no other.
    assert player.tell(None).update is False
    last = player.certificate().any_time
    assert (last is None) == (player.counts.void_windows > 0)
    player.ask()
    player.tell(1.0)
    missed = player.certificate()
    assert missed.any_time is None
    assert "If the run is stopped by what it shows, nothing is proved, because reports were missing." in str(missed)
