"""Certificates: bounds on the expected regret, computed from a run, term by term; and sharper bounds of bases.

The value of a certificate is random. For losses and a number of rounds fixed in advance, the expected regret is at most
the expected value, where both expectations are over the player's coins and draws. One run gives one sample of the
value, and the regret of that run may be larger. If the number of rounds depends on what the run shows, `any_time` takes
the place of the value. docs/theory/adaptive.md has the proofs.
"""

import html
from collections.abc import Callable
from typing import Any, NamedTuple

from aftereffect import theory
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import effects
from aftereffect.core.text import amount


class Certificate(NamedTuple):
    """A bound on the expected regret after `rounds` rounds and `updates` updates, in the units of effects.

    For a panel, all numbers are for the sum of the units' regrets against one common arm.
    value: the sum of the terms. Its mean is at least the mean regret after a number of rounds that is fixed in advance.
        It may exceed `trivial`.
    any_time: the same for a run that is stopped by a rule which depends on what the player has shown, for example when
        the value is small enough; also if the certificate is read in a round chosen so. None if a report was missing,
        apart from that of the last round, or corrected after its block had ended.
    terms: ends (effects that cross the first and the last round), drift (changes of the distribution while effects
        were arriving), first rate, penalty (increases of the rate), cost (variance of the estimates), open stretch
        (rounds observed but not yet fed), missing (windows and stretches that are void because a report is missing;
        a report that arrives before its block ends costs nothing). If there is a prior: prior. If totals were corrected
        after their block had ended: corrections, which may be negative. If advice is followed: advice, its price if it
        were withdrawn now, which may be negative too; and opening, the rounds that the adviser played.
    worst_case: a bound for all losses, which does not depend on the run; it requires that no report is missing, and
        that none is corrected after its block has ended.
    trivial: the largest possible regret.
    informative: whether value is below trivial.
    worst_case_from: the first round with worst_case below trivial, or None. The value is usually below it earlier.
    impossible: how many totals or windows were out of range. If there are any, the bounds do not hold: the proof
        allows missing reports, but not reports that are discarded because of their value. If they were clipped, and the
        reason is that effects outlast max_delay, the bounds hold with the price of these tails (`theory.tail_bound`).

    >>> from aftereffect import default_player
    >>> player = default_player(n_arms=2, max_delay=1, seed=7)
    >>> for _ in range(200):
    ...     arm = player.ask()
    ...     played = player.tell(0.25 + 0.5 * arm)
    >>> found = player.certificate()
    >>> found.rounds, found.trivial, found.informative
    (200, 200.0, True)
    """

    rounds: int
    updates: int
    value: float
    any_time: float | None
    terms: dict[str, float]
    worst_case: float
    trivial: float
    informative: bool
    worst_case_from: int | None
    impossible: int

    def __str__(self) -> str:
        """Return the certificate in words, one term per line."""
        lines = [
            f"Rounds: {self.rounds:,}, updates: {self.updates:,}. Expected regret is at most the mean of a number that "
            f"is {amount(self.value)} in this run:"
        ]
        lines += [f"  {name:<13} {amount(term):>12}" for name, term in self.terms.items()]
        lines.append(f"This holds if the number of rounds was fixed in advance. {self.if_stopped()}")
        worth = "informative" if self.informative else "not informative yet"
        lines.append(f"This is {worth}: regret can be at most {amount(self.trivial)}.")
        first = self.worst_case_from
        since = "is never informative" if first is None else f"is informative from round {first:,} on"
        lines.append(
            f"For all losses it is at most {amount(self.worst_case)}, which {since}. Both bound an average over "
            "the player's own randomness, not the regret of this run."
        )
        if self.impossible:
            lines.append(
                f"Totals out of range: {self.impossible:,}. The range or max_delay is wrong, and neither bound holds."
            )
        return "\n".join(lines)

    def if_stopped(self) -> str:
        """Return a sentence on runs that are stopped by what they show."""
        if self.any_time is None:
            why = "corrected after they were learned from" if "corrections" in self.terms else "missing"
            return f"If the run is stopped by what it shows, nothing is proved, because reports were {why}."
        return f"If the run is stopped by what it shows, the number is {amount(self.any_time)} instead."

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap">{html.escape(str(self))}</pre>'


class Prices(NamedTuple):
    """The factors of a certificate's terms, and two of the terms, for one unit and in units of hi − lo.

    ends: the term "ends". moved: the factor of the probability mass moved. regret: the factor of the base's regret.
    open_stretch: the term "open stretch" divided by `regret`. missing: the factor of the number of void windows.
    worst_case: the worst case. stopping: the terms "ends" and "open stretch" at a stopping time. opening: that term.
    """

    ends: float
    moved: float
    regret: float
    open_stretch: float
    missing: float
    worst_case: float
    stopping: float
    opening: float = 0.0


def make(player: Any, prices: Prices) -> Certificate:
    """Return the certificate of a player, summed over its units."""
    bandit, _ = player.certified_base()
    span, T, M = player.effects, player.rounds_played, player.n_units
    missing, impossible, void, _ = player.counts
    h, factor, width = theory.entropy_range(player.n_arms), prices.regret, span.hi - span.lo
    lost = missing + (impossible if player.out_of_range == "void" else 0)
    terms = {
        "ends": prices.ends,
        "drift": prices.moved * bandit.moved,
        "first rate": factor * h * bandit.first_rate,
        # Before the first update these terms are 0; the factor is infinite if no update is possible.
        "penalty": factor * bandit.penalty if bandit.updates else 0.0,
        "cost": factor * bandit.cost if bandit.updates else 0.0,
        "open stretch": factor * prices.open_stretch if prices.open_stretch else 0.0,
        # With several units a void window counts twice: for its unit, and for the larger weights of the others.
        "missing": (1.0 if M == 1 else 2.0) * prices.missing * void / M if void else 0.0,
    }
    if bandit.prior_price:
        terms["prior"] = factor * bandit.prior_price
    if player.corrections is not None:
        terms["corrections"] = factor * player.corrections
    if prices.opening:
        terms["opening"] = prices.opening
    if player.advice_prices is not None:
        terms["advice"] = factor * player.advice_prices[0]
    terms = {name: M * width * term for name, term in terms.items()}
    value, most = sum(terms.values()), M * width * T
    any_time = None
    # The report of the round in which a run is stopped is not needed.
    if lost == player.unheard and player.corrections is None:
        kept = [term for name, term in terms.items() if name not in ("ends", "open stretch")]
        any_time = sum(kept) + M * width * prices.stopping
        if player.advice_prices is not None:
            # The unfinished update may make the advice worse: its greatest price counts.
            any_time += M * width * factor * player.advice_prices[1] - terms["advice"]
    since = informative_from(lambda rounds: player.worst_case(rounds) < rounds)
    worst = M * width * prices.worst_case
    return Certificate(T, bandit.updates, value, any_time, terms, worst, most, value < most, since, impossible)


def informative_from(below: Callable[[int], bool], period: int = 1) -> int | None:
    """Return the T from which on a bound is below the largest possible regret; None if beyond 2²⁰⁰.

    below: whether it is so at T. The ratio of the bound to T decreases in T, except for a step up at each multiple of
    `period`, caused by a floor. So search the multiples by doubling and bisection, then bisect the rounds before the
    first multiple that is below.
    """
    low, high = 0, 1
    while not below(high * period):
        low, high = high, 2 * high
        if high > 1 << 200:
            return None
    high = first_true(lambda k: below(k * period), low, high)
    return first_true(below, (high - 1) * period, high * period)


def first_true(holds: Callable[[int], bool], least: int, most: int) -> int:
    """Return the first number in (least, most] for which a monotone condition holds; it must hold at `most`."""
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if holds(middle) else (middle, most)
    return most


def sharp_bound(bandit: Any, d: int, beta: float, maximize: bool, T: int) -> float:
    """Return the sharper form of Theorem 4 (docs/theory/sharper.md).

    TsallisFTRL and Exp3 have bounds of their own; for other bases it uses their `stability` and `regret_bound`.
    """
    # By the type itself: a subclass may update differently.
    own = {TsallisFTRL: theory.tsallis_wrapper_bound, Exp3: theory.exp3_wrapper_bound}.get(type(bandit))
    if own is not None:
        return own(bandit.n_arms, d, T, beta, bandit.learning_rate, effects.DIRECTIONS[maximize])
    base = bandit.regret_bound(theory.most_updates(d, T))
    return theory.wrapper_regret_bound_sharp(d, T, beta, bandit.stability(), base)
