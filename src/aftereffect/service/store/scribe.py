"""A process that writes to a SQLite file what is dictated to it: a program of its own, which knows nothing else.

    python -P scribe.py FILE REPLIES       is told on its standard input, answers on the descriptor REPLIES

Python lets one thread run at a time; a second process runs beside it. Both ways go frames: eight bytes of length, then
JSON. The first frame says how to open the file, {"pragmas", "patience", "ready", "templates"}; each one after it is a
transaction, a list of [template, rows]. The answer to each is null when it is done (a transaction: on the disk), or
else what went wrong: {"kind", "said", "code", "name"}, and nothing was kept.

It ends when it is told null, or when nobody dictates any more, and only then: whoever stops a service sends the same
signal to all of its processes, and the transaction at hand is to be finished first. It never closes its connection:
the last one to do so moves the log into the file, and that is not for this process to do.
"""

import gc
import os
import select
import signal
import sqlite3
import sys
import traceback
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import IO, Any

import orjson

LENGTH = 8
LOOK_S = 0.5
"""How often to look whether the parent is still there."""
MOST_VALUES = 32_766
"""SQLite's limit on the values of one statement."""
# As many rows as clients that wait at one time are written by one statement, whatever their number.
SIZES = (2048, 1024, 256, 64, *range(40, 0, -1))

Rows = Sequence[Sequence[Any]]


class Template:
    """An SQL statement for any number of rows: what stands before their list, one row with ? for values, and after."""

    def __init__(self, before: str, row: str, after: str) -> None:
        """Keep the parts; the text for a number of rows is written when it is first needed."""
        self.parts = before, row, after
        width = row.count("?")
        self._sizes = [size for size in SIZES if size * width <= MOST_VALUES]
        self._texts: dict[int, str] = {}

    def run(self, execute: Callable[[str, tuple[Any, ...]], object], rows: Rows) -> None:
        """Run the statement for all rows, as many as can be at a time."""
        for portion in self._portions(rows):
            execute(self._text(len(portion)), tuple(chain.from_iterable(portion)))

    def _portions(self, rows: Rows) -> Iterator[Rows]:
        done, n = 0, len(rows)
        for size in self._sizes:
            while n - done >= size:
                yield rows[done : done + size]
                done += size

    def _text(self, size: int) -> str:
        text = self._texts.get(size)
        if text is None:
            before, row, after = self.parts
            text = self._texts[size] = f"{before}{','.join([row] * size)}{after}"
        return text


def read(source: IO[bytes]) -> Any:
    """Return what the next frame holds; raise EOFError where there is none, or half of one."""
    size = int.from_bytes(_exactly(source, LENGTH), "little")
    return orjson.loads(_exactly(source, size))


def write(target: IO[bytes], text: bytes) -> None:
    """Send a frame with this JSON."""
    target.write(len(text).to_bytes(LENGTH, "little"))
    target.write(text)
    target.flush()


def _exactly(source: IO[bytes], size: int) -> bytes:
    found = source.read(size)
    if len(found) < size:
        raise EOFError("whoever dictates is gone")
    return found


class Book:
    """The SQLite file, and the templates of what is written to it.

    patience: how many seconds to wait for a lock; ready: how many statements to keep ready.
    """

    def __init__(
        self, file: str, pragmas: Sequence[str], patience: float, ready: int, templates: Sequence[tuple[str, str, str]]
    ) -> None:
        """Open a file that is there; where there is none, none is made."""
        where = f"file:{urllib.parse.quote(os.fsencode(file))}?mode=rw"
        self._connection = sqlite3.connect(
            where, timeout=patience, isolation_level=None, cached_statements=ready, uri=True
        )
        for pragma in pragmas:
            self._connection.execute(f"PRAGMA {pragma}")
        # To read anything opens the log too.
        self._connection.execute("SELECT 1 FROM sqlite_master").fetchall()
        self._templates = [Template(*parts) for parts in templates]

    def keep(self, dictated: Sequence[tuple[int, Rows]]) -> None:
        """Run statements in one transaction, which is on the disk afterwards, or not there at all.

        After an error nothing more is dictated: a connection whose sync has failed is not to be trusted.
        """
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        for number, rows in dictated:
            self._templates[number].run(execute, rows)
        execute("COMMIT")


def trouble(error: sqlite3.Error) -> dict[str, Any]:
    """Return what went wrong as plain values."""
    code, name = getattr(error, "sqlite_errorcode", None), getattr(error, "sqlite_errorname", "")
    return {"kind": type(error).__name__, "said": str(error), "code": code, "name": name}


def dictated(source: IO[bytes], parent: int) -> Any:
    """Return the next frame's content, None when there will be none: the parent says so, or is gone.

    A process that it has forked may hold the other end of the pipe open, so this looks at the parent, too.
    """
    while not select.select([source], [], [], LOOK_S)[0]:
        if os.getppid() != parent:
            return None
    try:
        return read(source)
    except EOFError:
        return None


def main() -> None:
    """Take dictation until there is none."""
    parent = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Nothing here is in circles.
    gc.disable()
    book: Book | None = None
    try:
        with open(int(sys.argv[2]), "wb") as replies:
            while (asked := dictated(sys.stdin.buffer, parent)) is not None:
                problem = None
                try:
                    if book is None:
                        book = Book(sys.argv[1], **asked)
                    else:
                        book.keep(asked)
                except sqlite3.Error as error:
                    problem = trouble(error)
                write(replies, orjson.dumps(problem))
    except BrokenPipeError:
        # Nobody is there any more to hear the answer.
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        # Not by the usual way, which would close the connection.
        os._exit(0)


if __name__ == "__main__":
    main()
