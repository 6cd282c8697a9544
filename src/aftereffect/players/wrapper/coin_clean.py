"""Algorithm 1 (Section 3) with shorter blocks, of which every coin-clean round is fed.

    coin B_t     . . . 1 0 0 0 0 1          d = 2: a block ends at a one after d zeros
    round        U D S S S S S U D          D draw, S stay, U update
    total seen         x x ├─────┤          fed: all rounds with d zeros before them, here 3

The paper's window has d+1 rounds and needs 2d zeros. Whether the d coins before a round are 0 does not depend on the
arm that was played d rounds earlier. So the expected regret over all such rounds is the d-shifted regret times their
probability (1−β)^d, and all of them can be used, however many they are. docs/theory/adaptive.md has the proof.
"""

import math
from typing import Any, Unpack

import numpy as np

from aftereffect import theory
from aftereffect.bandits.adaptive_tsallis import COST, MOVED, PENALTY, AdaptiveTsallis
from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, kernel
from aftereffect.core.errors import InvalidArgument
from aftereffect.players.limits import USUAL, Common, limits_of
from aftereffect.players.wrapper import certificate as certificates
from aftereffect.players.wrapper.kernels import TOTALS, CoinCleanParams
from aftereffect.players.wrapper.windows import CleanStretch
from aftereffect.players.wrapper.wrapper import BlockWrapper
from aftereffect.theory.adaptive import open_stretch
from aftereffect.theory.sharp import FORMS


class CoinCleanWrapper(BlockWrapper):
    """Plays `bandit` under d-delayed composite anonymous feedback; feeds it the sum over a block's coin-clean rounds.

    bandit: a base algorithm that learns from sums over varying numbers of rounds, such as MatchedTsallis.
    coins: β, or a sequence of bools. The default is β = 1/(d+1), which maximises the number of blocks. If an effect of
        0 is not a loss of 0 (for example, if effects are rewards), it is β = 0.4/(d+1): a stretch of r rounds contains
        parts of r + d actions, the d surplus parts then add to the loss, with a smaller share in longer stretches.
    The other arguments are those of CompositeLossWrapper.

    >>> from aftereffect import AdaptiveTsallis
    >>> player = CoinCleanWrapper(AdaptiveTsallis(n_arms=2), max_delay=1, coins=[0, 0, 1, 0], seed=7)
    >>> for total in (0.5, 0.5, 0.25):
    ...     arm = player.ask()
    ...     played = player.tell(total)
    >>> played.update, round(played.fed_loss * player.scale, 12)     # rounds 2 and 3: 0.5 + 0.25
    (True, 0.75)

    Reference: docs/theory/adaptive.md; Algorithm 1 of the paper feeds the last d+1 rounds of a longer block.
    """

    QUIET = 1
    # β(d+1) by default if an effect of 0 is not a loss of 0.
    SURPLUS = 0.4

    def __init__(self, bandit: Bandit, *, max_delay: int, coins: Any = None, **common: Unpack[Common]) -> None:
        if not isinstance(bandit, KernelBandit) or kernel.BANDITS[type(bandit.params)].update_sum is None:
            raise InvalidArgument(
                "bandit must learn from sums over varying numbers of rounds, which may exceed 1 (AdaptiveTsallis does; "
                f"CompositeLossWrapper takes every bandit for losses in [0, 1]), but got {checks.shown(bandit)}"
            )
        if coins is None:
            d = checks.integer("max_delay", max_delay, low=0)
            given = USUAL | {**common}
            span = effects.effects(given["direction"], given["low"], given["high"])
            surplus = d > 0 and (span.hi > 0.0 if span.maximize else span.lo < 0.0)
            coins = (self.SURPLUS if surplus else 1.0) / (d + 1.0)
        super().__init__(bandit, max_delay=max_delay, coins=coins, **common)
        # The sum of a long stretch must not overflow.
        checks.real("high - low", self.effects.hi - self.effects.lo, high=1e290)

    @property
    def scale(self) -> float:
        """C, by which the sum of a stretch is divided: the root mean square of the number of contributing actions."""
        beta = self.update_probability
        return theory.stretch_scale(self.max_delay, 1.0 / (self.max_delay + 1.0) if beta is None else beta)

    @property
    def factor(self) -> float:
        """C/(1−β)^d, the factor of the base's regret in the bounds; infinite if no update is possible."""
        _, beta = self.certified_base()
        clean = (1.0 - beta) ** self.max_delay
        return self.scale / clean if clean > 0.0 else math.inf

    def _new_window(self) -> CleanStretch:
        return CleanStretch(self.effects, self.max_delay, self.out_of_range, self.scale)

    def learn(self, arms: list[int], losses: list[float], gap: int) -> None:
        """Feed the base the losses of the stretches that end now; gap: rounds since the previous coin that is 1."""
        stretch: Any = self._windows[0]
        self.bandit.learn_sums(arms, losses, *stretch.terms(gap))

    def regret_bound(self, horizon: int, form: str = "printed") -> float:
        """Return min(worst case of docs/theory/adaptive.md, T) times hi − lo; both forms are the same."""
        horizon = checks.integer("horizon", horizon, low=1)
        checks.choice("form", form, FORMS)
        return min(self.worst_case(horizon), horizon) * (self.effects.hi - self.effects.lo)

    def worst_case(self, horizon: int) -> float:
        """Return a bound on R_T in units of hi − lo, which may exceed T; the base must be an AdaptiveTsallis."""
        bandit, beta = self.certified_base()
        sizes = self.n_arms, self.max_delay, horizon
        bound = theory.stretch_worst_case(*sizes, beta, bandit.first_rate, bandit.growth)
        return bound + self.factor * bandit.prior_price if bandit.prior_price else bound

    def prices(self) -> certificates.Prices:
        """Return the factors of the terms of a certificate (docs/theory/adaptive.md)."""
        _, beta = self.certified_base()
        d, T = self.max_delay, self.rounds_played
        clean = (1.0 - beta) ** d
        rounds = self.coins.since(T) - d
        waiting = (rounds + d) / self.scale if rounds > 0 else 0.0
        missing = (d + 2.0 / beta - 1.0) / clean if clean > 0.0 else math.inf
        stopping = d + theory.stopping_price(d, beta, self.open_rounds)
        return certificates.Prices(min(d, T), d, self.factor, waiting, missing, self.worst_case(max(T, 1)), stopping)

    def certificate_places(self) -> list[int]:
        """Return where the base's state has cost, penalty and the mass moved; empty if there is no certificate."""
        known = isinstance(self.bandit, AdaptiveTsallis) and self.update_probability is not None
        # What advice costs is not in the base's state.
        if not known or self.advice_prices is not None:
            return []
        return [4 * self.n_arms + place for place in (COST, PENALTY, MOVED)]

    def run_certificates(self, numbers: checks.FloatArray, rounds: Any) -> checks.FloatArray:
        """Return the certificates of runs after these rounds, in units of effects (docs/theory/adaptive.md).

        numbers: cost, penalty and the mass moved, the last axis. All terms but that of the stretch which is open after
        the last round follow from them; as this one depends on the coins only, its exact mean is used. The mean of the
        certificates bounds the mean regret.
        """
        bandit, beta = self.certified_base()
        d, T = self.max_delay, np.asarray(rounds)
        waiting = np.array([open_stretch(d, int(t), beta) for t in T.ravel()]).reshape(T.shape)
        base = numbers[..., 0] + numbers[..., 1]
        base = base + theory.entropy_range(self.n_arms) * bandit.first_rate + waiting / self.scale
        values = np.minimum(d, T) + d * numbers[..., 2] + self.factor * (base + bandit.prior_price)
        return np.asarray(values * (self.effects.hi - self.effects.lo))

    def kernel(self) -> Any:
        """Return the player in kernel form."""
        d, limits = self.max_delay, limits_of(self.effects, self.max_delay + 1, self.out_of_range)
        return CoinCleanParams(self.bandit.params, TOTALS + 1, self.coins.kernel(), d, limits, self.scale)
