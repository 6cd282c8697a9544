"""How long effects last, from the rounds of an experiment: effects by lag, a proposed max_delay, the cost of a pilot.

The estimates are those of `aftereffect.carryover`. They are not part of the domain: what depends on them is stored with
the command that accepts a max_delay. Estimates are cached by their data, and made one at a time, because each takes
up to a few hundred MB of memory.

`watched` says whether effects last longer than the max_delay of a running experiment: totals by rounds since the change
of arm, and the test of `aftereffect.carryover.watch`, whose error rate holds however often one looks. All is computed
on demand: a report does not wait for it.
"""

import dataclasses
import functools
import logging
import math
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np

from aftereffect.carryover import Bands, Block, Curves, Longer, WashIn, estimate, wash_in, watch
from aftereffect.carryover.delay import choose_delay
from aftereffect.carryover.martingale import unplayed, window_rounds
from aftereffect.carryover.regression import FEWEST_DRAWS
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.players.wrapper.wrapper import BlockWrapper
from aftereffect.service import words
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.round import COUNTED, VOID
from aftereffect.service.messages import EffectsByLag, Overview, Watched, finite
from aftereffect.service.settings import MOST_COEFFICIENTS, MOST_NUMBERS, most_rounds

WAIT = 30.0
"""Seconds to wait for other estimates."""
MOST_AT_ONCE = 4
"""How many callers may be waiting for estimates, so that they do not take all threads of a server."""
MOST_ROUNDS = 5_000
"""How many rounds are used outside a pilot: the latest for an estimate, the first of the learner to watch it."""
_one_at_a_time, _few_at_once = threading.Lock(), threading.BoundedSemaphore(MOST_AT_ONCE)
_log = logging.getLogger(__name__)
View = Mapping[str, Any]


@contextmanager
def admitted() -> Iterator[None]:
    """Refuse a caller if too many are waiting for estimates."""
    if not _few_at_once.acquire(blocking=False):
        raise Refused("too_many", f"at most {MOST_AT_ONCE} estimates can be asked for at a time; try again")
    try:
        yield
    finally:
        _few_at_once.release()


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other estimate is being made."""
    if not _one_at_a_time.acquire(timeout=WAIT):
        raise Refused("busy", "other estimates must be finished first, but are not; try again")
    try:
        yield
    finally:
        _one_at_a_time.release()


def longest(view: Overview) -> tuple[int, int]:
    """Return the longest lag to look for, and how many of the latest rounds can be used; 0 rounds if none."""
    K, M = len(view.arms), len(view.units)
    if view.pilot is not None:
        return view.pilot["max_lag"], view.pilot["rounds"]
    # Twice as long as assumed: to see whether effects end when they should.
    D = min(2 * view.max_delay + 1, MOST_COEFFICIENTS // (K - 1) - 1)
    return D, 0 if D < 0 else min(MOST_ROUNDS, most_rounds(K, D, M))


class Record:
    """The arms, totals and probabilities of some rounds, each of shape (rounds, units).

    rows: of all units in order of rounds. resumed: the last round of each warm-up. Totals are NaN if they are missing
    or void, or hold effects of actions in a pause; so are the probabilities of arms that were not drawn in their round.
    """

    def __init__(self, view: Overview, rows: Sequence[View], resumed: Sequence[int]) -> None:
        self.arms, self.max_lag = view.arms, longest(view)[0]
        shape = -1, len(view.units)
        place = {arm: i for i, arm in enumerate(view.arms)}
        self.played = np.array([place[row["arm"]] for row in rows], dtype=np.int64).reshape(shape)
        self.pilot = view.pilot is not None
        good = [row["status"] in COUNTED and not (self.pilot and row["washin"]) for row in rows]
        totals = [row["total"] if fine else np.nan for row, fine in zip(rows, good, strict=True)]
        self.totals = np.array(totals, dtype=np.float64).reshape(shape)
        drawn = np.array([row["draw"] for row in rows], dtype=np.bool_).reshape(shape)
        # A substitute may begin within a block.
        drawn[1:] |= self.played[1:] != self.played[:-1]
        odds = np.array([row["probability"] for row in rows], dtype=np.float64).reshape(shape)
        self.probabilities = np.where(drawn, odds, np.nan)
        first, d = rows[0]["round"] if rows else 1, view.max_delay
        for until in () if self.pilot else resumed:
            begin = until - d - first
            self.totals[max(begin, 0) : max(begin + 1 + self.max_lag, 0)] = np.nan

    def draws(self) -> list[int]:
        """Return how often each arm was drawn."""
        drawn = self.played[np.isfinite(self.probabilities)]
        return [int(count) for count in np.bincount(drawn, minlength=len(self.arms))]

    def curves(self) -> Curves:
        """Return the effects by lag, or raise an error if they cannot be estimated."""
        if len(self.played) <= self.max_lag:
            rule = f"more than {self.max_lag} rounds must be played"
            raise InvalidArgument(f"{rule}, but there are {len(self.played)}")
        data = tuple(values.tobytes() for values in (self.played, self.totals, self.probabilities))
        with _alone():
            curves = _cached_curves(*data, self.played.shape, len(self.arms), self.max_lag, self.pilot)
        if isinstance(curves, Exception):
            raise curves
        return curves


@functools.lru_cache(maxsize=64)
def _cached_curves(
    arms: bytes, totals: bytes, probabilities: bytes, shape: tuple[int, ...], n_arms: int, max_lag: int, pilot: bool
) -> Curves | Exception:
    """Return the curves, or the error if they cannot be estimated, so that it is cached too."""
    played = np.frombuffer(arms, dtype=np.int64).reshape(shape)
    told, odds = (np.frombuffer(values).reshape(shape) for values in (totals, probabilities))
    given: dict[str, Any] = {} if pilot else {"exposure": "adaptive", "probabilities": odds}
    try:
        return estimate(played, told, max_lag=max_lag, n_arms=n_arms, **given)
    except Exception as error:
        return error


def check_size(n_arms: int, max_lag: int, rounds: int, units: int) -> None:
    """Refuse an estimate that would take too much memory."""
    if rounds > most_rounds(n_arms, max_lag, units):
        limits = f"(arms - 1) * (max_lag + 1) must be at most {MOST_COEFFICIENTS}, times the totals {MOST_NUMBERS:,}"
        raise InvalidArgument(f"{limits}, but got {n_arms - 1} * {max_lag + 1}, times {rounds * units:,}")


def estimated(view: Overview, record: Record) -> dict[str, Any]:
    """Return what can be said about the carry-over of an experiment; `messages.EffectsByLag`."""
    told: dict[str, Any] = {**dict.fromkeys(EffectsByLag.model_fields), "experiment": view.id, "sentences": []}
    told |= {"source": "pilot" if record.pilot else "rounds", "max_lag": record.max_lag, "unmeasured": []}
    try:
        return told | _said(view, record, record.curves())
    except Refused:
        raise
    except InvalidArgument as error:
        often = [arm for arm, draws in zip(record.arms, record.draws(), strict=True) if draws >= FEWEST_DRAWS]
        reason = words.nothing_estimated(error, record.pilot, often)
    except Exception as error:
        # Whatever the totals are, a pilot must come to an end.
        _log.warning("no effects by lag can be estimated for experiment %s", view.id, exc_info=error)
        reason = words.not_computed(error)
    return {**told, "reason": reason}


def _said(view: Overview, record: Record, curves: Curves) -> dict[str, Any]:
    """Return what the curves of an experiment say."""
    left = None if view.horizon is None else view.horizon - (view.round if record.pilot else 0)
    span = view.direction, view.low, view.high
    accepted = None if view.accepted is None else view.max_delay
    told = described(curves, view.arms, left, *span, len(view.units), accepted)
    asked = record.pilot and accepted is None
    d = told["proposed"]["max_delay"] if asked else view.max_delay
    test, where = _longer(curves, d), "In the pilot" if record.pilot else "In the latest rounds"
    if test is not None:
        told["sentences"].append(words.within(where, test.sentence))
    if test is not None and test.verdict == "longer" and asked:
        told["sentences"].append(words.SHORTER)
    if asked and impossible_level(curves, view.low, view.high):
        level = words.level(curves.base, view.low, view.high)
        told["sentences"].append(f"Attention: {level} before you accept.")
    if record.pilot:
        told["cost"] = cost(curves, record, view.direction)
    if asked:
        parts = d + 1
        least, most = parts * min(view.low, 0.0), parts * max(view.high, 0.0)
        if outside := int(((record.totals < least) | (record.totals > most)).sum()):
            told["sentences"].append(words.outside_range(outside, least, most))
    return told


def attention(view: Overview, curves: Curves, max_delay: int) -> list[dict[str, Any]]:
    """Return what in a pilot speaks against playing on with this max_delay, for `words.against_delay`."""
    test, found = _longer(curves, max_delay), list[dict[str, Any]]()
    if impossible_level(curves, view.low, view.high):
        found.append({"finding": "level", "mean": curves.base, "low": view.low, "high": view.high})
    if test is not None and test.verdict == "longer":
        found.append({"finding": "longer", **dataclasses.asdict(test)})
    return found


def _longer(curves: Curves, max_delay: int) -> Longer | None:
    """Return the test of effects after max_delay; None if there are too few lags or rounds for one."""
    try:
        return curves.longer_than(max_delay)
    except InvalidArgument:
        return None


def impossible_level(curves: Curves, low: float, high: float) -> bool:
    """Return whether the mean total is no possible effect of one action."""
    margin = 2.0 * curves.noise / math.sqrt(curves.rounds)
    return not low - margin <= curves.base <= high + margin


def described(
    curves: Curves,
    arms: Sequence[str],
    horizon: int | None,
    direction: str,
    low: float,
    high: float | None,
    units: int = 1,
    accepted: int | None = None,
) -> dict[str, Any]:
    """Return curves by the names of the arms, the max_delay they suggest, and both in words.

    horizon: of the rounds that follow. high: None if the range of effects is not known, and no max_delay can be
    proposed. accepted: the max_delay in force after a pilot.
    """
    chosen: dict[str, Any] | None = None
    if high is not None:
        chosen = proposed(curves, units, accepted, horizon=horizon, direction=direction, low=low, high=high)
    return {
        "totals": curves.rounds,
        "unmeasured": [arms[i] for i in curves.unmeasured],
        **{name: _named(getattr(curves, name), arms) for name in ("effects", "arrived", "shares")},
        "alike": {"p_value": curves.alike.p_value, "verdict": curves.alike.verdict},
        "noise": curves.noise,
        "proposed": chosen,
        "sentences": [
            *words.curves_found(curves),
            *([] if chosen is None else words.delay_prices(chosen, horizon, accepted)),
        ],
    }


def proposed(curves: Curves, units: int, accepted: int | None, **given: Any) -> dict[str, Any]:
    """Return the max_delay of `choose_delay`, and the prices of some others.

    prices: for some values of max_delay, `left`: by how much effects may still differ between arms after it, `bound`:
    on the loss over the horizon in all units if the estimate is right, `worst`: at the worst end of the bands, `since`:
    the round from which the guarantee is below half of the largest loss. problem: why there are none, or what to mind.
    """
    with _alone(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AftereffectWarning)
        try:
            choice = choose_delay(curves=curves, n_arms=curves.n_arms, **given)
        except InvalidArgument as error:
            return {"max_delay": curves.ends(), "prices": [], "problem": str(error)}
    if choice.left is None or choice.worst is None:
        raise RuntimeError("a choice from measured curves must have prices")
    problem = "; ".join(str(each.message) for each in caught) or None
    most = (given["horizon"] or math.inf) * (max(given["high"], 0.0) - min(given["low"], 0.0))
    # If no guarantee will ever be informative, it does not tell one max_delay from another.
    d = choice.max_delay if np.isfinite(choice.since).any() else curves.ends()
    place = int(np.searchsorted(choice.delays, d))
    d = int(choice.delays[place])
    # The one that is proposed, some around it, the one in force, and the ends.
    shown = {0, len(choice.delays) - 1, *(place + step for step in (-4, -2, -1, 0, 1, 2, 4))}
    shown |= {*np.flatnonzero(choice.delays == accepted).tolist()}
    prices = []
    for k in sorted(shown & {*range(len(choice.delays))}):
        bound, worst = (finite(units * min(most, values[k])) for values in (choice.bounds, choice.worst))
        left, since = (finite(values[k]) for values in (choice.left, choice.since))
        price = {"left": left, "bound": bound, "worst": worst, "since": since and int(since)}
        prices.append({"max_delay": int(choice.delays[k]), **price})
    return {"max_delay": d, "prices": prices, "problem": problem}


def _named(bands: Bands, arms: Sequence[str]) -> dict[str, dict[str, list[float | None]]]:
    tables = {"values": bands.values, "lower": bands.lower, "upper": bands.upper}
    return {arm: {name: [finite(x) for x in table[i]] for name, table in tables.items()} for i, arm in enumerate(arms)}


def cost(curves: Curves, record: Record, direction: str) -> list[float]:
    """Return what the rounds cost compared with the best arm: estimate, and ends of a band with the curves' level.

    The whole effects of all arms are in their bands at once, so the cost is between the least and the greatest that
    these allow.
    """
    plays = np.bincount(record.played.ravel(), minlength=len(record.arms))
    whole = curves.arrived
    value, lower, upper = (table[:, -1] for table in (whole.values, whole.lower, whole.upper))
    if direction == "minimize":
        value, lower, upper = -value, -upper, -lower

    def against(best: FloatArray, others: FloatArray) -> float:
        """Return the cost if an arm has its value in `best`, the others in `others`; with the arm that costs most."""
        gaps = best[:, np.newaxis] - others
        np.fill_diagonal(gaps, 0.0)
        return max(float((gaps @ plays).max()), 0.0)

    return [against(value, value), against(lower, upper), against(upper, lower)]


def watched(
    arms: Sequence[str], player: BlockWrapper, rows: Sequence[View], paused: int | None
) -> dict[str, Any] | None:
    """Return whether effects last longer than max_delay; `messages.Watched`. None before the first round.

    player: the learner. rows: of its first rounds, all units in order of rounds. paused: the first round after a pause.
    From then on rows are not used: people choose when to pause, and may do so because of what an arm has shown.
    """
    used = [row for row in rows if paused is None or row["round"] < paused]
    if not used:
        return None
    shape, d, place = (-1, player.n_units), player.max_delay, {arm: i for i, arm in enumerate(arms)}
    played = np.array([place[row["arm"]] for row in used], dtype=np.int64).reshape(shape)
    totals = [row["total"] if row["status"] in COUNTED else np.nan for row in used]
    table = wash_in(played, np.array(totals, dtype=np.float64).reshape(shape), max_delay=d, n_arms=len(arms))
    told: dict[str, Any] = {**dict.fromkeys(Watched.model_fields), "rounds": len(played), **_tables(table, arms)}
    if player.n_units > 1:
        return {**told, "sentence": words.NOT_TESTED}
    result = watch(player, _blocks(used, place, player))
    numbers = {name: getattr(result, name) for name in ("blocks", "p_value", "alarm", "no_power")}
    after = words.before_a_pause(len(played)) if len(used) < len(rows) else ""
    return {**told, **numbers, "sentence": result.sentence + after}


def _blocks(rows: Sequence[View], place: Mapping[str, int], player: BlockWrapper) -> Iterator[Block]:
    """Yield the finished blocks, up to the first with a substitute, and one with fed=None if a total of it is void."""
    again, t = unplayed(player), 0
    for _, members in groupby(rows, key=lambda row: row["block"]):
        block = list(members)
        last = block[-1]
        if len({row["arm"] for row in block}) > 1 or any(row["substituted"] for row in block):
            return
        void = any(row["status"] == VOID for row in block)
        for end in range(1, len(block) + 1):
            t += 1
            if again.coins.read(t) and end < len(block):
                # The block did not end here: a total of this window was missing, or was void when it was reported.
                void |= all(row["status"] in COUNTED for row in block[end - window_rounds(again) : end])
        if void:
            yield Block(place[last["arm"]], [], None, 1)
        if void or last["fed"] is None:
            return
        clean = (row for row in block if row["round"] - row["block_start"] >= player.max_delay)
        totals = [row["total"] for row in clean if row["status"] in COUNTED]
        measured = sum(bool(row["measured"]) for row in block)
        yield Block(place[last["arm"]], totals, last["fed"], measured, block[0]["probability"])


def _tables(table: WashIn, arms: Sequence[str]) -> dict[str, Any]:
    """Return the tables by arm, and that of all arms; None where there is no number."""

    def listed(means: Any, errors: Any, counts: Any) -> dict[str, Any]:
        return {"means": [*map(finite, means)], "errors": [*map(finite, errors)], "counts": counts.tolist()}

    rows = zip(arms, table.means, table.errors, table.counts, strict=True)
    all_arms = listed(table.pooled, table.pooled_errors, table.counts.sum(axis=0))
    return {"wash_in": {arm: listed(*each) for arm, *each in rows}, "all_arms": all_arms}
