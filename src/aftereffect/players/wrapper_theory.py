"""What theory says about Algorithm 1 around a base: rates to play with, and a bound on its regret (Section 4).

Two forms of each. "printed" is the paper's: Corollary 7 and Theorem 4. "sharp" is for the same algorithm, with the
constants of docs/theory/sharper.md and the rates that make them smallest.
"""

import math

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import AdaptiveTsallis
from aftereffect.bandits.exp3 import Exp3
from aftereffect.bandits.exp3_ix import Exp3IX
from aftereffect.bandits.protocol import Bandit
from aftereffect.bandits.tsallis import TsallisFTRL
from aftereffect.core import checks, effects
from aftereffect.core.errors import InvalidArgument
from aftereffect.theory.tuning import FORMS

# Bases whose regret_bound(n) is concave in n, so that it may be taken at the mean number of updates.
CONCAVE: tuple[type, ...] = (TsallisFTRL, Exp3, Exp3IX)


def tuned(base: str, n_arms: int, max_delay: int, horizon: int, form: str, direction: str) -> tuple[Bandit, float]:
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


def regret_bound(
    bandit: Bandit, max_delay: int, update_probability: float | None, span: effects.Effects, horizon: int, form: str
) -> float:
    """Return min(Theorem 4 in this form, T) times the range, for effects that are never negative and drawn coins."""
    T, d, beta = checks.integer("horizon", horizon, low=1), max_delay, update_probability
    checks.choice("form", form, FORMS)
    if beta is None:
        raise InvalidArgument("coins must be a bias for Theorem 4 to hold, but got a given sequence")
    if span.lo < 0.0:
        raise InvalidArgument(f"low must be at least 0 for Theorem 4 to hold, but got {span.lo!r}")
    if theory.most_updates(d, T) == 0:
        return T * span.hi
    if isinstance(bandit, AdaptiveTsallis):
        # It has one form only, and moves little in all rather than in each update.
        bound = theory.window_worst_case(bandit.n_arms, d, T, beta, bandit.first_rate)
    elif form == "sharp":
        bound = _sharp(bandit, d, beta, span.maximize, T)
    else:
        base = bandit.regret_bound(theory.most_updates(d, T))
        bound = theory.wrapper_regret_bound(d, T, beta, bandit.stability(), base)
    return min(bound, T) * span.hi


def _sharp(bandit: Bandit, d: int, beta: float, maximize: bool, T: int) -> float:
    """Return the sharper Theorem 4: in full for the paper's bases, for others with what they say of themselves."""
    direction = effects.DIRECTIONS[maximize]
    # A subclass may learn otherwise: exactly these classes are meant.
    if type(bandit) is TsallisFTRL:
        return theory.tsallis_wrapper_bound(bandit.n_arms, d, T, beta, bandit.learning_rate, direction)
    if type(bandit) is Exp3:
        return theory.exp3_wrapper_bound(bandit.n_arms, d, T, beta, bandit.learning_rate, direction)
    base = bandit.regret_bound(theory.most_updates(d, T))
    if type(bandit) in CONCAVE:
        base = min(base, _at_mean(bandit, theory.expected_updates(d, T, beta)))
    return theory.wrapper_regret_bound_sharp(d, T, beta, bandit.stability(), base)


def _at_mean(bandit: Bandit, mean: float) -> float:
    """Return the regret bound of a base at a mean number of updates, on the straight line between whole numbers."""
    n = math.floor(mean)
    below, above = bandit.regret_bound(n), bandit.regret_bound(n + 1)
    return below + (mean - n) * (above - below)
