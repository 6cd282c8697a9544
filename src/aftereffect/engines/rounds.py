"""The per-round engine: any player in kernel form, compiled, on all cores.

It is for players whose arm may change every round, and for losses whose max_delay exceeds the player's. It performs
the same operations as `loop.py` in the same order, so all results equal the loop's bit for bit, including cumulative
losses.

Players under labelled feedback are told the whole loss of each play, with its round, at the end of the round in which
its last nonzero component arrives (of round t itself if the loss is 0). Losses that are complete only after the horizon
are never told. The components of a play are charged as usual, so the regret is comparable with that of players under
anonymous feedback.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument, InvalidTotal
from aftereffect.engines.prefix_sums import arm_sums_at
from aftereffect.engines.workload import Advanced, Blocks, Outcome, Workload, share_out
from aftereffect.losses.protocol import carry_over
from aftereffect.players.limits import tell_total

Rounds = NDArray[np.int64]
TILE = 512

# The variables of a run: rounds done, updates, checkpoints done, cumulative loss and gap, the total that was refused.
DONE, UPDATES, CHECKPOINT, LOSS, GAP, REFUSED, LANE = 0, 1, 2, 3, 4, 5, 6


class Runs(NamedTuple):
    """What a chunk of runs reads and writes, each array by run.

    states, words: of the players. lanes: the variables of the runs. pending: the charges of the next rounds, with a
    last row of zeros as scratch space. losses, pseudo, trace: the results.
    """

    states: FloatArray
    words: NDArray[np.uint64]
    lanes: FloatArray
    pending: FloatArray
    losses: FloatArray
    pseudo: FloatArray
    trace: FloatArray


def advance_rounds(
    player: Any, world: Any, n_arms: int, delay: int, until: int, checkpoints: Rounds, gaps: FloatArray, runs: Runs
) -> int:
    """Advance every run to round `until`; return the first run whose player refused a total, or −1."""
    states, words, lanes, pending, losses, pseudo, trace = runs
    for run in range(len(lanes)):
        lane = lanes[run]
        state = states[run]
        first = int(lane[DONE])
        checkpoint = int(lane[CHECKPOINT])
        updates, loss, gap = lane[UPDATES], lane[LOSS], lane[GAP]
        owing = pending[run]
        for t in range(first, until):
            arm = kernel.player_ask(player, n_arms, state, words[run])
            kernel.spread(world, t, arm, owing, t - first)
            total = owing[t - first]
            told = tell_total(player, n_arms, state, words[run], arm, total, t + 1)
            if told < 0:
                lane[DONE] = t
                lane[REFUSED] = total
                return run
            updates += told
            loss += total
            gap += gaps[arm]
            if trace.shape[1] > 0:
                trace[run, t, 0] = arm
                trace[run, t, 1] = state[kernel.DREW]
                trace[run, t, 2] = state[kernel.FED]
            if t + 1 == checkpoints[checkpoint]:
                losses[run, checkpoint] = loss
                pseudo[run, checkpoint] = gap
                checkpoint += 1
        carry_over(owing, delay, until - first)
        lane[DONE], lane[CHECKPOINT] = until, checkpoint
        lane[UPDATES], lane[LOSS], lane[GAP] = updates, loss, gap
    return -1


def simulate_rounds(load: Workload, player: Any) -> Outcome:
    """Run a workload round by round, compiled."""
    size = kernel.PLAYERS[type(player)].size(player, load.losses.n_arms)
    return walk_rounds(load, player, size, kernel.player_begin, advance_rounds, lambda count, tile: ())


# The mail of a run: linked lists of the plays to be told in each round, stored by round modulo d+1. FIRST and LAST: the
# first and the last play told in a round. AFTER: the play told after this one. ARM: the arm of a play. Plays are
# identified by their rounds from 0; −1 means none.
FIRST, LAST, AFTER, ARM, POST = 0, 1, 2, 3, 4


@kernel.helper
def whole_play(world: Any, t: int, arm: int, delay: int, play: FloatArray) -> tuple[float, int]:
    """Return a play's whole loss and the delay of its last nonzero component; `play` must be zeros, and is left so."""
    kernel.spread(world, t, arm, play, 0)
    last = delay
    while last > 0 and play[last] == 0.0:
        last -= 1
    whole = 0.0
    for s in range(last + 1):
        whole += play[s]
        play[s] = 0.0
    return whole, last


class Mail(NamedTuple):
    """Plays to be told. posts: the lists of each run. wholes: the whole losses of each run's outstanding plays.

    known, delays: the results of `whole_play` for the plays of a tile, shared by all runs; a delay of −1 means not
    computed yet.
    """

    posts: NDArray[np.int64]
    wholes: FloatArray
    known: FloatArray
    delays: NDArray[np.int64]


def advance_labelled(
    player: Any, world: Any, n_arms: int, delay: int, until: int, checkpoints: Rounds, gaps: FloatArray, runs: Runs,
    mail: Mail
) -> int:
    """Advance every run to round `until`; return −1, as no total is refused."""
    states, words, lanes, pending, losses, pseudo, trace = runs
    posts, wholes, known, delays = mail
    for k in range(len(delays)):
        for arm in range(n_arms):
            delays[k, arm] = -1
    places = delay + 1
    play = pending[len(lanes)]
    for run in range(len(lanes)):
        lane = lanes[run]
        state = states[run]
        first = int(lane[DONE])
        checkpoint = int(lane[CHECKPOINT])
        updates, loss, gap = lane[UPDATES], lane[LOSS], lane[GAP]
        owing = pending[run]
        post = posts[run]
        for t in range(first, until):
            k = t - first
            arm = kernel.labelled_ask(player, n_arms, state, words[run])
            kernel.spread(world, t, arm, owing, k)
            if delays[k, arm] < 0:
                whole, last = whole_play(world, t, arm, delay, play)
                known[k, arm] = whole
                delays[k, arm] = last
            now = t % places
            wholes[run, now] = known[k, arm]
            post[ARM, now] = arm
            post[AFTER, now] = -1
            due = (t + delays[k, arm]) % places
            if post[FIRST, due] < 0:
                post[FIRST, due] = t
            else:
                post[AFTER, post[LAST, due] % places] = t
            post[LAST, due] = t
            told = post[FIRST, now]
            post[FIRST, now] = -1
            while told >= 0:
                at = told % places
                updates += kernel.labelled_tell_one(
                    player, n_arms, state, words[run], told + 1, post[ARM, at], wholes[run, at]
                )
                told = post[AFTER, at]
            loss += owing[k]
            gap += gaps[arm]
            if trace.shape[1] > 0:
                trace[run, t, 0] = arm
                trace[run, t, 1] = state[kernel.DREW]
                trace[run, t, 2] = state[kernel.FED]
            if t + 1 == checkpoints[checkpoint]:
                losses[run, checkpoint] = loss
                pseudo[run, checkpoint] = gap
                checkpoint += 1
        carry_over(owing, delay, until - first)
        lane[DONE], lane[CHECKPOINT] = until, checkpoint
        lane[UPDATES], lane[LOSS], lane[GAP] = updates, loss, gap
    return -1


def covers(load: Workload) -> None:
    """Raise an error unless a labelled player's max_delay and range cover those of the losses."""
    room, span = getattr(load.player, "max_delay", None), getattr(load.player, "effects", None)
    delay, (lo, hi, _) = load.losses.max_delay, load.losses.effects
    if room is not None and room < delay:
        raise InvalidArgument(f"player must have at least the max_delay of losses, {delay}, but got {room}")
    if span is not None and not span.lo <= lo <= hi <= span.hi:
        raise InvalidArgument(
            f"player must have a range that covers that of losses, [{lo:g}, {hi:g}], but got [{span.lo:g}, {span.hi:g}]"
        )


def simulate_labelled(load: Workload, player: Any) -> Outcome:
    """Run a workload round by round with a labelled player in kernel form, compiled."""
    covers(load)
    n_arms, places = load.losses.n_arms, load.losses.max_delay + 1

    def mail(count: int, tile: int) -> tuple[Any, ...]:
        posts = np.full((count, POST, places), -1, dtype=np.int64)
        known, delays = np.zeros((tile, n_arms)), np.empty((tile, n_arms), dtype=np.int64)
        return (Mail(posts, np.zeros((count, places)), known, delays),)

    size = kernel.LABELLED[type(player)].size(player, n_arms)
    return walk_rounds(load, player, size, kernel.labelled_begin, advance_labelled, mail)


def walk_rounds(
    load: Workload,
    player: Any,
    size: int,
    begin_run: Callable[..., None],
    advance_runs: Callable[..., int],
    scratch: Callable[[int, int], tuple[Any, ...]],
) -> Outcome:
    """Run a workload with these two functions, compiled.

    size: the length of a player's state. scratch(count, tile): returns the further arrays that `advance_runs` needs for
    `count` runs and tiles of `tile` rounds.
    """
    world, horizon, n_arms = load.losses, load.losses.horizon, load.losses.n_arms
    begin = kernel.entry(begin_run, player, n_arms, np.zeros(size))
    advance = kernel.compiled(advance_runs, player, world.params)
    losses = np.zeros((load.runs, len(load.checkpoints)))
    pseudo = np.zeros_like(losses)
    lanes = np.zeros((load.runs, LANE))
    trace = np.zeros((load.runs, horizon if load.trace else 0, 3))
    tile = min(horizon, TILE)

    def work(first: int, count: int, advanced: Advanced) -> None:
        part = slice(first, first + count)
        states = np.zeros((count, size))
        words = random.streams(load.seed, load.first_run + first, count)
        pending = np.zeros((count + 1, tile + world.max_delay))
        runs = Runs(states, words, lanes[part], pending, losses[part], pseudo[part], trace[part])
        more = scratch(count, tile)
        for state in states:
            begin(player, n_arms, state)
        for done in range(0, horizon, tile):
            until = min(done + tile, horizon)
            refused = advance(
                player, world.params, n_arms, world.max_delay, until, load.checkpoints, load.gaps, runs, *more
            )
            if refused >= 0:
                t, total = int(lanes[first + refused, DONE]) + 1, float(lanes[first + refused, REFUSED])
                raise InvalidTotal(
                    "total must be possible for the player's range and delay, alone and summed over its window "
                    "(a player with out_of_range continues if that is 'void' or 'clip'), "
                    f"but in round {t} of run {load.first_run + first + refused} it is {total!r}"
                )
            advanced(count * (until - done))

    share_out(load, work)
    updates = lanes[:, UPDATES].astype(np.int64)
    traces = [rounds_as_blocks(played) for played in trace] if load.trace else None
    return Outcome(losses, pseudo, updates, arm_sums_at(load.losses, load.checkpoints), traces)


def rounds_as_blocks(played: FloatArray) -> Blocks:
    """Convert arms, draws and fed losses by round to blocks; a block has the last loss fed in it."""
    starts = np.flatnonzero(played[:, 1] > 0)
    fed = [losses[~np.isnan(losses)] for losses in np.split(played[:, 2], starts[1:])]
    last = np.array([losses[-1] if losses.size else np.nan for losses in fed])
    return Blocks(starts + 1, played[starts, 0].astype(np.int64), last)
