"""What a player can say of its own regret as it plays, term by term, beside what holds whatever happens.

The figure bounds an *average*. For losses and a number of rounds fixed in advance, the regret that this player can
expect, over its own coins and draws, is at most what it can expect this figure to be. One run shows one draw of it, and
the regret of that run may be larger. docs/theory/adaptive.md has the proof.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.exp3_ix import Exp3IX
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks, effects
from aftereffect.core.errors import InvalidArgument
from aftereffect.players.wrapper.windows import Counts
from aftereffect.theory.tuning import FORMS


def shown(figure: float) -> str:
    """Return a figure to three digits or to whole units, whichever is more.

    >>> shown(1234567.8), shown(12.345), shown(0.0)
    ('1,234,568', '12.3', '0')
    """
    return f"{figure:,.0f}" if abs(figure) >= 1000.0 else f"{figure:.3g}"


class Certificate(NamedTuple):
    """A bound on expected regret after so many rounds, in the units of effects.

    For a panel all of it is for the units' regrets added up, against one common arm.
    value: the sum of the terms. Its mean is at least the mean regret; it is never cut at what is trivially true.
    terms: ends (what lies across the first and last rounds), drift (the distribution has moved while effects were
        on their way), first rate, penalty (the rate has grown), cost (estimates were noisy), open stretch (what has
        been seen but not learned from), missing (reports that never came).
    worst_case: the same for any losses whatever, known beforehand; with no report missing.
    trivial: the most that regret can be.
    informative: whether value is below that.
    worst_case_from: the first round with worst_case below trivial, or None. The value usually gets there sooner.
    impossible: how many totals were out of range and taken as missing. The proof does not cover
        this: a report may be missing at any time, but not because of its value.
    """

    rounds: int
    updates: int
    value: float
    terms: dict[str, float]
    worst_case: float
    trivial: float
    informative: bool
    worst_case_from: int | None
    impossible: int

    def __str__(self) -> str:
        """Say it in words."""
        lines = [
            f"Rounds: {self.rounds:,}, updates: {self.updates:,}. The regret to be expected is at most the mean of a "
            f"figure that is {shown(self.value)} in this run:"
        ]
        lines += [f"  {name:<13} {shown(term):>12}" for name, term in self.terms.items()]
        worth = "informative" if self.informative else "not informative yet"
        lines.append(f"This is {worth}: regret can be at most {shown(self.trivial)}.")
        first = self.worst_case_from
        since = "is never informative" if first is None else f"is informative from round {first:,} on"
        lines.append(
            f"Whatever the losses, it is at most {shown(self.worst_case)}, which {since}. Both bound an average over "
            "the player's own chances, not this one run."
        )
        if self.impossible:
            lines.append(
                f"Totals out of range: {self.impossible:,}. The range or max_delay is wrong, and neither holds."
            )
        return "\n".join(lines)


def certified_base(player: Any) -> tuple[AdaptiveTsallis, float]:
    """Return a player's base and its β, if it keeps the accounts a certificate is made of."""
    if not isinstance(player.bandit, AdaptiveTsallis):
        raise InvalidArgument(
            "bandit must keep account of its costs, as AdaptiveTsallis does, for a certificate, "
            f"but got {player.bandit!r}"
        )
    beta: float | None = player.update_probability
    if beta is None:
        raise InvalidArgument(
            "coins must be a bias for a certificate, but got a given sequence: the losses may have been made to fit it"
        )
    return player.bandit, beta


class Prices(NamedTuple):
    """In units of an action's range: the ends; a unit of mass moved; a unit of the base's regret; the open stretch; a
    report that is missing; the worst case.
    """

    ends: float
    moved: float
    regret: float
    open_stretch: float
    missing: float
    worst_case: float


def make(player: Any, prices: Prices, counts: Sequence[Counts]) -> Certificate:
    """Return the certificate of a player for so many units as there are counts, added up over them."""
    bandit, _ = certified_base(player)
    span, T, M = player.effects, player.rounds_played, len(counts)
    h, factor, width = theory.entropy_range(player.n_arms), prices.regret, span.hi - span.lo
    void = player.out_of_range == "void"
    impossible = sum(unit.out_of_range for unit in counts)
    lost = sum(unit.missing for unit in counts) + (impossible if void else 0)
    terms = {
        "ends": prices.ends,
        "drift": prices.moved * bandit.moved,
        "first rate": factor * h * bandit.first_rate,
        # Where no update can be, its price is infinite, and there is nothing to pay.
        "penalty": factor * bandit.penalty if bandit.updates else 0.0,
        "cost": factor * bandit.cost if bandit.updates else 0.0,
        "open stretch": factor * prices.open_stretch if prices.open_stretch else 0.0,
        # Beside units that report, one that does not costs twice: its own part, and theirs, which count for more.
        "missing": (1.0 if M == 1 else 2.0) * prices.missing * lost / M,
    }
    terms = {name: M * width * term for name, term in terms.items()}
    value, most = sum(terms.values()), M * width * T
    since = informative_from(player.worst_case)
    worst = M * width * prices.worst_case
    return Certificate(T, bandit.updates, value, terms, worst, most, value < most, since, impossible)


def informative_from(worst_case: Callable[[int], float]) -> int | None:
    """Return the T from which a worst case in units of range is below T, by doubling and halving; None beyond 2²⁰⁰."""
    low, high = 0, 1
    while worst_case(high) >= high:
        low, high = high, 2 * high
        if high > 1 << 200:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if worst_case(middle) >= middle else (low, middle)
    return high


def tuned_base(base: str, n_arms: int, max_delay: int, horizon: int, form: str, direction: str) -> tuple[Bandit, float]:
    """Return a base algorithm at its rate for this horizon, and β."""
    checks.choice("base", base, ("tsallis", "exp3"))
    checks.choice("form", form, FORMS)
    beta = theory.best_update_probability(max_delay)
    if form == "sharp":
        best = theory.tsallis_tuning_sharp if base == "tsallis" else theory.exp3_tuning_sharp
        beta, eta, _ = best(n_arms, max_delay, horizon, direction)
    elif base == "tsallis":
        eta = theory.corollary_learning_rate(max_delay, horizon)
    else:
        eta = theory.exp3_learning_rate(n_arms, max_delay, horizon)
    return TsallisFTRL(n_arms, learning_rate=eta) if base == "tsallis" else Exp3(n_arms, learning_rate=eta), beta


def printed_bound(base: str, n_arms: int, max_delay: int, horizon: int, learning_rate: float) -> float:
    """Return Theorem 4 for a base of that name at β = 1/(2d+1); infinite where no update can happen."""
    N = theory.most_updates(max_delay, horizon)
    if N == 0:
        return math.inf
    if base == "tsallis":
        xi = theory.tsallis_stability(n_arms, learning_rate)
        regret = theory.tsallis_regret_bound(n_arms, N, learning_rate)
    else:
        xi, regret = theory.exp3_stability(learning_rate), theory.exp3_regret_bound(n_arms, N, learning_rate)
    beta = theory.best_update_probability(max_delay)
    return theory.wrapper_regret_bound(max_delay, horizon, beta, xi, regret)


def sharp_bound(bandit: Bandit, d: int, beta: float, maximize: bool, T: int) -> float:
    """Return the sharper Theorem 4: in full for the paper's bases, for others with what they say of themselves."""
    direction = effects.DIRECTIONS[maximize]
    # A subclass may learn otherwise: exactly these classes are meant.
    if type(bandit) is TsallisFTRL:
        return theory.tsallis_wrapper_bound(bandit.n_arms, d, T, beta, bandit.learning_rate, direction)
    if type(bandit) is Exp3:
        return theory.exp3_wrapper_bound(bandit.n_arms, d, T, beta, bandit.learning_rate, direction)
    base = bandit.regret_bound(theory.most_updates(d, T))
    if type(bandit) is Exp3IX:
        # Its bound is concave in n: take it at the mean number of updates, on the line between whole numbers.
        mean = theory.expected_updates(d, T, beta)
        below, above = (bandit.regret_bound(math.floor(mean) + k) for k in (0, 1))
        base = min(base, below + (mean - math.floor(mean)) * (above - below))
    return theory.wrapper_regret_bound_sharp(d, T, beta, bandit.stability(), base)
