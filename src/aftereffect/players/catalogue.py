"""Everyone who can play one problem, tuned to it, with the assumptions each one uses.

The rows of `aftereffect compare`: players under composite anonymous feedback first, then naive and uniform play,
then the labelled baselines, who see more than anyone here should.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.tsallis_inf import TsallisINF
from aftereffect.bandits.ucb1 import UCB1
from aftereffect.bandits.uniform import Uniform
from aftereffect.core import checks
from aftereffect.players import labelled, rivals
from aftereffect.players.default import default_player
from aftereffect.players.naive import Naive
from aftereffect.players.wrapper import CompositeLossWrapper


class Problem(NamedTuple):
    """What there is to know about a problem before it is played; None where it is not known or there is no such thing.

    mean_delay, delay_variance: of the delay after which a unit of effect arrives.
    coefficients: of a linear composite loss.
    """

    n_arms: int
    max_delay: int
    horizon: int
    mean_delay: float | None = None
    delay_variance: float | None = None
    coefficients: Sequence[float] | None = None
    direction: str = "minimize"
    low: float = 0.0
    high: float = 1.0


class Entry(NamedTuple):
    """A player by name; needs: the assumptions it uses, in the words of the players' `needs`."""

    name: str
    player: Any
    needs: tuple[str, ...]


def catalogue(problem: Problem) -> list[Entry]:
    """Return all players that the problem has room for, unplayed.

    >>> names = [entry.name for entry in catalogue(Problem(n_arms=3, max_delay=2, horizon=1000))]
    >>> names[:3]
    ['wrapper, Tsallis FTRL', 'wrapper, Exp3', 'wrapper, Tsallis-INF']
    >>> "ODAAF" in names                         # no mean delay is known
    False
    """
    return list(entries(problem))


def entries(problem: Problem) -> Iterator[Entry]:
    """Yield the same players, each made when it is asked for."""
    checks.integer("n_arms", problem.n_arms, low=2)
    for some in (_wrappers, _anonymous, _controls, _labelled):
        yield from some(problem)


def _range(problem: Problem) -> dict[str, Any]:
    return {"direction": problem.direction, "low": problem.low, "high": problem.high}


def _wrappers(problem: Problem) -> Iterator[Entry]:
    K, d, T = problem.n_arms, problem.max_delay, problem.horizon
    sizes: dict[str, Any] = {"n_arms": K, "max_delay": d, "horizon": T} | _range(problem)
    beta = theory.best_update_probability(d)
    both = ("max_delay", "horizon")
    tuned = CompositeLossWrapper.tuned
    yield Entry("wrapper, Tsallis FTRL", tuned(**sizes, base="tsallis", seed=0), both)
    yield Entry("wrapper, Exp3", tuned(**sizes, base="exp3", seed=0), both)
    anytime: dict[str, Any] = {"max_delay": d, "coins": beta, "seed": 0} | _range(problem)
    reduced = TsallisINF(K, "reduced_variance")
    yield Entry("wrapper, Tsallis-INF", CompositeLossWrapper(reduced, **anytime), ("max_delay",))
    yield Entry("wrapper, UCB1", CompositeLossWrapper(UCB1(K), **anytime), ("max_delay", "stochastic losses"))
    yield Entry("default player", default_player(K, d, seed=0, **_range(problem)), ("max_delay",))
    doubling = rivals.DoublingWrapper(K, max_delay=d, seed=0, **_range(problem))
    yield Entry("wrapper, doubling T", doubling, doubling.needs)
    unknown = rivals.UnknownDelayWrapper(K, horizon=T, seed=0, **_range(problem))
    yield Entry("wrapper, unknown d", unknown, unknown.needs)


def _anonymous(problem: Problem) -> Iterator[Entry]:
    K, d, T = problem.n_arms, problem.max_delay, problem.horizon
    ends: dict[str, Any] = {"seed": 0} | _range(problem)
    yield _entry("CLW 2018", rivals.CLW2018.tuned(n_arms=K, max_delay=d, horizon=T, **ends))
    yield _entry("fixed blocks", rivals.FixedBlock.tuned(n_arms=K, max_delay=d, horizon=T, **ends))
    yield _entry("mini-batches", rivals.MiniBatch.tuned(n_arms=K, horizon=T, max_delay=d, **ends))
    if d <= 1:
        yield _entry("blinded bandit", rivals.Blinded.tuned(n_arms=K, horizon=T, max_delay=d, **ends))
    yield _entry("UCB on clean windows", rivals.BlockUCB(K, max_delay=d, **ends))
    yield _entry("ARS-UCB", rivals.ARSUCB(K, **ends))
    yield _entry("ARS-Exp3", rivals.ARSExp3(K, **ends))
    if problem.mean_delay is not None:
        known: dict[str, Any] = {"horizon": T, "mean_delay": problem.mean_delay} | ends
        yield _entry("ODAAF", rivals.ODAAF(K, **known))
        yield _entry("ODAAF-B", rivals.ODAAFB(K, max_delay=d, **known))
        if problem.delay_variance is not None:
            yield _entry("ODAAF-V", rivals.ODAAFV(K, delay_variance=problem.delay_variance, **known))
    if problem.coefficients is not None:
        linear = rivals.LinearComposite.tuned(n_arms=K, horizon=T, coefficients=problem.coefficients, **ends)
        yield _entry("linear composite", linear)


def _controls(problem: Problem) -> Iterator[Entry]:
    K, d, T = problem.n_arms, problem.max_delay, problem.horizon
    # A naive player's range is a total's: d+1 effects may arrive at once.
    totals: dict[str, Any] = {"direction": problem.direction, "seed": 0}
    totals |= {"low": (d + 1) * min(problem.low, 0.0), "high": (d + 1) * max(problem.high, 0.0)}
    rate = math.sqrt(2.0 * math.log(K) / (K * T))
    yield Entry("naive Exp3", Naive(Exp3(K, rate), **totals), ("horizon",))
    yield Entry("naive UCB1", Naive(UCB1(K), **totals), ("stochastic losses",))
    coins = theory.best_update_probability(d)
    control = CompositeLossWrapper(Uniform(K), max_delay=d, coins=coins, seed=0, **_range(problem))
    yield Entry("uniform play", control, ())


def _labelled(problem: Problem) -> Iterator[Entry]:
    K, d, T = problem.n_arms, problem.max_delay, problem.horizon
    ends: dict[str, Any] = {"seed": 0} | _range(problem)
    copies = math.sqrt(2.0 * math.log(K) * (d + 1) / (K * T))
    yield _entry("delayed Exp3", labelled.DelayedExp3.tuned(K, d, T, **ends))
    yield _entry("BOLD, Exp3", labelled.BOLD(Exp3(K, copies), d, **ends))
    yield _entry("QPM-D, UCB1", labelled.QPMD(UCB1(K), d, **ends))
    yield _entry("delayed UCB1", labelled.DelayedUCB1(K, **ends))
    for tuning in ("simple", "advanced"):
        yield _entry(f"Zimmert-Seldin, {tuning}", labelled.ZimmertSeldin2020(K, d, tuning=tuning, **ends))


def _entry(name: str, player: Any) -> Entry:
    return Entry(name, player, tuple(player.needs))
