"""The kernel form: each algorithm is written once, for interactive use, the compiled engines and CUDA.

An algorithm's arithmetic is a few functions over flat float64 state: plain loops that allocate nothing and do not
use NumPy's sums, whose order of addition may vary. Its parameters are a NamedTuple whose *type* identifies the
algorithm. The functions below dispatch on that type: in the interpreter by a dictionary, in compiled code by
`numba.extending.overload` (`core/jit.py`), at no cost at run time. The interactive object, the CPU engines and a
CUDA kernel all compile the same source; numba is imported when something is compiled.

A base algorithm (`BanditKernel`) has:

    size(n_arms) -> int                         length of its state
    start(params, n_arms, state)                write the initial state
    draw(params, n_arms, state, u) -> int       the arm for a uniform number u in (0, 1)
    update(params, n_arms, state, arm, loss)    learn from a loss in [0, 1]
    probabilities(params, n_arms, state, q)     write the distribution into q

If several units can share it (`players/wrapper/panel.py`), it also has:

    update_many(params, n_arms, state, arms, losses)    learn from the average of the estimates of two or more
                                                        units; for a single unit `update` is called

If it can learn from a sum over a varying number of rounds (`players/wrapper/coin_clean.py`), it also has:

    update_sum(params, n_arms, state, arm, loss, terms)             terms = (weight, offset, top): a loss in [0, top],
    update_many_sums(params, n_arms, state, arms, losses, terms)    expected to be offset + weight · the usual loss,
                                                                    which is the base's estimate of the mean loss

A loss sequence (`LossKernel`) has one function:

    spread(params, t, arm, pending, at)         add component s of (round t, arm) to pending[at + s], s = 0..d

A player (`PlayerKernel`), for the engine that simulates every round, has parameters with a field `limits`, the range of
totals (`players/base.py`), and:

    size(params, n_arms) -> int
    begin(params, n_arms, state)                write what is not 0 in the initial state
    ask(params, n_arms, state, rng) -> int      rng: the (2, 4) words of the run's streams, coins first
    tell(params, n_arms, state, rng, arm, total) -> int    1 if it updated, 0 if not, negative if it refused the
                                                           total; NaN means missing or void, others are in range

If it plays whole blocks as Algorithm 1 does, it also has, for the engine that takes one step per block (`BlockKernel`):

    quiet(params) -> int                        how many zeros must precede a one for it to end a block
    window(params) -> int                       how many totals before the last one are added up in a row of W
    loss(params, rows, end, gap, arm) -> float  the loss fed by a block that ends with the one of round `end`, `gap`
                                                rounds after the previous one
    learn(params, n_arms, state, arm, loss, gap)    feed that loss to the base

A player under labelled feedback (`LabelledKernel`), which is told each play's whole loss and its round, has:

    size(params, n_arms) -> int
    begin(params, n_arms, state)
    ask(params, n_arms, state, rng) -> int
    tell_one(params, n_arms, state, rng, played, arm, loss) -> int    the number of updates; `played`: a round from 1

An adviser (`AdviserKernel`), which proposes probabilities to an advised player (`players/wrapper/advised.py`), has:

    size(params, n_arms) -> int
    begin(params, n_arms, state)
    hear(params, n_arms, state, unit, arm, total)    every unit's arm and total in every round, units in order from 0;
                                                     a total of NaN means missing
    advise(params, n_arms, state, p) -> int          write the probabilities it proposes into p; 0 if it has no advice

Two numbers of a player's state are for observers: state[DREW] is 1 if the latest `ask` drew a new arm, and
state[FED] is the loss that the latest `tell` fed to a base (NaN: none). Its own state begins at OWN.

To add an algorithm, write these functions and call `register`. All compiled engines then run a base or losses of your
own; the engine `rounds` runs a player of your own.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.errors import InvalidArgument

DREW, FED, OWN = 0, 1, 2

FloatState = NDArray[np.float64]
WordState = NDArray[np.uint64]
IntState = NDArray[np.int64]
Terms = tuple[float, float, float]
Function = TypeVar("Function", bound=Callable[..., Any])
Form = TypeVar("Form")


class BanditKernel(NamedTuple):
    """The functions of a base algorithm in kernel form."""

    size: Callable[[int], int]
    start: Callable[..., None]
    draw: Callable[..., int]
    update: Callable[..., None]
    probabilities: Callable[..., None]
    update_many: Callable[..., None] | None = None
    update_sum: Callable[..., None] | None = None
    update_many_sums: Callable[..., None] | None = None


class LossKernel(NamedTuple):
    """The function of a loss sequence in kernel form.

    costly: whether to compute a play takes longer than to look up its d+1 components. Studies then compute each play
    once for all players.
    """

    spread: Callable[..., None]
    costly: bool = False


class PlayerKernel(NamedTuple):
    """The functions of a player in kernel form."""

    size: Callable[[Any, int], int]
    begin: Callable[..., None]
    ask: Callable[..., int]
    tell: Callable[..., int]


class BlockKernel(NamedTuple):
    """The functions of a player that plays whole blocks."""

    quiet: Callable[[Any], int]
    window: Callable[[Any], int]
    loss: Callable[..., float]
    learn: Callable[..., None]


class LabelledKernel(NamedTuple):
    """The functions of a player under labelled feedback in kernel form."""

    size: Callable[[Any, int], int]
    begin: Callable[..., None]
    ask: Callable[..., int]
    tell_one: Callable[..., int]


class AdviserKernel(NamedTuple):
    """The functions of an adviser in kernel form."""

    size: Callable[[Any, int], int]
    begin: Callable[..., None]
    hear: Callable[..., None]
    advise: Callable[..., int]


class Registered(dict[type, Form]):
    """Kernels of one kind by the type of their parameters."""

    def __missing__(self, params: type) -> Form:
        raise InvalidArgument(f"params must be registered with their kernel by kernel.register, but {params!r} is not")


BANDITS: dict[type, BanditKernel] = Registered()
LOSSES: dict[type, LossKernel] = Registered()
PLAYERS: dict[type, PlayerKernel] = Registered()
BLOCKS: dict[type, BlockKernel] = Registered()
LABELLED: dict[type, LabelledKernel] = Registered()
ADVISERS: dict[type, AdviserKernel] = Registered()
FORMS: dict[type, dict[type, Any]] = {
    BanditKernel: BANDITS,
    LossKernel: LOSSES,
    PlayerKernel: PLAYERS,
    BlockKernel: BLOCKS,
    LabelledKernel: LABELLED,
    AdviserKernel: ADVISERS,
}
HELPERS: list[Callable[..., Any]] = []
ROUTINES: list[Callable[..., Any]] = []


def helper(function: Function) -> Function:
    """Mark a plain function that kernels call, so that it is compiled with them."""
    HELPERS.append(function)
    return function


def routine(function: Function) -> Function:
    """Mark a plain function that kernels call and that is too long to be compiled anew into each of its callers."""
    ROUTINES.append(function)
    return function


@helper
def quotient(a: float, b: float) -> float:
    """Return a / b, |b| ≥ 1e−300; for finite results a GPU divides without a branch (`engines/cuda.py`)."""
    return a / b


def register(
    params: type, kernel: BanditKernel | LossKernel | PlayerKernel | BlockKernel | LabelledKernel | AdviserKernel
) -> None:
    """Register the kernel of an algorithm under the type of its parameters."""
    FORMS[type(kernel)][params] = kernel


def compiled(function: Callable[..., Any], *params: Any) -> Callable[..., Any]:
    """Return `function` compiled for the kernels of `params` (`core/jit.py`).

    Importing numba takes a quarter of a second, so it is imported here, at the first call, not with the package.
    """
    from aftereffect.core import fingerprint, jit

    dispatcher: Callable[..., Any] = jit.compiled(function, *params)
    if not fingerprint.outside(params):
        return dispatcher

    def call(*arguments: Any) -> Any:
        with jit.explained(params):
            return dispatcher(*arguments)

    return call


def entry(function: Callable[..., Any], params: tuple[Any, ...], *arguments: Any) -> Callable[..., Any]:
    """Return the machine code of `function` for the types of (params, *arguments); see `core/jit.py`."""
    from aftereffect.core import jit

    return jit.entry(function, params, *arguments)


def bandit_start(params: Any, n_arms: int, state: FloatState) -> None:
    """Write a base algorithm's initial state."""
    BANDITS[type(params)].start(params, n_arms, state)


def bandit_draw(params: Any, n_arms: int, state: FloatState, u: float) -> int:
    """Return the arm a base algorithm plays for the uniform number u."""
    return BANDITS[type(params)].draw(params, n_arms, state, u)


def bandit_update(params: Any, n_arms: int, state: FloatState, arm: int, loss: float) -> None:
    """Feed a base algorithm the loss of an arm."""
    BANDITS[type(params)].update(params, n_arms, state, arm, loss)


def bandit_update_many(params: Any, n_arms: int, state: FloatState, arms: IntState, losses: FloatState) -> None:
    """Feed a base algorithm the losses of arms that several units drew from one distribution."""
    _optional(params, "update_many")(params, n_arms, state, arms, losses)


def bandit_update_sum(params: Any, n_arms: int, state: FloatState, arm: int, loss: float, terms: Terms) -> None:
    """Feed a base algorithm a loss in [0, top], expected to be offset + weight · the usual loss."""
    _optional(params, "update_sum")(params, n_arms, state, arm, loss, terms)


def bandit_update_many_sums(
    params: Any, n_arms: int, state: FloatState, arms: IntState, losses: FloatState, terms: Terms
) -> None:
    """Feed a base algorithm the losses of several units, each as in `bandit_update_sum`."""
    _optional(params, "update_many_sums")(params, n_arms, state, arms, losses, terms)


def _optional(params: Any, name: str) -> Callable[..., None]:
    """Return an optional kernel function, or raise an error if this base lacks it."""
    found: Callable[..., None] | None = getattr(BANDITS[type(params)], name)
    if found is None:
        raise InvalidArgument(f"params must belong to a base with {name}, but got {params!r}")
    return found


def bandit_probabilities(params: Any, n_arms: int, state: FloatState, q: FloatState) -> None:
    """Write a base algorithm's distribution into q."""
    BANDITS[type(params)].probabilities(params, n_arms, state, q)


def spread(params: Any, t: int, arm: int, pending: FloatState, at: int) -> None:
    """Add the components of (round t from 0, arm) to pending[at], pending[at + 1], ..."""
    LOSSES[type(params)].spread(params, t, arm, pending, at)


def player_begin(params: Any, n_arms: int, state: FloatState) -> None:
    """Write a player's initial state."""
    PLAYERS[type(params)].begin(params, n_arms, state)


def player_ask(params: Any, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the arm a player plays in this round."""
    return PLAYERS[type(params)].ask(params, n_arms, state, rng)


def player_tell(params: Any, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float) -> int:
    """Tell a player the total of this round."""
    return PLAYERS[type(params)].tell(params, n_arms, state, rng, arm, total)


def block_quiet(params: Any) -> int:
    """Return how many zeros must precede a one for it to end a block."""
    return BLOCKS[type(params)].quiet(params)


def block_loss(params: Any, rows: FloatState, end: int, gap: int, arm: int) -> float:
    """Return the loss fed by a block that ends with the one of round `end`, `gap` rounds after the previous one."""
    return BLOCKS[type(params)].loss(params, rows, end, gap, arm)


def block_learn(params: Any, n_arms: int, state: FloatState, arm: int, loss: float, gap: int) -> None:
    """Feed a block's loss to the player's base; `state` is the base's state."""
    BLOCKS[type(params)].learn(params, n_arms, state, arm, loss, gap)


def labelled_begin(params: Any, n_arms: int, state: FloatState) -> None:
    """Write a labelled player's initial state."""
    LABELLED[type(params)].begin(params, n_arms, state)


def labelled_ask(params: Any, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return the arm a labelled player plays in this round."""
    return LABELLED[type(params)].ask(params, n_arms, state, rng)


def labelled_tell_one(
    params: Any, n_arms: int, state: FloatState, rng: WordState, played: int, arm: int, loss: float
) -> int:
    """Tell a labelled player the whole loss of the arm it played in round `played`."""
    return LABELLED[type(params)].tell_one(params, n_arms, state, rng, played, arm, loss)


def adviser_begin(params: Any, n_arms: int, state: FloatState) -> None:
    """Write an adviser's initial state."""
    ADVISERS[type(params)].begin(params, n_arms, state)


def adviser_hear(params: Any, n_arms: int, state: FloatState, unit: int, arm: int, total: float) -> None:
    """Tell an adviser the arm and the total of a unit in this round."""
    ADVISERS[type(params)].hear(params, n_arms, state, unit, arm, total)


def adviser_advise(params: Any, n_arms: int, state: FloatState, p: FloatState) -> int:
    """Write the probabilities that an adviser proposes into p; return 0 if it has no advice."""
    return ADVISERS[type(params)].advise(params, n_arms, state, p)
