"""Phased elimination for stochastic effects under anonymous feedback: ODAAF, ODAAF-B, ODAAF-V and Garg-Akash.

The first three are competitors of Algorithm 1 in the stochastic setting of Pike-Burke et al. (2018): the effects of an
arm are i.i.d.; each arrives as a whole after a random delay, whose distribution is the same for all arms; the player
observes the sum of the effects that arrive in a round (anonymous feedback in Section 1 of the paper). The last is for
effects that arrive in parts. None has a guarantee against an adversary, because their stretches are predictable.

    phase m       ├─ arm a ─┼─ arm b ─┼─ arm c ─┤├─ bridge ─┤      each stretch n_m − n_{m−1} rounds
    totals         of a      of b      of c       discarded

By the end of phase m every active arm has been played n_m rounds, over all phases. Their mean total is biased only by
late effects of other arms, which it includes, and by late effects of this arm, which it misses; n_m is large enough for
this bias to be small compared with D = 2⁻ᵐ. Arms whose mean is worse than the best mean by more than D are eliminated.

They differ in n_m. With T = horizon, E = mean_delay, V = delay_variance, d = max_delay and ℓ = ln(T D²), all
lengths but the last have the form

    q(x) = ⌈ D⁻² ( √(2ℓ) + √(2ℓ + (8/3)Dℓ + 2Dx) )² ⌉

    (14)   ODAAF       q(3mE)                            only E is known
    (18)   ODAAF-B     max( min(md, (14)), q(2E) )       E, and that no delay exceeds d
    (25)   ODAAF-V     q(2(E + 2V))                      E and V
    (28)   Garg-Akash  ⌈ (2D²)⁻¹ ( √ℓ + √(ℓ + 4Dmd) )² ⌉

The published form of (18) has m·min(d, (14)/m); here m is multiplied in, so that integers stay integers. The phases of
the published curves of ODAAF have the lengths (14) with (m+1)E instead of mE: `offset=1` gives those.

This library's choices: if T D² < 1, the logarithm ℓ is taken as 0; only the first phase may have T D² < e; lengths are
at least 1 and at most T.

Reference: Pike-Burke, Agrawal, Szepesvári and Grünewälder, "Bandits with delayed, aggregated anonymous
feedback", ICML 2018, and its supplement.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, effects, kernel
from aftereffect.core.checks import owned
from aftereffect.core.kernel import DREW, FED, OWN, FloatState, WordState, helper
from aftereffect.players.base import KernelPlayer, number
from aftereffect.players.limits import Common, Limits


def log_term(horizon: int, phase: int) -> float:
    """Return ℓ = max(ln(T D²), 0) with D = 2⁻ᵐ."""
    return max(math.log(horizon) - 2 * phase * math.log(2.0), 0.0)


def whole(horizon: int, value: float) -> int:
    """Return a length rounded up and clipped to 1..T."""
    return max(math.ceil(min(value, horizon)), 1)


def quadratic(horizon: int, phase: int, x: float) -> int:
    """Return q(x) for phase m, as used in (14), (18) and (25)."""
    D, log = 0.5**phase, log_term(horizon, phase)
    root = math.sqrt(2.0 * log) + math.sqrt(2.0 * log + 8.0 / 3.0 * D * log + 2.0 * D * x)
    return whole(horizon, root / D * (root / D))


def mean_length(horizon: int, phase: int, mean_delay: float, offset: int = 0) -> int:
    """Return n_m of ODAAF by (14), with (m + offset)E instead of mE.

    The lengths of the published curves, with horizon 250,000 and mean delay 50:

    >>> [mean_length(250_000, phase, 50.0, offset=1) for phase in (1, 2, 3, 4)]
    [2126, 6548, 18668, 51147]
    """
    return quadratic(horizon, phase, 3.0 * (phase + offset) * mean_delay)


def bounded_length(horizon: int, phase: int, mean_delay: float, max_delay: int) -> int:
    """Return n_m of ODAAF-B by (18).

    >>> [bounded_length(250_000, phase, 25.0, 50) for phase in (1, 2, 3, 4)]
    [786, 2123, 6030, 17684]
    """
    wait = min(phase * max_delay, mean_length(horizon, phase, mean_delay))
    return max(wait, quadratic(horizon, phase, 2.0 * mean_delay))


def variance_length(horizon: int, phase: int, mean_delay: float, delay_variance: float) -> int:
    """Return n_m of ODAAF-V by (25)."""
    return quadratic(horizon, phase, 2.0 * (mean_delay + 2.0 * delay_variance))


def naive_length(horizon: int, phase: int, max_delay: int) -> int:
    """Return n_m by (28), which needs only a bound on the delay."""
    D, log = 0.5**phase, log_term(horizon, phase)
    root = math.sqrt(log) + math.sqrt(log + 4.0 * D * phase * max_delay)
    return whole(horizon, root / D * (root / D) / 2.0)


def phase_lengths(horizon: int, length: Callable[[int], int]) -> NDArray[np.int64]:
    """Return n_1 < n_2 < ... for all phases that can begin within the horizon.

    At least two arms are active until the end of a phase, so no phase begins after one with 2 n_m ≥ T.

    >>> phase_lengths(1000, lambda phase: mean_length(1000, phase, 2.0))
    array([274, 785])
    """
    found = [length(1)]
    while 2 * found[-1] < horizon and log_term(horizon, len(found) + 1) >= 1.0:
        found.append(length(len(found) + 1))
    return owned(np.array(found, dtype=np.int64))


MEASURING, BRIDGING, SETTLED = 0, 1, 2


class PhaseParams(NamedTuple):
    """lengths: n_1 < n_2 < ... best_first: from the second phase on, play the arms in the order of their means."""

    lengths: NDArray[np.int64]
    best_first: bool
    bridge: bool
    limits: Limits


# state, after what every player has: phase m, the mode, how many arms this phase has finished, rounds left in the
# stretch, its arm, whether it is about to begin, the number of active arms; then the active arms in the order of
# play; then for each arm its sum of totals and its mean loss.
PHASE, MODE, PLACE, LEFT, ARM, BEGINS, ACTIVE, ORDER = (OWN + k for k in range(8))


def size(params: PhaseParams, n_arms: int) -> int:
    """Seven scalars, three numbers per arm."""
    return ORDER + 3 * n_arms


def begin(params: PhaseParams, n_arms: int, state: FloatState) -> None:
    """Write the state before round 1, with all arms active."""
    state[ACTIVE] = n_arms
    for i in range(n_arms):
        state[ORDER + i] = i
    next_phase(params, state)


def ask(params: PhaseParams, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the arm of the stretch."""
    state[DREW] = state[BEGINS]
    state[BEGINS] = 0.0
    return int(state[ARM])


def tell(params: PhaseParams, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Add the total to its arm's sum; at the end of a stretch choose the next. A missing total extends the stretch."""
    if state[MODE] == SETTLED:
        return 0
    if state[MODE] == MEASURING:
        if total != total:
            return 0
        # Means are clipped to the range; their sums only have to stay finite.
        state[ORDER + n_arms + arm] = min(max(state[ORDER + n_arms + arm] + total, -1e300), 1e300)
    state[LEFT] -= 1.0
    if state[LEFT] > 0.0:
        return 0
    if state[MODE] == BRIDGING:
        next_phase(params, state)
        return 0
    n = params.lengths[int(state[PHASE]) - 1]
    state[FED] = effects.fed_loss(params.limits.span, 0, state[ORDER + n_arms + arm] / n)
    state[ORDER + 2 * n_arms + arm] = state[FED]
    state[PLACE] += 1.0
    if state[PLACE] < state[ACTIVE]:
        stretch(params, state, int(state[ORDER + int(state[PLACE])]))
    else:
        close_phase(params, state, state[ORDER + 2 * n_arms :])
    return 1


@helper
def stretch(params: PhaseParams, state: FloatState, arm: int) -> None:
    """Begin a stretch of n_m − n_{m−1} rounds."""
    phase = int(state[PHASE])
    before = params.lengths[phase - 2] if phase > 1 else 0
    state[LEFT] = params.lengths[phase - 1] - before
    state[ARM] = arm
    state[BEGINS] = 1.0


@helper
def next_phase(params: PhaseParams, state: FloatState) -> None:
    """Begin a phase with the first active arm."""
    state[PHASE] += 1.0
    state[MODE] = MEASURING
    state[PLACE] = 0.0
    stretch(params, state, int(state[ORDER]))


@helper
def close_phase(params: PhaseParams, state: FloatState, losses: FloatState) -> None:
    """Eliminate the arms whose mean loss exceeds the least by more than D_m, and begin the next mode."""
    best = int(state[ORDER])
    for k in range(1, int(state[ACTIVE])):
        arm = int(state[ORDER + k])
        if losses[arm] < losses[best]:
            best = arm
    gap = 0.5 ** int(state[PHASE])
    kept = 0
    for k in range(int(state[ACTIVE])):
        arm = int(state[ORDER + k])
        if losses[arm] - gap <= losses[best]:
            # The remaining arms keep their order or, if best_first, are sorted by insertion.
            place = kept
            while params.best_first and place > 0 and losses[arm] < losses[int(state[ORDER + place - 1])]:
                state[ORDER + place] = state[ORDER + place - 1]
                place -= 1
            state[ORDER + place] = arm
            kept += 1
    state[ACTIVE] = kept
    if kept == 1 or int(state[PHASE]) == params.lengths.shape[0]:
        state[MODE] = SETTLED
        state[ARM] = best
        state[BEGINS] = 1.0
    elif params.bridge:
        state[MODE] = BRIDGING
        stretch(params, state, best)
    else:
        next_phase(params, state)


kernel.register(PhaseParams, kernel.PlayerKernel(size, begin, ask, tell))


# Floats represent integers exactly up to this one.
LONGEST = 2**53


class PhasedElimination(KernelPlayer):
    """Base class of the four algorithms, which differ only in the table of lengths.

    Phase m = 1, 2, ... with D_m = 2⁻ᵐ plays the active arms one after another, each until it has been played n_m rounds
    over all phases; then the arms whose mean total is worse than the best by more than D_m, in units of hi − lo, are
    eliminated. With a bridge, the best arm is then played for n_m − n_{m−1} rounds whose totals are ignored. When one
    arm is left, or after the last phase, the best arm is played forever.

    lengths: n_1, n_2, ..., how many rounds an active arm has been played by the end of each phase.
    """

    BEST_FIRST = False
    """Whether a phase plays the arms in the order of their means, from the second phase on; else by index."""
    BRIDGE = False
    """Whether the best arm is played between phases."""

    def __init__(self, n_arms: int, horizon: int, length: Callable[[int, int], int], limits: Limits) -> None:
        """length: the function (T, m) ↦ n_m. limits: the limits of totals."""
        self.horizon = checks.integer("horizon", horizon, low=1, high=LONGEST)
        self.lengths = phase_lengths(self.horizon, partial(length, self.horizon))
        super().__init__(n_arms, PhaseParams(self.lengths, self.BEST_FIRST, self.BRIDGE, limits))

    phase: int = number(PHASE, "m, from 1; it no longer changes once only the best arm is played.", int)

    @property
    def active_arms(self) -> tuple[int, ...]:
        """The arms not yet eliminated, in the order of play."""
        return tuple(int(arm) for arm in self._numbers[ORDER : ORDER + int(self._numbers[ACTIVE])])


class ODAAF(PhasedElimination):
    """Optimism for delayed, aggregated anonymous feedback; needs only the mean of the delay.

    n_arms: K. horizon: T.
    mean_delay: E, the expected delay.
    mean_delay_offset: n_m is (14) of this module with (m + offset)E instead of mE: 0 as published; 1 gives the lengths
        in the published curves (to within one round; 0 does not).
    direction, low, high: "minimize" losses or "maximize" rewards, and the range of one action's whole effect.
    out_of_range: as for the wrapper. seed: not used; the algorithm is deterministic.

    A phase plays the arms by index; the algorithm allows any order, and in the published curves the worse arm, of index
    0, is first. A block of a trace is one stretch, and its fed loss is the arm's mean total over all its stretches,
    scaled to a loss in [0, 1]. Elimination uses these estimates. (Clipping them to the range can only reduce their
    error.) A missing total makes its stretch one round longer.

    Regret: Σ_j O(log(TΔ_j²)/Δ_j + log(1/Δ_j)E) over the suboptimal arms; O(√(KT log K) + K E log T) for any gaps.

    >>> player = ODAAF(2, horizon=1000, mean_delay=2.0, direction="maximize")
    >>> player.lengths
    array([274, 785])
    >>> for _ in range(2 * 274):
    ...     played = player.tell(1.0 if player.ask() == 1 else 0.0)
    >>> played.fed_loss, player.active_arms
    (0.0, (1,))

    Reference: Pike-Burke, Agrawal, Szepesvári and Grünewälder, "Bandits with delayed, aggregated anonymous
    feedback", ICML 2018: Algorithm 1, Theorem 2 and Corollary 3.
    """

    def __init__(
        self, n_arms: int, *, horizon: int, mean_delay: float, mean_delay_offset: int = 0, **common: Unpack[Common]
    ) -> None:
        self.mean_delay = E = checks.real("mean_delay", mean_delay, low=0.0)
        self.mean_delay_offset = k = checks.integer("mean_delay_offset", mean_delay_offset, low=0, high=LONGEST)
        super().__init__(n_arms, horizon, lambda T, m: mean_length(T, m, E, k), self.limits(None, **common))


class ODAAFB(PhasedElimination):
    """ODAAF-B: ODAAF with shorter phases, for delays with a known bound.

    max_delay: d.
    mean_delay: E, for n_m by (18); None if not known, for n_m by (28), which needs only d.
    The other arguments are those of `ODAAF`. As in the published curves, the better arm is first from the second phase
    on, and the best one is played between phases.

    Regret with (18): Σ_j O(log(TΔ_j²)/Δ_j + E + min{d, log(TΔ_j²)/Δ_j + log(1/Δ_j)E}); O(√(KT log K) + K E)
    if d ≤ √(T log K/K) + E.

    >>> ODAAFB(2, horizon=250_000, mean_delay=25.0, max_delay=50).lengths[:4]
    array([  786,  2123,  6030, 17684])

    Reference: Pike-Burke et al., ICML 2018: Theorem 6 and Corollary 7; (28) is from its supplement.
    """

    BEST_FIRST, BRIDGE = True, True

    def __init__(
        self, n_arms: int, *, horizon: int, max_delay: int, mean_delay: float | None, **common: Unpack[Common]
    ) -> None:
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0, high=LONGEST)
        E = None if mean_delay is None else checks.real("mean_delay", mean_delay, low=0.0, high=float(d))
        self.mean_delay = E

        def length(T: int, m: int) -> int:
            return naive_length(T, m, d) if E is None else bounded_length(T, m, E, d)

        super().__init__(n_arms, horizon, length, self.limits(d + 1, **common))


class ODAAFV(PhasedElimination):
    """ODAAF-V: ODAAF with shorter phases, for delays with a known variance.

    delay_variance: V, for n_m by (25). If E ≥ 1, the paper allows V/E instead of V; pass that value here. The published
        curves with delays N₊(50, σ²) fit V = σ²(1 − 2/π), the variance of a half-normal distribution.
    The other arguments are those of `ODAAF`; order of the arms and bridge are as in `ODAAFB`.

    Regret: Σ_j O(log(TΔ_j²)/Δ_j + E + V); O(√(KT log K) + K E + K V) for any gaps.

    >>> ODAAFV(2, horizon=250_000, mean_delay=50.0, delay_variance=50.0).lengths[:4]
    array([ 2126,  4986, 12149, 30698])

    Reference: Pike-Burke et al., ICML 2018: Theorem 8 and Corollary 9.
    """

    BEST_FIRST, BRIDGE = True, True

    def __init__(
        self, n_arms: int, *, horizon: int, mean_delay: float, delay_variance: float, **common: Unpack[Common]
    ) -> None:
        self.mean_delay = E = checks.real("mean_delay", mean_delay, low=0.0)
        self.delay_variance = V = checks.real("delay_variance", delay_variance, low=0.0)
        super().__init__(n_arms, horizon, lambda T, m: variance_length(T, m, E, V), self.limits(None, **common))


class GargAkash(PhasedElimination):
    """Phased elimination for stochastic effects that arrive in parts within d rounds.

    max_delay: d. horizon: T.
    direction, low, high, out_of_range: as for the wrapper. seed: not used; the algorithm is deterministic.

    A stretch is played in one piece, and the sum of its totals differs from that of its own effects by what arrives
    from before it and what is still to come: two sums of parts of d effects, which differ by at most d(hi − lo). So
    by Hoeffding's inequality the mean of m stretches errs by at most

        md/n_m + √(ln(T D²)/(2 n_m))          with probability 1 − 2/(T D²), in units of hi − lo

    and n_m of (28) is the least number for which this is at most D/2. Then two arms whose means differ by more than D
    differ indeed, and the worse is eliminated.

    Only the paper's abstract was read: the setting, and phases that extend UCB. The lengths of phases are chosen here,
    the least for which Hoeffding's inequality and the bias of late parts justify an elimination. `ODAAFB` without a
    mean delay has the same lengths; it plays better arms first, and the best one between phases.

    >>> GargAkash(2, horizon=250_000, max_delay=50).lengths[:4]
    array([  385,  1476,  4609, 13229])

    Reference: Garg and Akash, "Stochastic bandits with delayed composite anonymous feedback", arXiv 1910.01161 (2019).
    """

    def __init__(self, n_arms: int, *, horizon: int, max_delay: int, **common: Unpack[Common]) -> None:
        self.max_delay = d = checks.integer("max_delay", max_delay, low=0, high=LONGEST)
        super().__init__(n_arms, horizon, lambda T, m: naive_length(T, m, d), self.limits(d + 1, **common))
