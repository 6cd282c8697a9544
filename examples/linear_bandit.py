"""Lemma 8 (Section 5): any Player becomes an algorithm for linear bandits on the simplex.

For every round of the linear bandit, the player plays a group of d+1 rounds under composite feedback. The linear action
is the fraction of these rounds in which each arm was played. The player is told 0 in the first d rounds and d+1 times
the linear loss in the last. It would observe the same totals if all losses of the group arrived in the group's last
round (`losses.hard.stacked`), so its regret on such losses is exactly d+1 times the regret of the linear bandit, and a
lower bound for linear bandits carries over.
"""

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument, OutOfTurn
from aftereffect.players.protocol import Player


class LinearBandit:
    """A linear bandit on the simplex Δ_K that plays through a Player under d-delayed composite anonymous
    feedback.

    player: A_d of the lemma. Its own max_delay, if it has one, must be at least `max_delay`.
    max_delay: d; d+1 rounds of the player make one linear round.

    >>> from aftereffect import CompositeLossWrapper
    >>> player = CompositeLossWrapper.tuned(n_arms=3, max_delay=3, horizon=400, seed=1)
    >>> bandit = LinearBandit(player, max_delay=3)
    >>> q = bandit.ask()
    >>> float(q.sum())
    1.0
    >>> bandit.tell(float(q @ [0.1, 0.5, 0.9]))
    """

    def __init__(self, player: Player, *, max_delay: int) -> None:
        """Start before the first linear round."""
        for name in ("ask", "tell"):
            if not callable(getattr(player, name, None)):
                raise InvalidArgument(
                    f"player must have a method {name} (see aftereffect.Player), but got {checks.shown(player)}"
                )
        self.player = player
        self.max_delay = checks.integer("max_delay", max_delay, low=0, high=getattr(player, "max_delay", None))
        self._action: NDArray[np.float64] | None = None

    @property
    def n_arms(self) -> int:
        """K."""
        return self.player.n_arms

    def ask(self) -> NDArray[np.float64]:
        """Return the action q in Δ_K: the player's last d+1 arms, each with weight 1/(d+1). The same until `tell`."""
        if self._action is None:
            counts = np.zeros(self.n_arms)
            for s in range(self.max_delay + 1):
                counts[self.player.ask()] += 1.0
                # The last round of the group stays open: `tell` reports its total.
                if s < self.max_delay:
                    self.player.tell(0.0)
            self._action = counts / (self.max_delay + 1)
        return self._action.copy()

    def tell(self, loss: float) -> None:
        """Report the linear loss ⟨ℓ, q⟩ of the action, in [0, 1]."""
        if self._action is None:
            raise OutOfTurn("tell must follow ask, but no linear round is open")
        loss = checks.real("loss", loss, low=0.0, high=1.0)
        self.player.tell((self.max_delay + 1) * loss)
        self._action = None
