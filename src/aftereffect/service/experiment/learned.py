"""What all totals say about the arms: one model (`aftereffect.LagModel`), whoever chose the arms.

The model is made again from the record when somebody asks. The record has a row for each round: those that the
experiment remembers of another one, those in a pause, in which no arm was played, and its own. A void total counts as
missing: it may be a typing error.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from aftereffect.lags import LagModel
from aftereffect.service import words
from aftereffect.service.experiment.commands import Remember
from aftereffect.service.experiment.round import Row
from aftereffect.service.messages import ArmEffect, Band, Finding, Learned, Sure
from aftereffect.service.settings import Design, ExperimentSettings

SURE: tuple[tuple[float, Sure], ...] = ((0.95, "certain"), (0.8, "likely"), (0.0, "open"))
"""The least probability that the leader is the best arm, and how sure that is."""


CERTAIN = 1.7
"""An effect at a lag is certain if its interval, so many times as wide, does not hold 0: there are many of them."""


class Record(NamedTuple):
    """The arm (-1: none) and the total (None: missing) of each unit in each round."""

    arms: list[list[int]]
    totals: list[list[float | None]]


def record(
    settings: ExperimentSettings,
    rows: Iterable[Row],
    skipped: Sequence[Sequence[int]],
    before: Remember | None = None,
) -> Record:
    """Return the record of an experiment.

    rows: all its rows, by round and unit. skipped: [t, n] for n rounds without an arm before round t. before: what it
    remembers of another experiment.
    """
    place, M = {arm: i for i, arm in enumerate(settings.arms)}, len(settings.units)
    idle: dict[int, int] = {pause[0]: pause[1] for pause in skipped}
    found = Record([], []) if before is None else Record([*before.arms], [*before.totals])
    for number, units in groupby(rows, key=itemgetter("round")):
        played, pause = list(units), idle.get(number, 0)
        found.arms.extend([[-1] * M] * pause)
        found.totals.extend([[None] * M] * pause)
        found.arms.append([place[row["arm"]] for row in played])
        found.totals.append([settings.heard(row["total"]) for row in played])
    return found


def remembered(source: str, known: Design, settings: Design, seen: Record) -> Remember | None:
    """Return the command by which an experiment remembers the record of another; None if their units differ.

    known: the settings of the other experiment. Totals that hold effects of an arm that is gone are left out.
    """
    if known.units != settings.units or known.round_length != settings.round_length or not seen.arms:
        return None
    arms = [settings.arms.index(arm) if arm in settings.arms else -1 for arm in known.arms]
    found, left = Remember(source, [], []), [0] * len(settings.units)
    for played, totals in list(zip(seen.arms, seen.totals, strict=True))[-(settings.model_rounds // 2) :]:
        left = [
            settings.longest_lag + 1 if i >= 0 and arms[i] < 0 else max(rest - 1, 0)
            for i, rest in zip(played, left, strict=True)
        ]
        found.arms.append([-1 if i < 0 else arms[i] for i in played])
        found.totals.append([None if rest else total for total, rest in zip(totals, left, strict=True)])
    return found


def too_large(settings: Design, seen: Record) -> str | None:
    """Return why there is no model of a record of this size; None if there is one."""
    return words.no_model(settings) if len(seen.arms) > settings.model_rounds else None


def model(settings: Design, seen: Record) -> LagModel:
    """Return the model of a record."""
    K, M = len(settings.arms), len(settings.units)
    made = LagModel(K, settings.longest_lag, settings.season, M, direction=settings.direction)
    made.learn(seen.arms, np.array(seen.totals, dtype=np.float64).tolist())
    return made


def unknown(id: str, reason: str) -> Learned:
    """Return that there is no model of an experiment."""
    # Read from all fields: only those that were given are sent to clients.
    return Learned.read(Learned(experiment=id, reason=reason, sentences=[reason]).model_dump())


def learned(
    id: str, settings: ExperimentSettings, seen: Record, own: Record, away: Sequence[str], total: float
) -> Learned:
    """Return what a record says. own: the rounds of the experiment itself; total: the sum of its totals."""
    reason = too_large(settings, seen)
    heard = sum(value is not None for row in seen.totals for value in row)
    twice = any(sum(value is not None for value in unit) > 1 for unit in zip(*seen.totals, strict=True))
    if reason is not None or not twice:
        return unknown(id, reason or words.NOTHING_HEARD)
    made, K = model(settings, seen), len(settings.arms)
    # A sum of weights may be 1 and a rounding error.
    whole, lags, best = made.effects(), made.by_lag(), np.minimum(made.best, 1.0)
    order = np.argsort(-best, kind="stable").tolist()
    plays = np.bincount([arm for row in own.arms for arm in row if arm >= 0], minlength=K)
    entries = [
        ArmEffect(
            arm=settings.arms[i],
            plays=int(plays[i]),
            effect=_band(whole, i),
            best=float(best[i]),
            by_lag=[_band(lags, (i, lag)) for lag in range(made.max_lag + 1)],
            away=settings.arms[i] in away,
        )
        for i in order
    ]
    first, second = order[:2]
    apart = (np.abs(lags.mean) > CERTAIN * (lags.high - lags.low) / 2.0).any(axis=0)
    sign = 1.0 if settings.direction == "maximize" else -1.0
    gain = _gain(plays, whole, sign)
    split = abs(total - sign * gain[0])
    loss = made.loss_of_settling * len(settings.units)
    told = [zip(*row, strict=True) for row in zip(seen.arms, seen.totals, strict=True)]
    tried = len({arm for row in told for arm, value in row if arm >= 0 and value is not None}) > 1
    found = Learned(
        experiment=id,
        rounds=len(seen.arms),
        totals=heard,
        max_lag=made.max_lag,
        arms=entries,
        leader=settings.arms[first] if tried else None,
        runner_up=settings.arms[second] if tried else None,
        sure=next(word for least, word in SURE if best[first] >= least) if tried else "unknown",
        difference=[float(each) for each in made.difference(first, second)],
        loss_of_settling=loss,
        loss_per_day=loss / settings.round_length,
        gain=gain if tried else None,
        percent=[100.0 * each / split for each in gain] if tried and split else None,
        lasts=int(np.flatnonzero(apart)[-1]) if apart.any() else None,
        findings=[Finding(name=each.name, found=each.found, sentence=each.sentence) for each in made.checks()],
    )
    return found.model_copy(update={"sentences": words.learned(found, settings)})


def played_effects(settings: Design, seen: Record) -> dict[str, float]:
    """Return the whole effects of the arms that a record has, relative to their mean; {} if there is no model of it."""
    if too_large(settings, seen) is not None or not any(value is not None for row in seen.totals for value in row):
        return {}
    played = {arm for row in seen.arms for arm in row if arm >= 0}
    means = model(settings, seen).effects().mean.tolist()
    return {arm: means[i] for i, arm in enumerate(settings.arms) if i in played}


def _band(effects: Any, place: Any) -> Band:
    return [float(table[place]) for table in (effects.mean, effects.low, effects.high)]


def _gain(plays: Any, whole: Any, sign: float) -> Band:
    """Return how much better these plays were than an equal split; the interval is that of all arms at once."""
    apart = plays - plays.mean()
    value = sign * float(apart @ whole.mean)
    margin = float(np.abs(apart) @ (whole.high - whole.low)) / 2.0
    return [value, value - margin, value + margin]
