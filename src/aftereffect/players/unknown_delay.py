"""Algorithm 1 (Section 3) when nobody knows d: guess, watch for contradictions, double the guess and restart.

Theorem 4 needs d. We know of no algorithm with its √T that does not, and this is not one: it is the
wrapper for a guess, with two tests of the guess around it. What is proved and what is hoped for is said
below.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from aftereffect import theory
from aftereffect.bandits.tsallis import TsallisParams
from aftereffect.core import checks, effects, kernel
from aftereffect.core.errors import InvalidArgument
from aftereffect.players import unknown_delay_kernel as form
from aftereffect.players.kernelform import KernelPlayer


class UnknownDelayWrapper(KernelPlayer):
    """Algorithm 1 around Algorithm 2 with a guess g of d; contradictions double g (0 becomes 1) and restart.

    n_arms: K. horizon: T; each start tunes β and η as Corollary 7 does, for g and the rounds that are left.
    guess: the first g ≥ 0.
    false_alarm: δ in [0, 1), the chance of a needless restart that the statistical test may take; 0 switches
        that test off.
    seed, direction, low, high: as for `CompositeLossWrapper`.

    *The certain test.* If d ≤ g, then m totals in a row hold one part each of at most m + g plays, so they
    sum to at most (m+g)·hi, whatever the losses and the play. m = 1 is the range of a total, m = g+1 is Lemma
    2. All m are watched at once, and g doubles until all hold: so a certain contradiction never takes g
    beyond 2d. For losses (lo = 0) this says all that can be said for certain: if all stretches pass, then
    serving each total from the oldest play that has something left tells a story of delay ≤ g with these very
    totals.

    *The statistical test.* In rounds g+1, …, 2g+1 of a block the totals hold effects of its arm i only, if
    d ≤ g. Their sum, scaled to [0, 1], is averaged over the blocks of arm i in two cells: by whether the
    block before had the same arm or another, and so for each of the eight blocks before (a number chosen
    here). Confidence intervals of two such cells that do not meet are a contradiction. If the losses are
    independent over rounds, with one law for all, and d ≤ g, then both means are one (Azuma and Hoeffding in
    each cell; a sum over cells, visits and restarts): a false alarm has probability at most δ over the whole
    run. If d > g, and what arrives late differs among the arms, then for the arm with most of it the means
    differ, as long as the lag is within eight blocks: eight rounds at g = 0, some 8e(2g+1) else. A shift Δ is
    found when both cells have about 2 ln(32Kn²/δ)/Δ² visits n.

    *Guaranteed* (effects in [0, 1]): R_T ≤ T, always. If d ≤ guess and δ = 0, there is never a contradiction,
    and Theorem 4 holds for d = guess. If d ≤ guess, δ > 0 and the losses are independent with one law, the
    same plus δT. The guess stays at or below max(guess, 2d): for certain if δ = 0, else on such losses with
    probability at least 1 − δ.
    *Not guaranteed*: anything better than T when d > guess. Under a guess too small the base is fed other
    arms' effects until a contradiction shows. Losses of one law can hide tails below the Δ above, or beyond
    eight blocks. Losses that change over time can hide a delay that costs a linear regret. At guess 0: make
    arm 1 lose 1 against ½ for arm 0, both at once, until arm 1 is hardly played, then let arm 0 cost its ½ a
    round late, and arm 1 nothing. Arm 1, nearly always played after arm 0, seems to cost ½ as well, and is
    too rare for the test. Losses that change over time can also raise false alarms, which cost a restart and
    a guess larger than need be.

    >>> player = UnknownDelayWrapper(n_arms=2, horizon=1000, guess=0, seed=7)
    >>> for total in (0.5, 1.5):                 # one play does 1 at most: the second total holds two plays
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> player.guess, player.restarts
    (1, 1)

    Reference: derived here from Lemma 2 and Theorem 4 of the paper; test, tuning and defaults are chosen
    here. For unknown d with proofs, at the rate T^(2/3), see Wang, Wang and Huang (2021).
    """

    needs: ClassVar[tuple[str, ...]] = ("horizon", "stochastic losses")

    def __init__(
        self,
        n_arms: int,
        *,
        horizon: int,
        guess: int = 1,
        false_alarm: float = 0.05,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        """Start before round 1."""
        K = checks.integer("n_arms", n_arms, low=2)
        horizon = checks.integer("horizon", horizon, low=1, high=1 << 53)
        guess = checks.integer("guess", guess, low=0, high=horizon)
        alarm = checks.real("false_alarm", false_alarm, low=0.0, below=1.0)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        settings = {
            "horizon": horizon,
            "guess": guess,
            "false_alarm": alarm,
            "direction": direction,
            "low": self.low,
            "high": self.high,
        }
        super().__init__(K, form.UnknownDelayParams(guess, horizon, alarm, self.effects), seed, settings)

    @property
    def guess(self) -> int:
        """The guess of d in force now."""
        return int(self._numbers[form.GUESS])

    @property
    def restarts(self) -> int:
        """How often the guess was contradicted."""
        return int(self._numbers[form.RESTARTS])

    @property
    def learning_rate(self) -> float:
        """η since the latest start."""
        return float(self._numbers[form.RATE])

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution the current block's arm was drawn from, or the next will be."""
        q = np.empty(self.n_arms)
        base = self._numbers[form.base_at(self.n_arms) :]
        kernel.bandit_probabilities(TsallisParams(self.learning_rate), self.n_arms, base, q)
        return q

    def refusal(self) -> str:
        """Say what a total must be that the kernel does not refuse."""
        t, span = self._round, self.effects
        return (
            f"total must lie in [{t * span.lo:g}, {t * span.hi:g}], the range of one action's effect "
            f"times the {t} actions so far"
        )

    def regret_bound(self, max_delay: int, *, stochastic: bool = False) -> float:
        """Return what is guaranteed for R_T at the horizon if d ≤ `max_delay`, times the range.

        stochastic: whether the losses are independent over rounds with one law. For effects that are never
        negative.
        """
        d = checks.integer("max_delay", max_delay, low=0)
        if self.effects.lo < 0.0:
            raise InvalidArgument(f"low must be at least 0 for Theorem 4 to hold, but got {self.low!r}")
        K, T, g = self.n_arms, self._params.horizon, self._params.guess
        alarm = self._params.false_alarm
        N = theory.most_updates(g, T)
        if d > g or N == 0 or (alarm > 0.0 and not stochastic):
            return float(T * self.effects.hi)
        rate = theory.corollary_learning_rate(g, T)
        xi, regret = theory.tsallis_stability(K, rate), theory.tsallis_regret_bound(K, N, rate)
        bound = theory.wrapper_regret_bound(g, T, theory.best_update_probability(g), xi, regret)
        return float(min(bound + alarm * T, T) * self.effects.hi)
