"""A recorded history, read from a CSV file: which arms were played in which rounds, and their effects.

    round,arm,lag0,lag1,lag2          effects by lag: in the same round, one round later, two rounds later
    2024-01-01,letter,120,340,90
    2024-01-01,email,310,40,0

    round,arm,effect                  or whole effects, with a kernel (0.5, 0.3, 0.2) of shares by lag
    1,letter,550

Rounds are whole numbers or dates (2024-01-31) and are sorted; arms are names. Other columns are ignored. Errors name
the file, the line, the column and the reason.
"""

import csv
import io
import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks, frames
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import InvalidArgument
from aftereffect.losses.protocol import Losses
from aftereffect.losses.replay import History, replay_series


class InvalidHistory(InvalidArgument):
    """A file of recorded plays breaks a rule; the message names the file, the line, the column and the reason."""


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """Recorded plays as read: play n is of arm arms[played[n]] in round rounds[n], with effects[n].

    effects: (plays, d+1) by lag or, with a kernel, (plays, 1) whole effects.
    missing: a description of the first round and arm without a play; empty if every arm has a play in every round.
    """

    name: str
    arms: tuple[str, ...]
    rounds: NDArray[np.int64]
    played: NDArray[np.int64]
    effects: FloatArray
    kernel: FloatArray | None
    missing: str

    @property
    def horizon(self) -> int:
        """The number of rounds with a play."""
        return len(np.unique(self.rounds))

    @property
    def max_delay(self) -> int:
        """Return d."""
        return (self.effects.shape[1] if self.kernel is None else len(self.kernel)) - 1

    @property
    def gaps(self) -> int:
        """How many rounds between the first and the last are missing; 0 if labels are not a fixed number apart."""
        steps = np.diff(np.unique(self.rounds))
        return int((steps // steps.min() - 1).sum()) if len(steps) and not (steps % steps.min()).any() else 0

    @property
    def maybe_totals(self) -> bool:
        """Whether the column may hold totals of rounds: there is only one, and no kernel says that it holds effects."""
        return self.max_delay == 0 and self.kernel is None

    def __repr__(self) -> str:
        sizes = f"{len(self.rounds)} plays, horizon={self.horizon}, max_delay={self.max_delay}"
        return f"Recording({self.name!r}, {sizes}, arms={checks.shown(self.arms)})"

    def by_lag(self) -> FloatArray:
        """Return the effects of every play by lag, shape (plays, d+1)."""
        return self.effects if self.kernel is None else self.effects * self.kernel

    def mean_effects(self) -> FloatArray:
        """Return the mean effect of a play of each arm, by lag, shape (K, d+1)."""
        by_lag = self.by_lag()
        return np.array([by_lag[self.played == arm].mean(axis=0) for arm in range(len(self.arms))])

    def losses(
        self,
        *,
        resample: int | None = None,
        seed: int = 0,
        direction: str = "maximize",
        low: float | None = None,
        high: float | None = None,
    ) -> Losses:
        """Return the rounds as recorded or, with `resample`, this many rounds of plays drawn at random for each arm.

        low, high: the range of one play's effect; by default the recorded range, 10% wider at each end other than 0.
        Rounds that lack an arm cannot be replayed: `InvalidHistory`, an `InvalidArgument`.
        """
        ends: dict[str, Any] = {"direction": direction, "low": low, "high": high}
        if resample is not None:
            return History(self.rounds, self.played, self.by_lag()).resample(resample, seed=seed, **ends)
        if self.missing:
            raise InvalidHistory(
                f"{self.name}: every arm must have a row in every round to be replayed, but {self.missing}; "
                "with resample, plays of each arm are drawn at random instead, if the columns hold the effects of "
                "plays; if they hold totals, `aftereffect carryover` estimates from them"
            )
        history = History(self.rounds, self.played, self.effects)
        if self.kernel is None:
            return history.replay(**ends)
        return replay_series(history.effects.reshape(history.n_arms, history.horizon).T, weights=self.kernel, **ends)


def read_history(
    path: Any,
    *,
    effects: str | Sequence[str] | None = None,
    kernel: Sequence[float] | None = None,
    round_column: str = "round",
    arm_column: str = "arm",
    sum_rows: bool = False,
) -> Recording:
    """Read a CSV file, or a table of pandas, polars or Arrow, with the columns round, arm and effects.

    effects: the columns with effects, by default lag0, lag1, ... up to the last in the file; with a kernel, the one
    column with whole effects, by default "effect". kernel: the shares of an effect that arrive 0, 1, ... rounds later.
    sum_rows: whether several rows of one arm in one round are added up; they are refused otherwise.

    >>> import aftereffect as ae
    >>> read_history(ae.load_example("mailings"), round_column="week", arm_column="mailing")
    Recording('the table', 120 plays, horizon=40, max_delay=3, arms=('coupon', 'catalogue', 'postcard'))
    """
    weights, effects = None, [effects] if isinstance(effects, str) else effects
    if kernel is not None:
        weights = checks.array("kernel", list(kernel), shape=("d+1",))
        checks.integer("len(kernel)", len(weights), low=1)
        if weights.sum() > 1.0 + 1e-9:
            raise InvalidArgument(f"kernel must sum to at most 1, the whole effect, but it sums to {weights.sum():g}")
        if effects is not None and len(effects) != 1:
            raise InvalidArgument(f"effects must be one column if a kernel is given, but got {checks.shown(effects)}")
    if not (isinstance(path, str | os.PathLike) or frames.is_frame(path)):
        raise InvalidArgument(f"path must be that of a file, or a table, but got {checks.shown(path)}")
    name, text = ("the table", frames.opened(path).write_csv()) if frames.is_frame(path) else _text(Path(path))
    lines = _lines(name, text)
    header, columns = _columns(name, next(lines, None), (round_column, arm_column), effects, weights is not None)
    first: dict[tuple[int, str], int] = {}
    texts: dict[int, str] = {}
    effects_of: dict[tuple[int, str], FloatArray] = {}
    dated: bool | None = None
    for line, row in lines:
        where = f"{name}, line {line}"
        if len(row) != len(header):
            raise InvalidHistory(f"{where}: must have {len(header)} columns, as line 1, but has {len(row)}")
        text, arm = row[columns[0]].strip(), row[columns[1]].strip()
        label, dated = _round(f"{where}, column {round_column!r}", text, dated)
        if not arm:
            raise InvalidHistory(f"{where}, column {arm_column!r}: must be a name, but it is empty")
        texts[label] = text
        play = (label, arm)
        if first.setdefault(play, line) != line and not sum_rows:
            raise InvalidHistory(
                f"{where}: a round must have at most one row for each arm, but arm {arm!r} in round {text} is in line "
                f"{first[play]} too; --sum-rows (in Python sum_rows=True) adds up the parts of one play"
            )
        numbers = np.array([_number(where, header[k], row[k]) for k in columns[2:]])
        effects_of[play] = effects_of.get(play, 0.0) + numbers
    arms = tuple(dict.fromkeys(arm for _, arm in first))
    if len(arms) < 2:
        raise InvalidHistory(f"{name}, column {arm_column!r}: must name at least 2 arms, but has {len(arms)}")
    rounds, played = np.array([(label, arms.index(arm)) for label, arm in first], dtype=np.int64).T
    lacking = ((t, arm) for t in sorted(texts) for arm in arms if (t, arm) not in first)
    missing = next((f"round {texts[t]} has none for arm {arm!r}" for t, arm in lacking), "")
    return Recording(name, arms, rounds, played, np.array(list(effects_of.values())), weights, missing)


def _text(path: Path) -> tuple[str, str]:
    """Return the name of a file, and its text."""
    data = path.read_bytes()
    try:
        return path.name, data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidHistory(f"{path.name}, line {line}: must be text in UTF-8, but it is not") from None


def _lines(name: str, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each non-empty row with the number of its last line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InvalidHistory(f"{name}, line {reader.line_num}: must be comma-separated values, but {error}") from None


def _columns(
    name: str, first: tuple[int, list[str]] | None, named: Sequence[str], effects: Sequence[str] | None, whole: bool
) -> tuple[list[str], list[int]]:
    """Return the header, and the positions of round, arm and the effects in it."""
    if first is None:
        raise InvalidHistory(f"{name}, line 1: must name the columns, but the file is empty")
    header = [column.strip() for column in first[1]]
    if effects is None:
        lags = sorted(int(column[3:]) for column in header if re.fullmatch(r"lag\d{1,6}", column))
        effects = ["effect"] if whole else [f"lag{s}" for s in range(max(lags, default=0) + 1)]
    wanted = [*named, *effects]
    for column in wanted:
        if header.count(column) != 1 or wanted.count(column) != 1:
            many = max(header.count(column), wanted.count(column) if column in header else 0)
            totals = "; a file of arms and totals is for `aftereffect carryover`" if not many else ""
            raise InvalidHistory(
                f"{name}, line 1, column {column!r}: must occur once, "
                f"but occurs {many} times in {checks.shown(header)}; --round-column, --arm-column and --effects "
                f"(in Python round_column, arm_column and effects) name the columns{totals}"
            )
    return header, [header.index(column) for column in wanted]


def _round(where: str, text: str, dated: bool | None) -> tuple[int, bool]:
    """Return a round as a sortable number, and whether it is a date. dated: whether earlier rounds are, if any."""
    rules = {None: "a whole number or a date like 2024-01-31", True: "a date like those above"}
    with suppress(ValueError):
        if re.fullmatch(r"[+-]?[0-9]{1,18}", text) and not dated:
            return int(text), False
        # Tables may have midnights in place of dates.
        if dated is not False and (moment := datetime.fromisoformat(text)).time() == time():
            return moment.toordinal(), True
    rule = rules.get(dated, "a whole number like those above")
    raise InvalidHistory(f"{where}: must be {rule}, but got {checks.shown(text)}")


def _number(where: str, column: str, text: str) -> float:
    """Return a finite number."""
    number = math.nan
    with suppress(ValueError):
        number = math.nan if "_" in text else float(text)
    if not math.isfinite(number):
        rest = "" if text.strip() else "; if the number is not known, leave the row out: it is then a missing round"
        raise InvalidHistory(f"{where}, column {column!r}: must be a finite number, but got {checks.shown(text)}{rest}")
    return number
