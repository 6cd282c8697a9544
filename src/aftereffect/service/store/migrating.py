"""Tables brought up to date when a store is opened: once, under a lock, however many processes start together.

On SQLite the caller holds the file's lock already; on PostgreSQL an advisory lock is held for the whole upgrade.
All steps run in one transaction: a store is at the old version or at the new one. A database that holds something
else is somebody else's: it is refused, and nothing is put into it.
"""

import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect

from aftereffect.service.errors import Refused

NEWEST = "0001"
"""The version of the tables that this code reads and writes: the last step in `migrations/versions`."""
STEPS = Path(__file__).parent / "migrations"
# Every version of a store has these tables; their names alone are common ones.
_MARKS = frozenset({"alembic_version", "experiments", "events"})
_LOCK = 7_245_113_908_216_450


def look(file: Path) -> None:
    """Refuse a SQLite file with something else in it, before as much as a lock is put beside it.

    This reads the file alone, as if nobody could write to it: nothing is made, locked or moved. What is only in its
    log, or cannot be read in this way, is left to `upgrade`.
    """
    if not file.is_file() or not file.stat().st_size:
        return
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    except sqlite3.Error:
        return
    _check_names({name for (name,) in found}, str(file))


def _check_names(names: Collection[str], where: str) -> None:
    if names and not _MARKS.issubset(names):
        some = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
        raise Refused(
            "invalid",
            f"store must be a store of this service or an empty database, but {where!r} holds something else ({some}); "
            "nothing was changed in it",
        )


def version(connection: Connection) -> str | None:
    """Return the version of a store's tables, None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return None if found is None else str(found)


def upgrade(engine: Engine) -> None:
    """Bring the tables up to date; refuse what a newer version of this service wrote, and what is no store."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            # The wait is for another process's upgrade, however long it takes.
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = version(connection)
        _check_names(inspect(connection).get_table_names(), engine.url.database or "")
        if found != NEWEST:
            _run_steps(connection, found)


def check(engine: Engine) -> None:
    """Refuse a store that can only be read if its tables are not up to date."""
    with engine.connect() as connection:
        found = version(connection)
    if found != NEWEST:
        raise Refused(
            "invalid", f"store must be of version {NEWEST} where it can only be read, but it is of {found or 'none'}"
        )


def _run_steps(connection: Connection, found: str | None) -> None:
    # Loaded when wanted: most of the time a store is up to date.
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(STEPS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    steps = ScriptDirectory.from_config(config)
    if found is not None and found not in {step.revision for step in steps.walk_revisions()}:
        known = f"store must be of version {NEWEST} or older"
        raise Refused("invalid", f"{known}, but it is of {found}: use a newer release")
    with EnvironmentContext(config, steps, fn=lambda at, _: steps._upgrade_revs(NEWEST, at)) as environment:
        environment.configure(connection=connection)
        environment.run_migrations()
