"""SQLite's write-ahead log, moved into its file now and then, so that neither it nor a restart gets long.

It is moved between two transactions, by whoever writes them: only when all of it has been moved, and nothing came
meanwhile, does the log begin again at its start.
"""

import logging
import sqlite3

from sqlalchemy.exc import SQLAlchemyError

from aftereffect.service.store.places import Place

LOG_ROWS, LOG_ROWS_IDLE = 65_536, 4_096
"""After how many rows the log is moved; sooner when nobody waits."""

_log = logging.getLogger(__name__)


class Sweeper:
    """Counts the rows that went into the log."""

    def __init__(self, place: Place) -> None:
        """Take the log for empty."""
        self._place = place
        self._rows = 0

    def count(self, rows: int) -> None:
        """Note rows that were committed."""
        self._rows += rows

    @property
    def any(self) -> bool:
        """Whether something is in the log of a SQLite file that is not in the file yet."""
        return self._place.is_sqlite and self._rows > 0

    def due(self, *, idle: bool) -> bool:
        """Whether the log should be moved; idle: nobody waits."""
        return self._place.is_sqlite and self._rows >= (LOG_ROWS_IDLE if idle else LOG_ROWS)

    def sweep(self) -> None:
        """Move the log into the file, as far as readers allow."""
        self._rows = 0
        try:
            connection = self._place.writing.raw_connection()
            try:
                cursor = connection.cursor()
                with self._place.changing():
                    cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
                cursor.close()
            finally:
                connection.close()
        except (SQLAlchemyError, sqlite3.Error) as error:
            # A full disk, say, only puts it off.
            _log.warning("the log could not be moved into the file yet: %s", error)
