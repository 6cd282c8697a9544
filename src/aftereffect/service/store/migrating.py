"""Tables brought up to date when a store is opened: once, under a lock, however many processes start together.

On SQLite the caller holds the file's lock already; on PostgreSQL an advisory lock is held for the whole upgrade.
All steps run in one transaction: a store is at the old version or at the new one.
"""

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect

from aftereffect.service.errors import Refused

NEWEST = "0001"
"""The version of the tables that this code reads and writes: the last step in `migrations/versions`."""
STEPS = Path(__file__).parent / "migrations"
_LOCK = 7_245_113_908_216_450


def version(connection: Connection) -> str | None:
    """Return the version of a store's tables, None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return None if found is None else str(found)


def upgrade(engine: Engine) -> None:
    """Bring the tables up to date; refuse a store that a newer version of this service wrote."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            # The wait is for another process's upgrade, however long it takes.
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        found = version(connection)
        if found != NEWEST:
            _run_steps(connection, found)


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
