"""The tables of a store, and how they are created and upgraded.

    experiments   one row each: settings, length of its log (seq) and hash of its last event (head)
    events        the log: consecutive in seq, each event linked to the previous one by its hash
    rounds        one row per round and unit; derived from the log
    checkpoints   the latest saved state of an experiment, with its place in the log
    reminders     the webhook to call when a round of an experiment waits
    keys          idempotency keys of requests, as hashes, with their answers
    tokens        access tokens; only their hashes are stored

The API identifies an experiment by its id, which cannot be guessed; rows refer to it by a short number. Bodies and
states are text, not JSON columns, because the hashes need them back character by character.

An empty database gets these tables when it is opened. A store of an earlier version is upgraded by `STEPS`, in one
transaction: under the file's lock on SQLite, under an advisory lock on PostgreSQL. A database with other tables is
refused and not modified.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from types import NoneType
from typing import Any, get_args

import sqlalchemy as sa

from aftereffect.service.errors import Refused
from aftereffect.service.messages import StoredRow

metadata = sa.MetaData()

# SQLite assigns row numbers only if the type of the key is exactly INTEGER.
_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_TYPES = {int: sa.BigInteger, float: sa.Double, bool: sa.Boolean}


def _column(name: str) -> sa.Column[Any]:
    """Return the column of a field of a stored row."""
    kind = StoredRow.model_fields[name].annotation
    kinds = {kind, *get_args(kind)}
    return sa.Column(name, next((_TYPES[each] for each in kinds & _TYPES.keys()), sa.Text), nullable=NoneType in kinds)


experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("number", _Number, sa.Identity(), primary_key=True),
    sa.Column("id", sa.String(32), nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("head", sa.String(64), nullable=False),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("settings", sa.Text, nullable=False),
    # The number of a deleted experiment is never used again.
    sqlite_autoincrement=True,
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("experiment", _Number, sa.ForeignKey("experiments.number"), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("round", sa.BigInteger),
    sa.Column("unit", sa.Text),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.UniqueConstraint("experiment", "seq", name="one_event_per_seq"),
)

rounds = sa.Table(
    "rounds",
    metadata,
    sa.Column("experiment", _Number, sa.ForeignKey("experiments.number"), nullable=False),
    _column("round"),
    sa.Column("unit_index", sa.Integer, nullable=False),
    *(_column(name) for name in StoredRow.model_fields if name != "round"),
    sa.UniqueConstraint("experiment", "round", "unit_index", name="one_row_per_round_and_unit"),
)

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    sa.Column("experiment", _Number, sa.ForeignKey("experiments.number"), primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("head", sa.String(64), nullable=False),
    sa.Column("state", sa.Text, nullable=False),
)

reminders = sa.Table(
    "reminders",
    metadata,
    sa.Column("experiment", _Number, sa.ForeignKey("experiments.number"), primary_key=True),
    sa.Column("webhook", sa.Text, nullable=False),
    # Days after the end of a round.
    sa.Column("after", sa.Double, nullable=False),
    # The round of the latest call, how often it was made, and when it is repeated; 0 and None if there is none.
    sa.Column("round", sa.BigInteger, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_at", sa.String(32)),
    sa.Column("outcome", sa.Text),
    sa.Column("outcome_at", sa.String(32)),
)

keys = sa.Table(
    "keys",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    # A hash of what was asked for.
    sa.Column("request", sa.String(64), nullable=False),
    sa.Column("answer", sa.Text, nullable=False),
    sa.Column("at", sa.String(32), nullable=False),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("created_at", sa.String(32), nullable=False),
    sa.Column("revoked_at", sa.String(32)),
)

# In an order that satisfies the foreign keys; tokens last.
TABLES = (experiments, events, rounds, checkpoints, reminders, keys, tokens)

# With one row: the version of the tables. The name is that in the stores there are.
versions = sa.Table("alembic_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True))

STEPS: tuple[Callable[[sa.Connection], object], ...] = ()
"""What upgrades the tables from version "0001" to "0002", from that to "0003", ... A released step is never changed."""
# Every version of a store has all of these tables; a single one could belong to another program.
_MARKS = frozenset({"alembic_version", "experiments", "events"})
_LOCK = 7_245_113_908_216_450


def check_file(file: Path) -> None:
    """Refuse a SQLite file with other tables, before anything is written to it or beside it.

    Reads the database file only, without its write-ahead log, and creates or locks nothing. `upgrade` checks again with
    the log.
    """
    if not file.is_file() or not file.stat().st_size:
        return
    with contextlib.suppress(sqlite3.Error):
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        _check_names({name for (name,) in found}, str(file))


def _check_names(names: Collection[str], where: str) -> None:
    if names and not _MARKS.issubset(names):
        some = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
        rule = "store must be a store of this service or an empty database"
        raise Refused("invalid", f"{rule}, but {where!r} has other tables ({some}); it was not modified")


def version(connection: sa.Connection) -> str | None:
    """Return the version of a store's tables, None for an empty database."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.select(versions.c.version_num)).scalar_one_or_none()


def upgrade(engine: sa.Engine, *, read_only: bool = False) -> None:
    """Create or upgrade the tables; refuse a database that is not a store, or whose version is not supported.

    read_only: the tables must be up to date, because nothing can be changed.
    """
    known = [f"{number:04}" for number in range(1, len(STEPS) + 2)]
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            # Wait without limit for another process's upgrade.
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = version(connection)
        _check_names(sa.inspect(connection).get_table_names(), engine.url.database or "")
        if read_only and found != known[-1]:
            rule = f"store must be of version {known[-1]} if it is read-only"
            raise Refused("invalid", f"{rule}, but it is of {found or 'none'}")
        if found is None:
            metadata.create_all(connection)
            connection.execute(sa.insert(versions).values(version_num=known[-1]))
            return
        if found not in known:
            rule = f"store must be of version {known[-1]} or older"
            raise Refused("invalid", f"{rule}, but it is of {found}: use a newer release")
        if found != known[-1]:
            for step in STEPS[known.index(found) :]:
                step(connection)
            connection.execute(sa.update(versions).values(version_num=known[-1]))
