"""For tests of the REST API: the app on a real store, called in this process through ASGI, without a socket."""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from aftereffect.service.api.app import create_app
from aftereffect.service.config import Config
from aftereffect.service.operations import Operation
from aftereffect.service.store.store import Store

BASE = "http://127.0.0.1:8000"
SETTINGS = {"name": "Mailings", "arms": ["letter", "email", "nothing"], "low": 0, "high": 50, "max_delay": 1, "seed": 7}


PATHS = {"id": "nobody", "round": "1", "arm:path": "email", "token": "nobody"}


def path_of(operation: Operation[Any], **given: str) -> str:
    """Return the path of an operation, with these parameters or others."""
    return re.sub(r"{([\w:]+)}", lambda found: {**PATHS, **given}[found[1]], operation.path)


def example_of(operation: Operation[Any]) -> dict[str, Any]:
    """Return a body for an operation: the example of its model; empty if the model has no fields."""
    schema = {} if operation.body is None else operation.body.model_json_schema()
    return dict(schema.get("examples", [{}])[0])


class Api:
    """A client of one app; methods answer with `httpx.Response`."""

    def __init__(self, store: Store, config: Config, runner: asyncio.Runner) -> None:
        self.store, self.config, self.runner = store, config, runner
        self.app = create_app(store, config)

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.runner.run(self.sent(method, path, **options))

    async def sent(self, method: str, path: str, **options: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=("127.0.0.1", 5000))
        async with httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            return await client.request(method, path, **options)

    def create(self, **changes: Any) -> str:
        """Make an experiment and return its path."""
        made = self("POST", "/v1/experiments", json={**SETTINGS, **changes})
        if made.status_code != 201:
            raise AssertionError(made.text)
        return f"/v1/experiments/{made.json()['id']}"

    def play(self, path: str, rounds: int, total: float = 1.0) -> None:
        """Play rounds of one unit."""
        for _ in range(rounds):
            number = self("POST", f"{path}/ask").json()["round"]
            told = self("PUT", f"{path}/rounds/{number}", json={"total": total})
            if told.status_code != 200:
                raise AssertionError(told.text)

    def snapshot(self) -> list[Any]:
        """Return all that is stored, as answers."""
        found = self.store.experiments(limit=1000)["items"]
        rows = [self.store.rounds(one["id"], limit=1000)["items"] for one in found]
        return [found, rows, self.store.tokens()]


@contextlib.contextmanager
def api(folder: Path, **config: Any) -> Iterator[Api]:
    """Open a store on a new SQLite file and yield a client of its app."""
    store = Store.open(f"sqlite:///{folder / 'service.db'}")
    try:
        with asyncio.Runner() as runner:
            yield Api(store, Config(**config), runner)
    finally:
        store.close()


def problem(response: httpx.Response, status: int, code: str) -> str:
    """Check that an answer is this problem, and return its detail."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["code"] == code
    assert body["type"] == f"urn:aftereffect:{code}"
    assert body["title"]
    detail = body["detail"]
    assert isinstance(detail, str)
    return detail
