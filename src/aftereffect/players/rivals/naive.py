"""Naive play: credit each round's total to the arm of that round, as if nothing lingered.

What people do when they run a bandit on daily totals. Under composite feedback the total also holds the
effects of earlier arms, so the credit is wrong whenever the arm changes, and an arm whose effect comes late
looks free.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from aftereffect.bandits.kernel_bandit import KernelBandit
from aftereffect.bandits.protocol import Bandit
from aftereffect.core import checks, effects, kernel, random, saved
from aftereffect.core.errors import InvalidArgument, OutOfTurn
from aftereffect.core.kernel import DREW, FED, OWN
from aftereffect.players import base
from aftereffect.players.protocol import Round

FIELDS = ("direction", "low", "high", "seed", "bandit", "arm_stream", "round", "open", "arm")


class NaiveParams(NamedTuple):
    """base: the parameters of the base algorithm. span: the range of a total."""

    base: Any
    span: effects.Effects


def size(params: NaiveParams, n_arms: int) -> int:
    """Only the base has a state."""
    return OWN + kernel.BANDITS[type(params.base)].size(n_arms)


def begin(params: NaiveParams, n_arms: int, state: kernel.FloatState) -> None:
    """Start the base."""
    kernel.bandit_start(params.base, n_arms, state[OWN:])


def ask(params: NaiveParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState) -> int:
    """Draw an arm in every round."""
    state[DREW] = 1.0
    return kernel.bandit_draw(params.base, n_arms, state[OWN:], random.uniform(rng[random.ARMS]))


def tell(
    params: NaiveParams, n_arms: int, state: kernel.FloatState, rng: kernel.WordState, arm: int, total: float
) -> int:
    """Feed the total, clipped to the range, as if it were this arm's loss."""
    state[FED] = total
    if total != total:
        return 0
    state[FED] = effects.fed_loss(params.span, 0, total)
    kernel.bandit_update(params.base, n_arms, state[OWN:], arm, state[FED])
    return 1


kernel.register(NaiveParams, kernel.PlayerKernel(size, begin, ask, tell))


class Naive:
    """Plays `bandit` every round and feeds it each round's total as the loss of that round's arm.

    low, high: the range that totals are scaled from and clipped to; the base wants losses in [0, 1].

    >>> from aftereffect import Exp3, Naive
    >>> player = Naive(Exp3(n_arms=2, learning_rate=0.1), seed=7)
    >>> arm = player.ask()
    >>> player.tell(0.25).fed_loss
    0.25
    """

    def __init__(
        self,
        bandit: Bandit,
        *,
        seed: int | None = None,
        direction: str = "minimize",
        low: float = 0.0,
        high: float = 1.0,
    ) -> None:
        """Start before round 1."""
        self.bandit = base.checked_bandit(bandit)
        self.effects = effects.effects(direction, low, high)
        self.direction, self.low, self.high = direction, float(low), float(high)
        self.seed = random.checked_seed("seed", seed)
        self._arm_stream = random.stream(self.seed, 0, random.ARMS)
        self._round = 0
        self._open = False
        self._arm = 0

    @property
    def n_arms(self) -> int:
        """K."""
        return self.bandit.n_arms

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """The distribution the next arm is drawn from."""
        return np.array(self.bandit.probabilities, dtype=np.float64)

    def ask(self) -> int:
        """Return the arm to play in this round; the same until `tell`."""
        if not self._open:
            ahead = self._arm_stream.copy()
            self._arm = base.draw_arm(self.bandit, ahead)
            self._arm_stream = ahead
            self._round += 1
            self._open = True
        return self._arm

    def tell(self, total: float | None) -> Round:
        """Feed the total of the round; a missing one teaches nothing."""
        if not self._open:
            raise OutOfTurn("tell must follow ask, but no round is open")
        fed = None
        if total is not None:
            fed = effects.fed_loss(self.effects, 0, base.checked_total(total))
            base.feed(self.bandit, self._arm, fed)
        self._open = False
        return Round(self._round, self._arm, True, fed is not None, fed)

    def kernel(self) -> NaiveParams | None:
        """Return the player in kernel form, None if its base has no such form."""
        return NaiveParams(self.bandit.params, self.effects) if isinstance(self.bandit, KernelBandit) else None

    def fresh(self, seed: int, run: int = 0) -> Self:
        """Return an unplayed copy with the stream of (seed, run); only an unplayed player has one."""
        if self._round:
            raise InvalidArgument(f"player must be unplayed to be copied, but it is in round {self._round}")
        seed, run = checks.integer("seed", seed, low=0), checks.integer("run", run, low=0)
        settings: dict[str, Any] = {"direction": self.direction, "low": self.low, "high": self.high}
        twin = type(self)(base.unplayed_copy(self.bandit), seed=seed, **settings)
        twin._arm_stream = random.stream(seed, run, random.ARMS)
        return twin

    def state(self) -> dict[str, Any]:
        """Return all there is to know, in plain JSON types; `aftereffect.restore` goes on from it bit for bit."""
        fields: dict[str, Any] = {
            "direction": self.direction,
            "low": self.low,
            "high": self.high,
            "seed": f"{self.seed:x}",
            "bandit": base.bandit_state(self.bandit),
            "arm_stream": saved.words_to_hex(self._arm_stream),
        }
        return saved.seal(type(self).__name__, fields | base.dump(self, FIELDS[6:]))

    @classmethod
    def from_state(cls, state: Mapping[str, Any], bandit: Bandit) -> Self:
        """Return the player that `state()` described, around a base that has been restored already."""
        fields = saved.unseal(state, cls.__name__, FIELDS)
        settings = {name: fields[name] for name in ("direction", "low", "high")}
        player = cls(bandit, seed=saved.whole_number("seed", fields["seed"]), **settings)
        player._arm_stream = saved.hex_to_words("arm_stream", fields["arm_stream"], 4)
        base.load(player, FIELDS[6:], fields)
        return player

    def __repr__(self) -> str:
        """Show the base inside."""
        return f"Naive({self.bandit!r}{base.shown_range(self.direction, self.low, self.high)}, seed={self.seed})"
