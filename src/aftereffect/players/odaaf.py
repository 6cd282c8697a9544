"""ODAAF, ODAAF-B and ODAAF-V: phased elimination for stochastic effects that arrive whole, late, unlabelled.

The rivals of Algorithm 1 in the stochastic world of Pike-Burke et al. (2018): effects of an arm are drawn
independently from one law, their delays from another, the same for all arms; the player sees the sum of what
arrives (Section 1 of the paper calls it anonymous feedback). Against an adversary they promise nothing: their
stretches can be foreseen. `odaaf_kernel.py` is the algorithm, `odaaf_lengths.py` the formulas by which the
three differ.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, effects
from aftereffect.core.errors import InvalidArgument
from aftereffect.players import odaaf_kernel, odaaf_lengths
from aftereffect.players.kernelform import KernelPlayer

ORDERS = ("index", "best_first")

# Floats count rounds exactly up to here.
LONGEST = 2**53


def checked_horizon(horizon: int) -> int:
    """Return T if it is a whole number that floats can count to."""
    return checks.integer("horizon", horizon, low=1, high=LONGEST)


class PhasedElimination(KernelPlayer):
    """What the three have in common: all but the table of lengths.

    Phase m = 1, 2, ... with D_m = 2⁻ᵐ plays every arm still in play, one after another, until it has had n_m
    rounds in all phases together; then arms go out whose mean total is worse than the best one's by more than
    D_m, in units of hi − lo. With a bridge, the best arm is then played for n_m − n_{m−1} rounds
    that are not measured. When one arm is left, or the phases have run out, the best arm is played for good.
    """

    def __init__(
        self,
        n_arms: int,
        length: Callable[[int], int],
        seed: int | None,
        settings: dict[str, Any],
    ) -> None:
        """Take the rule for n_m, and the settings that all share out of `settings`."""
        named = dict(settings)
        checks.choice("order", named["order"], ORDERS)
        if not isinstance(named["bridge"], bool):
            raise InvalidArgument(f"bridge must be True or False, but got {checks.shown(named['bridge'])}")
        self.direction: str = named["direction"]
        self.effects = effects.effects(self.direction, named["low"], named["high"])
        self.low, self.high = named["low"], named["high"] = float(named["low"]), float(named["high"])
        table = odaaf_lengths.phase_lengths(named["horizon"], length)
        best_first = named["order"] == "best_first"
        super().__init__(
            n_arms, odaaf_kernel.OdaafParams(self.effects, table, best_first, named["bridge"]), seed, named
        )

    @property
    def lengths(self) -> NDArray[np.int64]:
        """n_1, n_2, ...: how many rounds an arm has had by the end of each phase it survives."""
        table: NDArray[np.int64] = self._params.lengths
        return table

    @property
    def phase(self) -> int:
        """m, from 1; the last one once the best arm is played for good."""
        return int(self._numbers[odaaf_kernel.PHASE])

    @property
    def active_arms(self) -> tuple[int, ...]:
        """The arms still in play, in the order in which they are played."""
        first, count = odaaf_kernel.ORDER, int(self._numbers[odaaf_kernel.ACTIVE])
        return tuple(int(arm) for arm in self._numbers[first : first + count])


class ODAAF(PhasedElimination):
    """Optimism for delayed, aggregated anonymous feedback: knows the mean delay alone.

    n_arms: K. horizon: T. mean_delay: E, the expected delay. mean_delay_offset: n_m is (14) of
    `odaaf_lengths.py` with (m + offset)E where it has mE: 0 as printed; 1 gives the lengths at which the
    published curves turn (they fit to within a round, those of 0 do not). order: of the arms within a phase:
    "index", or "best_first", by index in the first phase and by mean total afterwards; any order will do, and
    the published curves have the worse arm, of index 0, first. bridge: whether rounds are left out between
    phases; not here as published. direction, low, high: "minimize" losses or "maximize" rewards, and the
    range of what one action does in all. seed: unused, for nothing is random; all players are made alike.

    A block of a trace is one stretch, and its fed loss is the arm's mean total over all its stretches, scaled
    to [0, 1] and turned to a loss; the estimates that decide who goes out are these. (Clipping them into the
    range can only bring them nearer the true means.) A missing total makes its stretch one round longer.

    Regret: Σ_j O(log(TΔ_j²)/Δ_j + log(1/Δ_j)E) over the worse arms; O(√(KT log K) + K E log T) in any case.

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

    needs: ClassVar[tuple[str, ...]] = ("horizon", "mean delay", "stochastic losses")

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        mean_delay: float,
        mean_delay_offset: int = 0,
        order: str = "index",
        bridge: bool = False,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
        seed: int | None = None,
    ) -> None:
        """Start before round 1."""
        T = checked_horizon(horizon)
        E = checks.real("mean_delay", mean_delay, low=0.0)
        offset = checks.integer("mean_delay_offset", mean_delay_offset, low=0, high=LONGEST)
        named = {"horizon": T, "mean_delay": E, "mean_delay_offset": offset, "order": order, "bridge": bridge}
        ranged = {"direction": direction, "low": low, "high": high}
        super().__init__(n_arms, lambda m: odaaf_lengths.mean_length(T, m, E, offset), seed, named | ranged)


class ODAAFB(PhasedElimination):
    """ODAAF-B: knows besides that no delay exceeds a bound, and needs shorter phases for it.

    max_delay: d. mean_delay: E for n_m by (18); None where it is not known, for n_m by (28), which makes do
    with d. order, bridge: as in `ODAAF`; the published curves have the better arm first from the second phase
    on, and the bridge. The other arguments are those of `ODAAF`.

    Regret with (18): Σ_j O(log(TΔ_j²)/Δ_j + E + min{d, log(TΔ_j²)/Δ_j + log(1/Δ_j)E}); O(√(KT log K) + K E)
    where d ≤ √(T log K/K) + E.

    >>> ODAAFB(2, horizon=250_000, mean_delay=25.0, max_delay=50).lengths[:4]
    array([  786,  2123,  6030, 17684])

    Reference: Pike-Burke et al., ICML 2018: Theorem 6 and Corollary 7; (28) is from its supplement.
    """

    needs: ClassVar[tuple[str, ...]] = ("max_delay", "horizon", "mean delay", "stochastic losses")

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        max_delay: int,
        mean_delay: float | None,
        order: str = "best_first",
        bridge: bool = True,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
        seed: int | None = None,
    ) -> None:
        """Start before round 1."""
        T, d = checked_horizon(horizon), checks.integer("max_delay", max_delay, low=0, high=LONGEST)
        self.max_delay = d
        E = None if mean_delay is None else checks.real("mean_delay", mean_delay, low=0.0, high=float(d))

        def length(m: int) -> int:
            if E is None:
                return odaaf_lengths.naive_length(T, m, d)
            return odaaf_lengths.bounded_length(T, m, E, d)

        named = {"horizon": T, "max_delay": d, "mean_delay": E, "order": order, "bridge": bridge}
        super().__init__(n_arms, length, seed, named | {"direction": direction, "low": low, "high": high})


class ODAAFV(PhasedElimination):
    """ODAAF-V: knows the variance of the delay instead of a bound.

    delay_variance: V for n_m by (25); where E ≥ 1 the paper lets V/E take its place: give that instead. The
    other arguments are those of `ODAAF` and `ODAAFB`. For the curves with delays N₊(50, σ²) the V that fits
    is that of a half-normal law, σ²(1 − 2/π).

    Regret: Σ_j O(log(TΔ_j²)/Δ_j + E + V); O(√(KT log K) + K E + K V) in any case.

    >>> ODAAFV(2, horizon=250_000, mean_delay=50.0, delay_variance=50.0).lengths[:4]
    array([ 2126,  4986, 12149, 30698])

    Reference: Pike-Burke et al., ICML 2018: Theorem 8 and Corollary 9.
    """

    needs: ClassVar[tuple[str, ...]] = ("horizon", "mean delay", "delay variance", "stochastic losses")

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        mean_delay: float,
        delay_variance: float,
        order: str = "best_first",
        bridge: bool = True,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
        seed: int | None = None,
    ) -> None:
        """Start before round 1."""
        T = checked_horizon(horizon)
        E = checks.real("mean_delay", mean_delay, low=0.0)
        V = checks.real("delay_variance", delay_variance, low=0.0)
        named = {"horizon": T, "mean_delay": E, "delay_variance": V, "order": order, "bridge": bridge}
        ranged = {"direction": direction, "low": low, "high": high}
        super().__init__(n_arms, lambda m: odaaf_lengths.variance_length(T, m, E, V), seed, named | ranged)
