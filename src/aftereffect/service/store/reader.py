"""A connection to read with, made when it is first needed: most commands find all they need in memory."""

from types import TracebackType
from typing import Self

from sqlalchemy import Connection, Engine


class Reader:
    """Either a connection that somebody else opened and closes, or one of an engine, opened when it is asked for."""

    def __init__(self, source: Engine | Connection) -> None:
        """Open nothing yet."""
        self._engine = source if isinstance(source, Engine) else None
        self._connection = source if isinstance(source, Connection) else None

    @property
    def connection(self) -> Connection:
        """The connection; always the same one, so what it reads fits together."""
        if self._connection is None:
            if self._engine is None:
                raise RuntimeError("this reader is closed")
            self._connection = self._engine.connect()
        return self._connection

    def __enter__(self) -> Self:
        """Return the reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close what was opened here."""
        if self._engine is not None and self._connection is not None:
            self._connection.close()
        self._engine = self._connection = None
