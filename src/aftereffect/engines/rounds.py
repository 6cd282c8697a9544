"""The per-round engine: any player in kernel form, compiled, on all cores.

It is for players whose arm may change every round, and for losses whose max_delay exceeds the player's. It performs
the same operations as `loop.py` in the same order, so all results equal the loop's bit for bit, including cumulative
losses.

Players under labelled feedback are told the whole loss of each play, with its round, at the end of the round in which
its last nonzero component arrives (of round t itself if the loss is 0). Losses that are complete only after the horizon
are never told. The components of a play are charged as usual, so the regret is comparable with that of players under
anonymous feedback.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import kernel, random
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument, InvalidTotal
from aftereffect.engines.prefix_sums import arm_sums_at
from aftereffect.engines.workload import Advanced, Blocks, Outcome, Workload, share_out
from aftereffect.losses.protocol import carry_over
from aftereffect.players.limits import Limits, tell_total

Rounds = NDArray[np.int64]
TILE = 512

# The variables of a run: rounds done, updates, checkpoints done, cumulative loss and gap, the total that was refused.
DONE, UPDATES, CHECKPOINT, LOSS, GAP, REFUSED, LANE = 0, 1, 2, 3, 4, 5, 6


class Runs(NamedTuple):
    """What a chunk of runs reads and writes, each array by run.

    states, words: of the players. lanes: the variables of the runs. pending: the charges of the next rounds.
    losses, pseudo, trace: the results.
    """

    states: FloatArray
    words: NDArray[np.uint64]
    lanes: FloatArray
    pending: FloatArray
    losses: FloatArray
    pseudo: FloatArray
    trace: FloatArray


# The mail of a run: linked lists of the plays to be told in each round, stored by round modulo d+1. FIRST and LAST: the
# first and the last play told in a round. AFTER: the play told after this one. ARM: the arm of a play. Plays are
# identified by their rounds from 0; −1 means none.
FIRST, LAST, AFTER, ARM, POST = 0, 1, 2, 3, 4


class Mail(NamedTuple):
    """Plays to be told. posts: the lists of each run. wholes: the whole losses of each run's outstanding plays.

    known, delays: the results of `whole_play` for the plays of a tile, shared by all runs; a delay of −1 means not
    computed yet. play: scratch space of zeros.
    """

    posts: NDArray[np.int64]
    wholes: FloatArray
    known: FloatArray
    delays: NDArray[np.int64]
    play: FloatArray


def advance_rounds(
    player: Any, world: Any, n_arms: int, delay: int, until: int, checkpoints: Rounds, gaps: FloatArray, runs: Runs,
    limits: Limits | None, mail: Mail | None
) -> int:
    """Advance every run to round `until`; return the first run whose player refused a total, or −1.

    limits: those of a player that is told totals. mail: of a player that is told whole losses. The other one is None,
    and the code for it is not compiled.
    """
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
            told = 0
            if limits is not None:
                told = tell_total(player, n_arms, state, words[run], arm, total, t + 1)
                if told < 0:
                    lane[DONE] = t
                    lane[REFUSED] = total
                    return run
            if mail is not None:
                told = tell_mail(player, world, n_arms, delay, state, words[run], t, t - first, arm, mail, run)
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


@kernel.helper
def tell_mail(
    player: Any, world: Any, n_arms: int, delay: int, state: FloatArray, words: NDArray[np.uint64], t: int, k: int,
    arm: int, mail: Mail, run: int
) -> int:
    """Post the play of round t, the k-th of the tile, and tell the plays that are due; return the number of updates."""
    known, delays, wholes, post, places = mail.known, mail.delays, mail.wholes[run], mail.posts[run], delay + 1
    if delays[k, arm] < 0:
        known[k, arm], delays[k, arm] = whole_play(world, t, arm, delay, mail.play)
    now = t % places
    wholes[now] = known[k, arm]
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
    updates = 0
    while told >= 0:
        at = told % places
        updates += kernel.player_tell(player, n_arms, state, words, told + 1, post[ARM, at], wholes[at])
        told = post[AFTER, at]
    return updates


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


def simulate_rounds(load: Workload, player: Any) -> Outcome:
    """Run a workload round by round, compiled."""
    world, horizon, n_arms, form = load.losses, load.losses.horizon, load.losses.n_arms, kernel.PLAYERS[type(player)]
    if form.labelled:
        covers(load)
    size, tile, places = form.size(player, n_arms), min(horizon, TILE), world.max_delay + 1
    begin = kernel.entry(kernel.player_begin, player, n_arms, np.zeros(size))
    advance = kernel.compiled(advance_rounds, player, world.params)
    losses, pseudo = np.zeros((2, load.runs, len(load.checkpoints)))
    lanes = np.zeros((load.runs, LANE))
    trace = np.zeros((load.runs, horizon if load.trace else 0, 3))

    def work(first: int, count: int, advanced: Advanced) -> None:
        part = slice(first, first + count)
        states = np.zeros((count, size))
        words = random.streams(load.seed, load.first_run + first, count)
        pending = np.zeros((count, tile + world.max_delay))
        runs = Runs(states, words, lanes[part], pending, losses[part], pseudo[part], trace[part])
        mail = None
        if form.labelled:
            posts, delays = (np.full(sizes, -1, dtype=np.int64) for sizes in ((count, POST, places), (tile, n_arms)))
            mail = Mail(posts, np.zeros((count, places)), np.zeros((tile, n_arms)), delays, np.zeros(places))
        for state in states:
            begin(player, n_arms, state)
        for done in range(0, horizon, tile):
            until = min(done + tile, horizon)
            if mail is not None:
                mail.delays.fill(-1)
            what = load.checkpoints, load.gaps, runs, None if form.labelled else player.limits, mail
            refused = advance(player, world.params, n_arms, world.max_delay, until, *what)
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
