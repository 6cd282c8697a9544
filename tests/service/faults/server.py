"""A real server in a process of its own, over a store that outlives it: start, kill -9, stop, start again."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.service.faults.gate import Gate
from tests.service.faults.wire import Lost, fetch
from tests.service.ports import kept_port

import aftereffect

PACKAGE = Path(aftereffect.__file__).resolve().parent.parent
PROJECT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("serving.py")


class Server:
    """One server process at a time, always at the same port, on the same store."""

    def __init__(self, store: str, folder: Path, *, variant: str = "honest", gated: bool = False) -> None:
        """Name a store by URL; the log goes into the folder. variant: see serving.py."""
        self.store, self.folder, self.variant, self.gated = store, folder, variant, gated
        self.port = kept_port(self)
        self.gate: Gate | None = None
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> subprocess.Popen[bytes]:
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
        command = [sys.executable, str(SCRIPT), self.store, str(self.port), self.variant]
        channels: tuple[int, ...] = ()
        if self.gated:
            self.gate = Gate()
            channels = (self.gate.theirs.fileno(),)
            command += [str(channels[0])]
        environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PROJECT}"}
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=environment, pass_fds=channels, cwd=self.folder
            )

    async def start(self, patience: float = 60.0) -> float:
        """Start, wait until /healthz is well, and return the seconds that took."""
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
