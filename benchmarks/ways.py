"""How many modules and functions of the package a report, a simulation, a study cell and an advised round go through.

Run it with `python benchmarks/ways.py`. Each way is walked twice; the second time is counted, when everything is
compiled and loaded. Of reports over HTTP, the shortest and the longest way are shown: some write a checkpoint too.
Compiled kernels, comprehensions and lambdas do not count.
"""

import asyncio
import contextlib
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

import aftereffect as ae
from aftereffect.service.api.app import create_app
from aftereffect.service.store.store import Store

PACKAGE = str(Path(ae.__file__).parent)
_seen: set[tuple[str, str]] = set()


def _note(frame: FrameType, event: str, argument: Any) -> None:
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
        _seen.add((code.co_filename, code.co_qualname))


@contextlib.contextmanager
def heard() -> Iterator[None]:
    """Note the functions that run, in this thread and in those that begin meanwhile."""
    threading.setprofile(_note)
    sys.setprofile(_note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def walked(call: Callable[[], object]) -> str:
    """Return how many modules and functions of the package a call runs."""
    with heard():
        _seen.clear()
        call()
        return f"{len({file for file, _ in _seen})} modules, {len(_seen)} functions"


def reports() -> tuple[str, str]:
    """Return the shortest and the longest way of a report over HTTP."""
    with contextlib.ExitStack() as stack:
        # The writer's thread begins here.
        stack.enter_context(heard())
        folder, runner = stack.enter_context(tempfile.TemporaryDirectory()), stack.enter_context(asyncio.Runner())
        store = stack.enter_context(Store.open(f"sqlite:///{folder}/ways.db"))
        transport = httpx.ASGITransport(create_app(store))

        async def send(method: str, path: str, body: dict[str, Any]) -> None:
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                (await client.request(method, f"/v1/experiments{path}", json=body)).raise_for_status()

        one = store.create({"name": "way", "arms": ["a", "b"], "high": 1.0, "max_delay": 2, "seed": 1}).id
        found = []
        for number in range(1, 13):
            runner.run(send("POST", f"/{one}/ask", {}))
            report = send("PUT", f"/{one}/rounds/{number}", {"total": 0.5})
            found.append(walked(lambda coroutine=report: runner.run(coroutine)))
        return min(found[1:]), max(found[1:])


def simulation() -> None:
    losses = ae.spreads.random_split(ae.tables.iid(500, means=[0.3, 0.6], seed=1), max_delay=2, seed=2)
    ae.simulate(ae.CompositeLossWrapper.tuned(2, max_delay=2, horizon=500), losses, runs=4, threads=1)


def study_cell() -> None:
    study = ae.Study(
        "way",
        grid={"n_arms": 2, "max_delay": 2, "horizon": 500},
        instance=[{"name": "split"}],
        player=[{"name": "CompositeLossWrapper"}],
        runs=4,
    )
    with tempfile.TemporaryDirectory() as folder:
        study.run(folder, progress=False)


def advised_round() -> Callable[[], object]:
    player = ae.default_player(2, max_delay=0, adviser=ae.advisers.Opinion([2.0, 1.0]), seed=1)
    return lambda: (player.ask(), player.tell(0.5))


def main() -> None:
    round_ = advised_round()
    for name, call in (("a simulation", simulation), ("a study cell", study_cell), ("an advised round", round_)):
        call()
        print(f"{name}: {walked(call)}")
    print(f"a report: {'; at most '.join(reports())}")


if __name__ == "__main__":
    main()
