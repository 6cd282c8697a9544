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
totals (`players/limits.py`), and:

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

A player under labelled feedback (`labelled=True`) is told each play's whole loss and its round instead of totals:

    tell(params, n_arms, state, rng, played, arm, loss) -> int    the number of updates; `played`: a round from 1

An adviser (`AdviserKernel`), which proposes probabilities to an advised player (`players/wrapper/advised.py`), has:

    size(params, n_arms) -> int
    begin(params, n_arms, state)
    hear(params, n_arms, state, unit, arm, total)    every unit's arm and total in every round, units in order from 0;
                                                     a total of NaN means missing
    advise(params, n_arms, state, p) -> int          write the probabilities it proposes into p; 0 if it has no advice
    play(params, n_arms, state, rng) -> int          the next unit's arm, in a round before the player's first block;
                                                     only if it plays openings

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
    """The functions of a player in kernel form; labelled: whether it is told whole losses and their rounds."""

    size: Callable[[Any, int], int]
    begin: Callable[..., None]
    ask: Callable[..., int]
    tell: Callable[..., int]
    labelled: bool = False


class BlockKernel(NamedTuple):
    """The functions of a player that plays whole blocks."""

    quiet: Callable[[Any], int]
    window: Callable[[Any], int]
    loss: Callable[..., float]
    learn: Callable[..., None]


def first_arm(params: Any, n_arms: int, state: FloatState, rng: WordState) -> int:
    """Return arm 0, for advisers that are never asked to play."""
    return 0


class AdviserKernel(NamedTuple):
    """The functions of an adviser in kernel form."""

    size: Callable[[Any, int], int]
    begin: Callable[..., None]
    hear: Callable[..., None]
    advise: Callable[..., int]
    play: Callable[..., int] = first_arm


class Registered(dict[type, Any]):
    """Kernels of one kind by the type of their parameters."""

    def __missing__(self, params: type) -> Any:
        raise InvalidArgument(f"params must be registered with their kernel by kernel.register, but {params!r} is not")


KINDS = (BanditKernel, LossKernel, PlayerKernel, BlockKernel, AdviserKernel)
FORMS: dict[type, dict[type, Any]] = {kind: Registered() for kind in KINDS}
BANDITS: dict[type, BanditKernel] = FORMS[BanditKernel]
LOSSES: dict[type, LossKernel] = FORMS[LossKernel]
PLAYERS: dict[type, PlayerKernel] = FORMS[PlayerKernel]
BLOCKS: dict[type, BlockKernel] = FORMS[BlockKernel]
ADVISERS: dict[type, AdviserKernel] = FORMS[AdviserKernel]
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


@helper
def least(count: int, values: FloatState) -> float:
    """Return the least of the first `count` values."""
    found = values[0]
    for i in range(1, count):
        found = min(found, values[i])
    return float(found)


def register(params: type, kernel: BanditKernel | LossKernel | PlayerKernel | BlockKernel | AdviserKernel) -> None:
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


def call(function: Callable[..., Any], params: tuple[Any, ...], *arguments: Any) -> Any:
    """Run the machine code of `function` on these arguments."""
    return entry(function, params, *arguments)(params, *arguments)


GENERIC: dict[Callable[..., Any], tuple[dict[type, Any], str]] = {}
"""The functions below: the table of kernels, and the field to call, by the type of the first argument."""


def _generic(table: dict[type, Any], name: str, title: str) -> Callable[..., Any]:
    """Return the function that calls `name` of the kernel registered for the type of its first argument."""

    def call(params: Any, *arguments: Any) -> Any:
        found = getattr(table[type(params)], name)
        if found is None:
            raise InvalidArgument(f"params must belong to a base with {name}, but got {params!r}")
        return found(params, *arguments)

    call.__name__ = call.__qualname__ = title
    GENERIC[call] = table, name
    return call


bandit_start: Callable[..., None] = _generic(BANDITS, "start", "bandit_start")
bandit_draw: Callable[..., int] = _generic(BANDITS, "draw", "bandit_draw")
bandit_update: Callable[..., None] = _generic(BANDITS, "update", "bandit_update")
bandit_probabilities: Callable[..., None] = _generic(BANDITS, "probabilities", "bandit_probabilities")
bandit_update_many: Callable[..., None] = _generic(BANDITS, "update_many", "bandit_update_many")
bandit_update_sum: Callable[..., None] = _generic(BANDITS, "update_sum", "bandit_update_sum")
bandit_update_many_sums: Callable[..., None] = _generic(BANDITS, "update_many_sums", "bandit_update_many_sums")
spread: Callable[..., None] = _generic(LOSSES, "spread", "spread")
player_begin: Callable[..., None] = _generic(PLAYERS, "begin", "player_begin")
player_ask: Callable[..., int] = _generic(PLAYERS, "ask", "player_ask")
player_tell: Callable[..., int] = _generic(PLAYERS, "tell", "player_tell")
block_quiet: Callable[[Any], int] = _generic(BLOCKS, "quiet", "block_quiet")
block_loss: Callable[..., float] = _generic(BLOCKS, "loss", "block_loss")
block_learn: Callable[..., None] = _generic(BLOCKS, "learn", "block_learn")
adviser_begin: Callable[..., None] = _generic(ADVISERS, "begin", "adviser_begin")
adviser_hear: Callable[..., None] = _generic(ADVISERS, "hear", "adviser_hear")
adviser_advise: Callable[..., int] = _generic(ADVISERS, "advise", "adviser_advise")
adviser_play: Callable[..., int] = _generic(ADVISERS, "play", "adviser_play")
