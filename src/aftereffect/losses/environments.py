"""Loss sequences as environments of Gymnasium (extra `gym`): one total per step, and nobody says what caused it.

    composite(...)       "aftereffect/Composite-v0": one arm is better by a gap; a loss is split over rounds at random
    advertising(...)     "aftereffect/Advertising-v0": a year of the advertising system of `linear_system.py`
    days(...)            "aftereffect/Days-v0": a world of the study `year` (`year.py`); with change="fatigue" it reacts
    LossesEnv(losses)    any losses

An episode is one play of the sequence. The action is the arm, the reward is the total of the round (of losses its
negative), and the observation is that total alone. Random losses are drawn anew by each `reset`. After `register()`
`gymnasium.make` knows the names.
"""

from typing import Any

import numpy as np

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import MissingExtra, OutOfTurn
from aftereffect.losses.linear_system import ADVERTISING, system_rewards
from aftereffect.losses.protocol import Losses, LossStream
from aftereffect.losses.spreads import random_split
from aftereffect.losses.tables import iid
from aftereffect.losses.year import year

__all__ = ["LossesEnv", "advertising", "composite", "days", "register"]

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError:
    raise MissingExtra("environments need gymnasium: pip install 'aftereffect[gym]'") from None


class LossesEnv(gymnasium.Env[FloatArray, np.int64]):
    """Plays losses or rewards round by round.

    losses: any `Losses`. Stochastic ones are drawn anew by `reset`, from its seed; others are the same in each episode.

    The episode is truncated after the last round; a step after that is refused. `info` has the round, from 1.

    >>> import aftereffect as ae
    >>> env = LossesEnv(ae.CompositeLosses([[[0.25, 1.0], [0.5, 0.0]], [[0.0, 0.5], [0.25, 0.0]]]))
    >>> observation, info = env.reset(seed=1)
    >>> env.step(0)[:4]                             # the loss of arm 0 in round 1 is 0.25 now and 0.5 later
    (array([0.25]), -0.25, False, False)
    >>> env.step(1)[:4]                             # 0.5 of round 1, and 0.5 of arm 1
    (array([1.]), -1.0, False, True)
    """

    def __init__(self, losses: Losses) -> None:
        if not isinstance(losses, Losses):
            raise TypeError(f"losses must be a Losses, but got {checks.shown(losses)}")
        self.losses = losses
        self._stream: LossStream | None = None
        parts, span = losses.max_delay + 1, losses.effects
        self.action_space = spaces.Discrete(losses.n_arms)
        self.observation_space = spaces.Box(parts * span.lo, parts * span.hi, shape=(1,), dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode. Nothing has been observed yet: the observation is 0."""
        super().reset(seed=seed)
        if self.losses.stochastic:
            self.losses = self.losses.redraw(int(self.np_random.integers(2**62)))
        self._stream = self.losses.stream()
        return np.zeros(1), {"round": 0}

    def step(self, action: np.int64) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Play an arm for one round."""
        if self._stream is None:
            raise OutOfTurn("step must follow reset, but reset has not been called")
        if self._stream.round >= self.losses.horizon:
            raise OutOfTurn(f"step must follow reset, but the episode ended after round {self.losses.horizon}")
        total = self._stream.play(checks.integer("action", action, low=0, high=self.losses.n_arms - 1))
        reward = total if self.losses.effects.maximize else 0.0 - total
        done = self._stream.round == self.losses.horizon
        return np.array([total]), reward, False, done, {"round": self._stream.round}


def composite(n_arms: int = 4, max_delay: int = 8, horizon: int = 1000, gap: float = 0.2) -> LossesEnv:
    """Return the environment `aftereffect/Composite-v0`: losses of 0 or 1; arm 0 is better by `gap` on average.

    >>> composite(n_arms=3).action_space
    Discrete(3)
    """
    gap = checks.real("gap", gap, low=0.0, high=0.5)
    means = [0.5 - gap] + [0.5] * (checks.integer("n_arms", n_arms, low=2) - 1)
    return LossesEnv(random_split(iid(horizon, means=means, seed=0), max_delay=max_delay, seed=1))


def advertising(max_delay: int = 40, horizon: int = 365) -> LossesEnv:
    """Return the environment `aftereffect/Advertising-v0`: rewards of a real system with six budgets as arms.

    >>> advertising().action_space
    Discrete(6)
    """
    return LossesEnv(system_rewards(ADVERTISING, max_delay=max_delay, horizon=horizon, seed=0))


def days(world: int = 0, **settings: Any) -> LossesEnv:
    """Return the environment `aftereffect/Days-v0`: a year of days, with the settings of `losses.year.year`.

    world: the seed of the arms' effects, which stay the same in all episodes; noise, level and season are drawn anew.

    >>> days(n_arms=3, change="fatigue").losses.reacts
    True
    """
    return LossesEnv(year(seed=0, world=world, **settings))


def register() -> None:
    """Make the environments known to `gymnasium.make`.

    >>> register()
    >>> gymnasium.make("aftereffect/Composite-v0", n_arms=3).action_space
    Discrete(3)
    """
    for function in (composite, advertising, days):
        name = f"aftereffect/{function.__name__.capitalize()}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{__name__}:{function.__name__}")
