"""For tests of client and commands: the command line in this process, and a real server in a thread."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import typer
import uvicorn
from typer.testing import CliRunner

from aftereffect.cli import app
from aftereffect.service.api.app import create_app
from aftereffect.service.config import Config
from aftereffect.service.store.store import Store


class Ended:
    """What a command printed, and its exit status."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


def command(*words: str, env: dict[str, str] | None = None, app: typer.Typer = app) -> Ended:
    """Run `aftereffect WORDS` here; an error that is no exit is raised."""
    done = CliRunner().invoke(app, list(words), env=env, prog_name="aftereffect")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ended(done.exit_code, done.stdout, done.stderr)


@contextlib.contextmanager
def server(store: str, access: str = "auto") -> Iterator[str]:
    """Serve a store from a thread of this process; yields the address."""
    config = Config.model_validate({"store": store, "port": 0, "access": access})
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        store = Store.open(config.store, address=address)
        stack.callback(store.close)
        running = uvicorn.Server(uvicorn.Config(create_app(store, config), log_config=None, lifespan="off"))
        thread = threading.Thread(target=running.run, args=([listening],))
        thread.start()
        try:
            patience = time.monotonic() + 60.0
            while not running.started:
                if time.monotonic() > patience or not thread.is_alive():
                    raise RuntimeError("the server did not start")
                time.sleep(0.01)
            yield address
        finally:
            running.should_exit = True
            thread.join(60.0)
