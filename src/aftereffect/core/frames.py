"""Tables of pandas, polars or Arrow, read through narwhals: one row per round and unit, with its arm and its total.

    date        store   campaign   sales            columns are found by the names given, or else by usual names
    2024-01-01  north   letter     8421
    2024-01-01  south   none       7730             a total that is missing is null; an arm that is not known, too
    2024-01-02  north   letter     8610

Rounds are whole numbers, dates or times, in ascending order within a unit; a round that a unit lacks is one whose arm
and total are not known. The same table gives the same arrays, whichever library it comes from.
"""

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.checks import FloatArray
from aftereffect.core.errors import AftereffectWarning, InvalidArgument
from aftereffect.core.text import counted

Codes = NDArray[np.int64]
USUAL = {
    "round": ("round", "date", "day", "week", "month", "period", "time", "timestamp"),
    "arm": ("arm", "action", "campaign", "treatment", "variant", "group"),
    "total": ("total", "sales", "revenue", "reward", "outcome", "value", "y"),
    "unit": ("unit", "store", "shop", "geo", "region", "market", "site", "city", "location"),
}
"""By what a column means: its usual names. The first one is not called a guess."""
SPARSE = 10
"""Rounds may be at most this many times the labels that occur; else the labels are not evenly spaced."""


@dataclass(frozen=True, eq=False)
class RoundTable:
    """Rounds of units: unit u played arm arms[played[t, u]] in round rounds[t] and had totals[t, u].

    rounds: the labels from the first to the last, evenly spaced; None where no row has it. played: −1 where the arm is
    not known.
    totals: NaN where missing. columns: the column of each meaning. guessed: those that were found by their names.

    >>> import polars
    >>> frame = polars.DataFrame({"week": [1, 3], "campaign": ["letter", "none"], "sales": [77.0, 95.0]})
    >>> table = round_table(frame, round_column="week", arm_column="campaign", total_column="sales")
    >>> table
    RoundTable(2 rounds from 1 to 3, 1 unit, arms=('letter', 'none'), 2 totals)
    """

    rounds: tuple[Any, ...]
    units: tuple[str, ...]
    arms: tuple[str, ...]
    played: Codes
    totals: FloatArray
    columns: dict[str, str]
    guessed: tuple[str, ...]

    def __repr__(self) -> str:
        rounds = f"{counted(len(self.rounds), 'round')} from {self.rounds[0]} to {self.rounds[-1]}"
        sizes = f"{rounds}, {counted(len(self.units), 'unit')}"
        return f"RoundTable({sizes}, arms={checks.shown(self.arms)}, {int(np.isfinite(self.totals).sum())} totals)"


def is_frame(value: Any) -> bool:
    """Whether `value` is a table that `round_table` reads; arrays and lists are not."""
    if isinstance(value, np.ndarray | list | tuple | str | bytes):
        return False
    import narwhals

    try:
        return isinstance(narwhals.from_native(value, pass_through=True), narwhals.DataFrame | narwhals.LazyFrame)
    except narwhals.exceptions.DuplicateError as error:
        got = str(error).rpartition("- ")[2]
        raise InvalidArgument(f"frame must not have two columns of one name, but has {got}") from None


def opened(frame: Any) -> Any:
    """Return the frame of narwhals for a table; a lazy one is collected, and a named index of pandas is a column."""
    import narwhals

    if not is_frame(frame):
        raise InvalidArgument(f"frame must be a table of pandas, polars or Arrow, but got {checks.shown(type(frame))}")
    native: Any = frame
    if narwhals.dependencies.is_pandas_dataframe(frame) and any(native.index.names):
        native = native.reset_index()
    native = narwhals.from_native(native)
    return native.collect() if isinstance(native, narwhals.LazyFrame) else native


def round_table(
    frame: Any,
    *,
    round_column: str | None = None,
    arm_column: str | None = None,
    total_column: str | None = None,
    unit_column: str | None = None,
    arms: Sequence[str] | None = None,
) -> RoundTable:
    """Read a table with one row per round and, if there are several, per unit.

    A column that is not named is found by a usual name (`USUAL`); a guess is said in a warning. arms: their names in
    the order of their numbers; by default sorted.

    >>> import polars
    >>> columns = {"round": [1, 1, 2, 2], "unit": ["x", "y"] * 2, "arm": [0, 1, 1, 0], "total": [3, 5, 4, None]}
    >>> frame = polars.DataFrame(columns)
    >>> table = round_table(frame)
    >>> table.played.tolist(), table.totals.tolist()
    ([[0, 1], [1, 0]], [[3.0, 5.0], [4.0, nan]])
    """
    table = opened(frame)
    given = {"round": round_column, "arm": arm_column, "total": total_column, "unit": unit_column}
    columns, guessed = columns_of(table.columns, given)
    if guessed:
        said = ", ".join(f"{name}_column={columns[name]!r}" for name in guessed)
        warnings.warn(f"columns were guessed by their names: {said}", AftereffectWarning, stacklevel=3)
    labels, when = _rounds(columns["round"], table.get_column(columns["round"]))
    units: tuple[str, ...] = ("",)
    unit_of = np.zeros(len(when), dtype=np.int64)
    if "unit" in columns:
        units, unit_of = _names(columns["unit"], table.get_column(columns["unit"]), None, missing=False)
    names, arm_of = _names(columns["arm"], table.get_column(columns["arm"]), arms, missing=True)
    if len(names) < 2:
        raise InvalidArgument(f"column {columns['arm']!r} must name at least 2 arms, but got {checks.shown(names)}")
    _check_order(columns["round"], labels, units if "unit" in columns else (), when, unit_of)
    played = np.full((len(labels), len(units)), -1, dtype=np.int64)
    totals = np.full(played.shape, np.nan)
    played[when, unit_of] = arm_of
    totals[when, unit_of] = numbers(columns["total"], table.get_column(columns["total"]))
    return RoundTable(labels, units, names, played, totals, columns, guessed)


def numbers(name: str, series: Any) -> FloatArray:
    """Return a column of numbers, NaN where it is missing."""
    import narwhals

    if series.dtype.is_numeric():
        values = np.array(series.cast(narwhals.Float64).to_numpy(), dtype=np.float64)
        values[series.is_null().to_numpy()] = np.nan
    else:
        found = series.to_list()
        if not all(value is None or type(value) in (int, float, Decimal) for value in found):
            raise InvalidArgument(f"column {name!r} must hold numbers, but is of type {series.dtype}")
        values = np.array([math.nan if value is None else float(value) for value in found])
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise InvalidArgument(f"column {name!r} must hold finite numbers, but row {row} is {float(values[row])!r}")
    return values


def columns_of(
    header: list[str], given: dict[str, str | None], optional: Sequence[str] = ("unit",)
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the column of each meaning, and which meanings were guessed. optional: meanings that may be missing."""
    found, guessed = {}, []
    for name, wanted in given.items():
        if wanted is not None:
            if wanted not in header:
                got = f"{wanted!r}, and the columns are {checks.shown(header)}"
                raise InvalidArgument(f"{name}_column must be a column of the table, but got {got}")
            found[name] = wanted
            continue
        usual = [column for column in header if str(column).lower() in USUAL[name] and column not in given.values()]
        if len(usual) > 1 and name not in usual:
            got = " and ".join(map(repr, usual))
            raise InvalidArgument(f"{name}_column must be given if several columns may be meant, but got {got}")
        if usual:
            found[name] = name if name in usual else usual[0]
            guessed += [name] * (name not in usual)
        elif name not in optional:
            got = f"columns {checks.shown(header)}"
            raise InvalidArgument(f"{name}_column must be given if no column has a usual name for it, but got {got}")
    for name, column in found.items():
        if twice := [other for other in found if other != name and found[other] == column]:
            raise InvalidArgument(f"{name}_column and {twice[0]}_column must be different columns, but got {column!r}")
    return found, tuple(guessed)


def _names(column: str, series: Any, order: Sequence[str] | None, missing: bool) -> tuple[tuple[str, ...], Codes]:
    """Return the names in a column, and the number of each row's name; −1 where it is missing, if that is allowed."""
    null = series.is_null().to_numpy()
    if null.any() and not missing:
        raise InvalidArgument(f"column {column!r} must be known in every row, but row {int(null.argmax())} is missing")
    values = sorted(series.drop_nulls().unique().to_list(), key=lambda value: (isinstance(value, str), value))
    if order is not None:
        by_name = {_name(value): value for value in values}
        if len(set(order)) < len(order):
            raise InvalidArgument(f"arms must differ from each other, but got {checks.shown(order)}")
        if unknown := [name for name in by_name if name not in order]:
            raise InvalidArgument(f"arms must have every name in column {column!r}, but {unknown[0]!r} is missing")
        codes = {value: list(order).index(name) for name, value in by_name.items()}
        return tuple(order), _codes(series, codes, null)
    return tuple(map(_name, values)), _codes(series, {value: k for k, value in enumerate(values)}, null)


def _name(value: Any) -> str:
    """Return a value as a name; pandas has floats where whole numbers may be missing."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _codes(series: Any, codes: dict[Any, int], null: NDArray[np.bool_]) -> Codes:
    """Return the number of each row's value, −1 for null."""
    import narwhals

    found = np.full(len(null), -1, dtype=np.int64)
    known = series.drop_nulls()
    found[~null] = known.replace_strict(list(codes), list(codes.values()), return_dtype=narwhals.Int64).to_numpy()
    return found


def _rounds(column: str, series: Any) -> tuple[tuple[Any, ...], Codes]:
    """Return all labels from the first to the last, evenly spaced, and the position of each row's label among them."""
    null = series.is_null().to_numpy()
    if null.any() or not len(null):
        got = f"row {int(null.argmax())} is missing" if null.any() else "there are none"
        raise InvalidArgument(f"column {column!r} must be known in every row, but {got}")
    values = series.unique().to_list()
    known = [_label(column, value) for value in values]
    if len({isinstance(label, int) for label in known}) > 1:
        raise InvalidArgument(f"column {column!r} must hold rounds of one kind, but got whole numbers and dates")
    known, places = _placed(known)
    first, last = min(places), max(places)
    step = math.gcd(*(place - first for place in places)) or 1
    count = (last - first) // step + 1
    if count > SPARSE * len(values):
        got = f"{len(values)} labels in {count} steps"
        raise InvalidArgument(f"column {column!r} must hold rounds that are evenly spaced but for gaps, but got {got}")
    positions = [(place - first) // step for place in places]
    labels = dict(zip(positions, known, strict=True))
    return tuple(map(labels.get, range(count))), _codes(series, dict(zip(values, positions, strict=True)), null)


def _label(column: str, value: Any) -> Any:
    """Return the label of a round: a whole number, or the time in its text (ISO 8601); of a month its first day.

    >>> _label("week", 3.0), _label("month", "2024-02").date()
    (3, datetime.date(2024, 2, 1))
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer():
        return int(value)
    text = str(value)
    try:
        return datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"\d{4}-\d\d", text) else text)
    except ValueError:
        rule = "must hold whole numbers, dates such as 2024-01-31 or times"
        raise InvalidArgument(f"column {column!r} {rule}, but got {checks.shown(value)}") from None


def _placed(labels: list[Any]) -> tuple[list[Any], list[int]]:
    """Return labels, of midnights as dates, and whole numbers that say how far they are from each other."""
    if isinstance(labels[0], int):
        return labels, labels
    if any(label.time() != time(0) for label in labels):
        aware = [label if label.tzinfo else label.replace(tzinfo=UTC) for label in labels]
        return labels, [round(label.timestamp()) for label in aware]
    dates = [label.date() for label in labels]
    last_days = all((day + timedelta(days=1)).day == 1 for day in dates)
    if max(dates) - min(dates) > timedelta(days=27) and (last_days or len({day.day for day in dates}) == 1):
        # A date a month: months are the rounds, whatever their lengths.
        return dates, [12 * day.year + day.month for day in dates]
    return dates, [day.toordinal() for day in dates]


def _check_order(column: str, labels: Sequence[Any], units: Sequence[str], when: Codes, unit_of: Codes) -> None:
    """Raise an error if, within a unit, a round repeats or comes before one of an earlier row.

    units: their names, if the table has a column of them.
    """
    order = np.argsort(unit_of, kind="stable")
    wrong = np.flatnonzero((np.diff(unit_of[order]) == 0) & (np.diff(when[order]) <= 0))
    if not len(wrong):
        return
    before, row = (int(n) for n in order[wrong[0] : wrong[0] + 2])
    of = f" of unit {units[unit_of[row]]!r}" if units else ""
    hint = "" if units else "; if the table has units, name their column (unit_column)"
    rule, found = "not go backwards", f", after {labels[when[before]]}"
    if when[row] == when[before]:
        rule, found = "not repeat a round", " again"
    raise InvalidArgument(f"column {column!r} must {rule}, but row {row}{of} is {labels[when[row]]}{found}{hint}")
