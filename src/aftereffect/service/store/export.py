"""An experiment's rounds as a file: CSV for people, Parquet for programs. A row per round and unit, in order."""

import io
from typing import Any

from sqlalchemy import Engine

from aftereffect.core import checks
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused
from aftereffect.service.store.loading import find
from aftereffect.service.store.reading import ITEM_FIELDS, every_round

FORMS = ("csv", "parquet")
# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NAMES = tuple(ITEM_FIELDS.index(name) for name in ("unit", "arm", "why"))


def export(engine: Engine, identity: str, form: str) -> bytes:
    """Return all rounds of an experiment as the bytes of a file."""
    try:
        checks.choice("form", form, FORMS)
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None
    with engine.connect() as connection:
        rows = every_round(connection, find(connection, identity).number)
        return _csv(rows) if form == "csv" else _parquet(rows)


def _csv(rows: Any) -> bytes:
    lines = [",".join(ITEM_FIELDS)]
    for row in rows:
        cells = list(row)
        for i in _NAMES:
            # An apostrophe in front makes it text again.
            if cells[i].startswith(_FORMULA):
                cells[i] = "'" + cells[i]
        lines.append(",".join(map(_cell, cells)))
    return "".join(f"{line}\r\n" for line in lines).encode()


def _cell(value: Any) -> str:
    """Return a cell: text in quotes, numbers without, nothing for None; quoted, nothing would make a column text."""
    if value is None:
        return ""
    return '"' + value.replace('"', '""') + '"' if isinstance(value, str) else str(value)


def _parquet(rows: Any) -> bytes:
    # Loaded when wanted: it takes longer than everything else a small command does.
    import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(ITEM_FIELDS, pl.String)
    kinds |= dict.fromkeys(("round", "block", "block_start"), pl.Int64)
    kinds |= dict.fromkeys(("total", "probability", "fed"), pl.Float64)
    kinds |= dict.fromkeys(("draw", "washin", "measured", "update", "substituted"), pl.Boolean)
    data = io.BytesIO()
    pl.DataFrame(list(rows), schema=kinds, orient="row").write_parquet(data)
    return data.getvalue()
