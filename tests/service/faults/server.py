"""A real server in a process of its own, over a store that outlives it: start, kill -9, stop, start again.

Most of the time that a start takes goes into imports. Where servers are killed many times, they are forked from a
process that has done no more than import everything: all that a server does itself, from its store and its socket on,
is the same.
"""

import asyncio
import atexit
import functools
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.service.faults.gate import Gate
from tests.service.faults.wire import Lost, fetch
from tests.service.ports import kept_port

import aftereffect

PACKAGE = Path(aftereffect.__file__).resolve().parent.parent
PROJECT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("serving.py")


def environment() -> dict[str, str]:
    """Return the variables of a process that imports this package and these tests."""
    return {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PROJECT}"}


@functools.cache
def stem() -> Any:
    """Return the process from which servers are forked, one at a time; it ends with this one."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    process: Any = subprocess.Popen([sys.executable, str(SCRIPT), "fork"], env=environment(), **pipes)

    def end() -> None:
        process.kill()
        process.communicate()

    atexit.register(end)
    process.stdout.readline()
    return process


class Forked:
    """A server forked from the stem, as a `Popen`: the stem says its number at first, and its exit status at last."""

    def __init__(self, log: Path, command: list[str]) -> None:
        """Have the stem fork; what the server writes goes to the end of the log."""
        self.returncode: int | None = None
        self._stem = stem()
        self._stem.stdin.write(json.dumps([str(log), command]).encode() + b"\n")
        self.pid = int(self._stem.stdout.readline())

    def poll(self, timeout: float = 0.0) -> int | None:
        """Return the exit status, None if it goes on."""
        if self.returncode is None and select.select([self._stem.stdout], [], [], timeout)[0]:
            self.returncode = int(self._stem.stdout.readline())
        return self.returncode

    def send_signal(self, which: signal.Signals) -> None:
        """Send a signal, if it goes on."""
        if self.poll() is None:
            os.kill(self.pid, which)

    def wait(self, timeout: float) -> int:
        """Wait until it has ended, and return the exit status."""
        status = self.poll(timeout)
        if status is None:
            raise RuntimeError(f"a server must end within {timeout} s, but did not")
        return status


class Server:
    """One server process at a time, always at the same port, on the same store."""

    def __init__(
        self, store: str, folder: Path, *, variant: str = "honest", gated: bool = False, forked: bool = False
    ) -> None:
        """Name a store by URL; the log goes into the folder. variant: see serving.py. forked: from the stem."""
        self.store, self.folder, self.variant, self.gated, self.forked = store, folder, variant, gated, forked
        self.port = kept_port(self)
        self.gate: Gate | None = None
        self.process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def running(self) -> subprocess.Popen[bytes] | Forked:
        """The process, which must have been started."""
        if self.process is None:
            raise RuntimeError("the server must be started first")
        return self.process

    @property
    def opened(self) -> Gate:
        """The gate, which the server must have."""
        if self.gate is None:
            raise RuntimeError("the server must be gated, and started")
        return self.gate

    def spawn(self) -> None:
        """Start a process, and do not wait for it."""
        given, file = [self.store, str(self.port), self.variant], self.folder / "server.log"
        if self.forked:
            self.process = Forked(file, given)
            return
        command = [sys.executable, str(SCRIPT), *given]
        channels: tuple[int, ...] = ()
        if self.gated:
            self.gate = Gate()
            channels = (self.gate.theirs.fileno(),)
            command += [str(channels[0])]
        with file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment(), pass_fds=channels, cwd=self.folder
            )

    async def start(self, patience: float = 600.0) -> float:
        """Start, wait until /healthz is well, and return the seconds that took.

        patience: most of it is for a first compilation, on a machine that does other things too.
        """
        if self.forked:
            # It compiles once for all servers, which is no part of a start.
            stem()
        begun = time.monotonic()
        self.spawn()
        while True:
            try:
                if (await fetch(self.port, "/healthz", patience=2.0)).status == 200:
                    return time.monotonic() - begun
            except Lost:
                await asyncio.sleep(0.02)
            if self.running.poll() is not None or time.monotonic() - begun > patience:
                self.kill()
                raise RuntimeError(f"the server must start, but got:\n{self.log()[-3000:]}")

    def kill(self) -> None:
        """kill -9, and wait until the process is gone."""
        self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end, and return its exit status."""
        return self._signal(signal.SIGTERM)

    def _signal(self, which: signal.Signals) -> int:
        status = 0
        if self.process is not None:
            self.process.send_signal(which)
            status = self.process.wait(timeout=120)
        self.process = None
        if self.gate is not None:
            self.gate.close()
        self.gate = None
        return status

    def log(self) -> str:
        """Return all that every process so far has written."""
        return (self.folder / "server.log").read_text(errors="replace")
