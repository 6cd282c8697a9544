"""What a database's own errors mean to whoever sent a command."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.store.presence import Unwritable

# PostgreSQL's codes: disk full, out of memory, configuration limit exceeded.
_PG_FULL = ("53100", "53200", "53400")
# Deadlock, serialization failure: nothing was kept, so the same again may do.
_PG_AGAIN = ("40P01", "40001")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


_UNKNOWN = "it is not known whether this was kept; ask and tell again: to repeat them is safe"


def refusal(error: SQLAlchemyError, *, committing: bool = False) -> Refused:
    """Return what to answer when the database failed; nothing was acknowledged.

    committing: the commit was sent, so a database that is gone may have kept what it did not answer for.
    """
    if isinstance(error, Unwritable):
        return Refused("busy", str(error))
    cause = getattr(error, "orig", None)
    said = " ".join(str(cause or error).split())[:200]
    if isinstance(error, IntegrityError):
        return Corrupt(f"the store already holds another event or row at this place (run verify): {said}")
    if isinstance(cause, sqlite3.Error):
        name = getattr(cause, "sqlite_errorname", "")
        if name.startswith(_DAMAGED):
            return Corrupt(f"the store's file is damaged: {said}")
        if name == "SQLITE_ERROR":
            return Corrupt(f"the store's tables are not what they should be: {said}")
        if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return Refused("busy", f"the store's file cannot be opened or written to: {said}")
        # What was written but not synced may be there after all, when the log is read again.
        if name.startswith(("SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC")):
            return Refused("full", f"the store could not write, {_UNKNOWN}: {said}")
        # A write the system refuses for another reason than a full disk (a quota, a limit) is the same to a user.
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return Refused("full", f"the store could not write, nothing was kept: {said}")
    elif getattr(cause, "sqlstate", None) in _PG_FULL:
        return Refused("full", f"the store could not write, nothing was kept: {said}")
    if committing:
        return Refused("busy", f"the store did not answer the commit, {_UNKNOWN}: {said}")
    return Refused("busy", f"the store did not answer, try again: {said}")


def worth_another_try(error: SQLAlchemyError) -> bool:
    """Say whether a transaction that has not reached its commit may simply be run again on a new connection."""
    if not isinstance(error, DBAPIError):
        return False
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _PG_AGAIN


@contextmanager
def guarded() -> Iterator[None]:
    """Turn a database's errors into refusals."""
    try:
        yield
    except SQLAlchemyError as error:
        raise refusal(error) from error
