"""Totals as people write them: numbers with separators, and several reports as lines or as a CSV file.

A point is a decimal point. A comma is understood where it can mean one thing only (12,5 or 1,234,567 or 8.421,50);
where it can mean two (8,421), the number is refused, unless other numbers of the same file show what is meant.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from aftereffect.core.checks import shown
from aftereffect.core.frames import numbers, opened
from aftereffect.service import messages
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.commands import Reports
from aftereffect.service.messages import MOST_ITEMS

MISSING = "missing"
MOST_TEXT = 1 << 20
"""The maximum number of characters of a file."""
COLUMNS = {"round": "round", "date": "date", "day": "date", "unit": "unit", "arm": "arm", "total": "total"}
EXPORTED = frozenset(messages.Row.model_fields) - COLUMNS.keys()
"""The other columns of an export, which may be sent back with it; they are not read."""
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}", re.ASCII)
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_SPACED = re.compile(r"([+-]?\d{1,3})((?:[ \u00a0\u202f'\u2019]\d{3})+)((?:[.,]\d*)?)", re.ASCII)
WHOLE = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_TWICE = re.compile(r"([+-]?[1-9]\d{0,2})([.,])(\d{3})", re.ASCII)
"""A number whose separator can be that of thousands or that of decimals."""
# The decimal separator that a number with a comma, or with several points, must have.
_FORMS = {
    ".": re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d*|[+-]?\d{1,3}(,\d{3}){2,}", re.ASCII),
    ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d*|[+-]?\d{1,3}(\.\d{3}){2,}|[+-]?\d*,\d+", re.ASCII),
}


def decimal_of(text: str) -> str | None:
    """Return the decimal separator that a number shows; None if it shows none, or could mean two numbers.

    >>> decimal_of("8.421,50"), decimal_of("12,5"), decimal_of("1,234,567"), decimal_of("8,421"), decimal_of("8421")
    (',', ',', '.', None, None)
    """
    bare = text.strip()
    if _TWICE.fullmatch(bare):
        return None
    found = next((mark for mark, form in _FORMS.items() if form.fullmatch(bare)), None)
    return "." if found is None and _PLAIN.fullmatch(bare) and "." in bare else found


def number(name: str, text: str, decimal: str | None = None) -> float:
    """Return a number as people write it. decimal: the decimal separator, where it is known from other numbers.

    >>> number("total", " 8421.5 "), number("total", "8 421,50"), number("total", "1,234.5")
    (8421.5, 8421.5, 1234.5)
    >>> number("total", "8,421", decimal=".")
    8421.0
    """
    bare = text.strip()
    if spaced := _SPACED.fullmatch(bare):
        bare = spaced[1] + re.sub(r"\D", "", spaced[2]) + spaced[3].replace(",", ".")
    elif twice := _TWICE.fullmatch(bare):
        if decimal is None and twice[2] == ",":
            both = f"{twice[1]}{twice[3]} or {twice[1]}.{twice[3]}"
            raise _not_a_number(name, f"{shown(text)} can mean {both}")
        bare = twice[1] + ("." if twice[2] == (decimal or ".") else "") + twice[3]
    elif mark := decimal_of(bare):
        bare = bare.replace("," if mark == "." else ".", "").replace(",", ".")
    if not _PLAIN.fullmatch(bare) or abs(found := float(bare)) == float("inf"):
        raise _not_a_number(name, f"got {shown(text)}")
    return found


def whole(name: str, text: str) -> int:
    """Return a whole number.

    >>> whole("round", " 17")
    17
    """
    if not WHOLE.fullmatch(text.strip()):
        raise Refused("invalid", f"{name} must be a whole number, but got {shown(text)}", field=name)
    return int(text)


def _not_a_number(name: str, what: str) -> Refused:
    return Refused("invalid", f"{name} must be a number like 8421 or 0.5, but {what}", field=name)


def read(text: str) -> tuple[list[dict[str, str]], str]:
    """Return the rows of a CSV file (the cells of the known columns, by name) and the mark that separates its cells.

    The first line may have the names of columns: total, and round or date, unit, arm; the other columns of an export
    are not read, and any other name is refused. Cells are separated by semicolons, tabs or, if there are names, by
    commas. Without names, the last cell of a line is its total, one before it the round or the date.

    >>> read("date;total\\n2026-03-02;31,5\\n")
    ([{'date': '2026-03-02', 'total': '31,5'}], ';')
    >>> read("31.5\\n28\\n")[0]
    [{'total': '31.5'}, {'total': '28'}]
    """
    if len(text) > MOST_TEXT:
        raise Refused("too_large", f"a file must have at most {MOST_TEXT:,} characters, but has {len(text):,}")
    raw = [line for line in text.lstrip("\ufeff").splitlines() if line.strip(" \t;,")]
    first = raw[0] if raw else ""
    mark = next((mark for mark in ";\t," if mark in first), "")
    begun = [cell.strip(' "').lower() for cell in first.split(mark or None)]
    named = "total" in begun or bool(mark and not re.search(r"\d", first))
    if not named and mark == ",":
        mark = ""
        begun = [line.partition(",")[0].strip() for line in raw]
        counted = len(raw) > 1 and all(WHOLE.fullmatch(each) for each in begun)
        if counted and int(begun[0]) + 1 == int(begun[1]):
            words = f"{shown(first.strip())} can be a number, or a round and its total"
            raise Refused("invalid", f"the first line must name the columns, such as round,total, because {words}")
    try:
        lines = list(csv.reader(raw, delimiter=mark)) if mark else [[line] for line in raw]
    except csv.Error as error:
        raise Refused("invalid", f"the file must be CSV, but {error}") from None
    names = _columns(*lines) if named else ["round", "total"] if mark else ["total"]
    known = [name for name in names if name]
    if len({*known}) < len(known):
        raise Refused("invalid", f"the file must have each column once, but has {', '.join(known)}")
    rows = []
    for place, line in enumerate(lines[named:], 1):
        if any(cell.strip() for cell in line[len(names) :]):
            detail = f"line {place} of the totals must have {len(names)} cells, but has {len(line)}"
            raise Refused("invalid", f"{detail}; a number with a comma must be in quotes, or cells be separated by ;")
        rows.append({name: cell.strip() for name, cell in zip(names, line, strict=False) if name})
    # A list of days to come may have been written already.
    while rows and not rows[-1].get("total"):
        rows.pop()
    if not 1 <= len(rows) <= MOST_ITEMS:
        raise Refused("invalid", f"the file must have 1 to {MOST_ITEMS:,} totals, but has {len(rows):,}")
    return rows, mark


def _columns(header: Sequence[str], *lines: Sequence[str]) -> list[str]:
    """Return the names of the columns, "" for those that are not read; refuse one that is not known."""
    names = [COLUMNS.get(cell.strip().lower(), "") for cell in header]
    for place, cell in enumerate(header):
        cells = [line[place].strip() for line in lines if len(line) > place and line[place].strip()]
        if names[place] or cell.strip().lower() in EXPORTED or not (cell.strip() or cells):
            continue
        rule = "columns must be total, and round or date, unit, arm"
        raise Refused("invalid", f"{rule}, but got {shown(cell)}: {_meaning(cells, 'total' in names)}", field="csv")
    if "total" not in names:
        raise Refused("invalid", f"the file must have a column total, but has {', '.join(header)}", field="csv")
    return names


def _meaning(cells: Sequence[str], has_total: bool) -> str:
    """Return what a column that is not known may be, from its cells."""
    what = "it may be a unit or an arm: name it unit or arm"
    if cells and all(_DATE.fullmatch(cell) for cell in cells):
        what = "it looks like a date: name it date"
    elif cells and all(re.search(r"\d", cell) and not re.search(r"[^\W\d]", cell) for cell in cells):
        what = "it may be the round: name it round" if has_total else "it may be the total: name it total"
    return f"{what}, or remove it"


def of_table(table: Any) -> str:
    """Return a table of pandas, polars or Arrow as the text of a file; a total that is null is missing.

    >>> import polars
    >>> of_table(polars.DataFrame({"round": [3, 4], "total": [8.5, None]}))
    'round,total\\n3,8.5\\n4,missing\\n'
    """
    import narwhals

    frame, text = opened(table), {}
    if "total" in frame.columns:
        told = numbers("total", frame["total"]).tolist()
        text["total"] = [repr(total) if total == total else MISSING for total in told]
    if "date" in frame.columns:
        text["date"] = [str(day)[:10] for day in frame["date"].to_list()]
    columns = [narwhals.new_series(name, values, backend=frame.implementation) for name, values in text.items()]
    return str(frame.with_columns(*columns).write_csv())


def reports(given: messages.Reports) -> Reports:
    """Return the command for several reports, given as items or as the text of a CSV file.

    Those that name no rounds get the rounds from `first` on; a file must name them, or it could be sent twice.
    """
    if (given.items is None) == (given.csv is None):
        raise Refused("invalid", "exactly one of items and csv must be given, but got both or none")
    found = list(items(given.csv)) if given.csv is not None else given.items or []
    unnamed = sum(item.round is None and item.date is None for item in found)
    if unnamed == len(found) and given.first is not None:
        rounds = {item.unit: count(given.first) for item in found}
        found = [item.model_copy(update={"round": next(rounds[item.unit])}) for item in found]
    elif unnamed and given.csv is not None:
        rule = "a file must have the round or date of every total, or first must be given, the round of its first total"
        missing = f"but {unnamed:,} of {len(found):,} have neither: the same file again would report further rounds"
        raise Refused("invalid", f"{rule}, {missing}", field="csv")
    return Reports(found, given.ahead, given.next, given.restate)


def items(text: str) -> Iterator[messages.ReportItem]:
    """Yield the reports of a CSV file."""
    rows, separator = read(text)
    marks = {mark for mark in (decimal_of(row.get("total", "")) for row in rows) if mark}
    if len(marks) > 1:
        raise Refused("invalid", "the file must use one decimal separator, but has numbers with a point and a comma")
    seen: dict[tuple[str, ...], int] = {}
    for place, row in enumerate(rows, 1):
        try:
            item = _item(row, next(iter(marks), None), separator)
            which = tuple(row.get(name, "") for name in ("round", "date", "unit"))
            if any(which[:2]) and (before := seen.setdefault(which, place)) != place:
                detail = f"a round and unit must be reported once in a file, but report {before} has them too"
                raise Refused("invalid", detail, field="csv")
        except Refused as refusal:
            raise refusal.within(f"report {place}", place=place) from None
        yield item


def _item(row: Mapping[str, str], decimal: str | None, separator: str) -> messages.ReportItem:
    """Return the report of a row. decimal: the decimal separator, where it is known."""
    written = row.get("total", "")
    if not written:
        raise Refused("invalid", f"total must be a number or the word {MISSING}, but it is empty", field="total")
    if decimal is None and separator == ";" and (twice := _TWICE.fullmatch(written)):
        # Where semicolons separate cells, a point often separates thousands.
        raise _not_a_number("total", f"{shown(written)} can mean {twice[1]}{twice[3]} or {twice[1]}.{twice[3]}")
    found: dict[str, object] = {key: cell for key, cell in row.items() if cell}
    found["total"] = None if written.lower() == MISSING else number("total", written, decimal)
    # A column of rounds may hold their dates.
    if "round" in found and _DATE.fullmatch(row["round"]):
        found["date"] = found.pop("round")
    elif "round" in found:
        found["round"] = whole("round", row["round"])
    return checked(messages.ReportItem, found, "it")
