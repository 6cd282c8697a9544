"""What is read from a store. A `Store` calls these functions, each on a connection that sees the last commit.

An export, as CSV for spreadsheets or as Parquet, is first written to disk from one snapshot of the database, and then
returned in chunks. So a large export needs little memory, and a slow client does not hold a database connection.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, bindparam, func, select, tuple_

from aftereffect.core.checks import shown
from aftereffect.service import messages, words
from aftereffect.service.errors import Refused
from aftereffect.service.experiment import learned as models
from aftereffect.service.experiment.learned import Record
from aftereffect.service.messages import Fields, Learned, Overview, StoredRow
from aftereffect.service.settings import LARGEST, ExperimentSettings
from aftereffect.service.store import event_log, schema
from aftereffect.service.store.database import UNREADABLE, of_one_experiment
from aftereffect.service.store.event_log import find

LARGEST_INDEX = 2**31 - 1
UNCHARTED = ("reason", "drawn", "withheld", "asked_at", "told_at", "note")
_CURSOR = re.compile(r"([0-9]{1,19})(?:\.([0-9]{1,10})?)?")
ITEM_FIELDS = tuple(StoredRow.model_fields)
# The fields of a row that the charts need.
SERIES_FIELDS = tuple(name for name in ITEM_FIELDS if name not in UNCHARTED)
EXPORTED = (*ITEM_FIELDS, "why")
_NAMES = tuple(EXPORTED.index(name) for name in ("unit", "arm", "drawn", "why", "note"))
# A spreadsheet reads a cell that begins with one of these as a formula (the last four are full-width characters, as of
# Japanese keyboards); a leading apostrophe makes it text.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
CHUNK = 2**18
_SETTINGS = set(messages.Summary.model_fields) & set(ExperimentSettings.model_fields)
_experiments, _rounds, _events = schema.experiments.c, schema.rounds.c, schema.events.c
items = select(_rounds.unit_index, *(_rounds[name] for name in ITEM_FIELDS))
_place = tuple_(_rounds.round, _rounds.unit_index)
_summaries = select(schema.experiments, event_log.last_round).order_by(_experiments.number)
_numbers = select(_experiments.number, _experiments.id)
HEAD = select(_experiments.head).where(_experiments.id == bindparam("id"))
NUMBER = _numbers.where(_experiments.id == bindparam("id"))
"""Finds an experiment whose row may be damaged."""


def read_cursor(after: str | int | None) -> tuple[int, int]:
    """Return (round, unit index) after which a page begins; "ROUND" means after all units of that round.

    >>> read_cursor(None), read_cursor("7.1"), read_cursor(7) == (7, LARGEST_INDEX)
    ((0, 2147483647), (7, 1), True)
    """
    found = _CURSOR.fullmatch("0" if after is None else str(after))
    if found is not None:
        round_, unit = int(found[1]), int(found[2] or LARGEST_INDEX)
        if round_ <= LARGEST and unit <= LARGEST_INDEX:
            return round_, unit
    raise Refused("invalid", f"after must be ROUND or ROUND.UNIT, but got {shown(after)}", field="after")


def experiment(connection: Connection, identity: str) -> Overview:
    """Return the view of an experiment after its last commit, with its id and its date."""
    return event_log.load(connection, identity).view()


def head(connection: Connection, identity: str) -> str:
    """Return the hash of the last event of an experiment."""
    found: str = find(connection, identity, HEAD).head
    return found


def learned(connection: Connection, identity: str) -> Learned:
    """Return what the rounds of an experiment say about its arms."""
    loaded = event_log.load(connection, identity)
    experiment, settings, view = loaded.experiment, loaded.experiment.settings, loaded.view()
    if experiment.last > settings.model_rounds:
        return models.unknown(identity, words.no_model(settings))
    seen, before = event_log.seen(connection, loaded), experiment.history
    own = Record(seen.arms[before:], seen.totals[before:])
    return models.learned(identity, settings, seen, own, view.away, view.sum_of_totals)


def experiments(
    connection: Connection,
    after: str | None = None,
    limit: int = 100,
    state: str | None = None,
    search: str | None = None,
) -> Fields:
    """Return a page of experiments in order of creation, and the ids of those that cannot be read, if any.

    after: the id of the last one seen. search: only those whose names contain this text, in upper or lower case.
    """
    query = _numbers.order_by(_experiments.number).limit(limit + 1)
    if state is not None:
        query = query.where(_experiments.status == state)
    if search and "\0" in search:
        raise Refused("invalid", "search must not contain NUL, but does", field="search")
    if search:
        query = query.where(func.lower(_experiments.name).contains(search.lower(), autoescape=True))
    if after is not None:
        query = query.where(_experiments.number > find(connection, after, NUMBER).number)
    found = connection.execute(query).all()
    items = _read_summaries(connection, [row.number for row in found[:limit]])
    page = {"items": items, "next": found[limit - 1].id if len(found) > limit else None}
    damaged = sorted({row.id for row in found[:limit]} - {item["id"] for item in items})
    return {**page, "damaged": damaged} if damaged else page


def _read_summaries(connection: Connection, numbers: Sequence[int]) -> list[Fields]:
    """Return the experiments with these numbers that can be read."""
    items = []
    try:
        for row in connection.execute(_summaries.where(_experiments.number.in_(numbers))):
            settings = json.loads(row.settings)
            given = {name: settings.get(name) for name in _SETTINGS}
            state = {"state": row.status, "round": row.last or 0, "events": int(row.seq), "created_at": row.created_at}
            items.append(sound(messages.Summary, {"id": row.id, **state, **given}))
    except UNREADABLE as error:
        if not of_one_experiment(error):
            raise
        connection.rollback()
        # At least one of them is damaged: read each separately.
        return [item for each in numbers if len(numbers) > 1 for item in _read_summaries(connection, [each])]
    return items


def settings_of(row: Any) -> ExperimentSettings:
    """Return the settings of an experiment. row: of the table of experiments."""
    return ExperimentSettings.from_json(json.loads(row.settings))


def sound(model: type[messages.Reply], item: Fields) -> Fields:
    """Return what was read, or raise ValueError if its values are not of the model's types."""
    model.model_validate(item, strict=True)
    return item


def sound_rows(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield rows of `items`, or raise ValueError at one whose values are not of a round's types."""
    known = set()
    for row in rows:
        if (types := tuple(map(type, row))) not in known:
            sound(StoredRow, dict(zip(ITEM_FIELDS, row[1:], strict=True)))
        known.add(types)
        yield row


def rounds(connection: Connection, identity: str, after: str | int | None = None, limit: int = 100) -> Fields:
    """Return a page of round rows, by round and unit; after: "ROUND", or "ROUND.UNITINDEX" between units."""
    row = find(connection, identity)
    settings = settings_of(row)
    query = items.where(_rounds.experiment == row.number, _place > read_cursor(after))
    query = query.order_by(_rounds.round, _rounds.unit_index).limit(limit + 1)
    found = list(sound_rows(connection.execute(query)))
    page = [dict(zip(ITEM_FIELDS, row[1:], strict=True)) for row in found[:limit]]
    last = f"{found[limit - 1].round}.{found[limit - 1].unit_index}" if len(found) > limit else None
    return {"items": [{**row, "why": words.why(row, settings)} for row in page], "next": last}


def events(connection: Connection, identity: str, after: int = 0, limit: int = 100) -> Fields:
    """Return a page of the log; after: the seq of the last event seen."""
    number = find(connection, identity, NUMBER).number
    query = select(*schema.events.c[1:]).where(_events.experiment == number, _events.seq > after)
    found = connection.execute(query.order_by(_events.seq).limit(limit + 1)).all()
    page = [sound(messages.Event, {**row._mapping, "body": json.loads(row.body)}) for row in found[:limit]]
    return {"items": page, "next": page[-1]["seq"] if len(found) > limit else None}


def series(connection: Connection, identity: str, last: int = 2000) -> Fields:
    """Return the data of the charts for the latest `last` rows, column by column."""
    row = find(connection, identity)
    query = items.where(_rounds.experiment == row.number)
    query = query.order_by(_rounds.round.desc(), _rounds.unit_index.desc()).limit(last)
    found = list(sound_rows(connection.execute(query)))[::-1]
    columns = {name: [getattr(row, name) for row in found] for name in SERIES_FIELDS}
    return {"experiment": identity, "arms": json.loads(row.settings)["arms"], **columns}


def export(connection: Connection, identity: str, form: str) -> Iterator[bytes]:
    """Return all rounds of an experiment as chunks of a "csv" or "parquet" file; they are read before this returns."""
    with tempfile.TemporaryDirectory(prefix="aftereffect-export-") as folder:
        file = Path(folder) / "rounds.csv"
        _write_csv(connection, identity, file, for_people=form == "csv")
        # An open file can be read also when it is deleted from its folder.
        return _chunks((_as_parquet(file) if form == "parquet" else file).open("rb"))


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK):
            yield chunk


def _write_csv(connection: Connection, identity: str, file: Path, *, for_people: bool) -> None:
    row = find(connection, identity)
    settings, query = settings_of(row), items.where(_rounds.experiment == row.number)
    query = query.order_by(_rounds.round, _rounds.unit_index).execution_options(yield_per=1000)
    with file.open("w", encoding="utf-8", newline="") as out, connection.execute(query) as found:
        out.write(",".join(EXPORTED) + "\r\n")
        for _, *cells in sound_rows(found):
            cells.append(words.why(dict(zip(ITEM_FIELDS, cells, strict=True)), settings))
            for i in _NAMES:
                if for_people and (cells[i] or "").startswith(_FORMULA):
                    cells[i] = "'" + cells[i]
            out.write(",".join(map(_cell, cells)) + "\r\n")


def _cell(value: Any) -> str:
    """Return a CSV cell: strings quoted, numbers unquoted, None empty (a quoted empty cell would be a string)."""
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else str(value)


def _as_parquet(file: Path) -> Path:
    # Imported here because it is slow.
    import polars as pl

    kinds: dict[str, Any] = {name: _rounds[name].type.python_type for name in ITEM_FIELDS}
    made = file.with_suffix(".parquet")
    pl.scan_csv(file, schema=pl.Schema({**kinds, "why": str})).sink_parquet(made)
    return made
