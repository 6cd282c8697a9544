"""The server that fault tests start: the real one, or the real one with one promise broken on purpose.

    python serving.py STORE PORT VARIANT [DESCRIPTOR OF THE GATE'S CHANNEL]

Broken variants stand between the API and the store, or between the store and its file, and touch nothing
inside either:

- `ack_before_commit`: works on a copy of the store, and brings it to its place several times a second;
- `counted_twice`: does not know a repeated total again, and books it for the next round;
- `last_wins`: takes another total for a round that has one;
- `asks_anew`: an ask does not return the open round, it closes it and opens another;
- `forgets_arms`: an ask names an arm drawn at that moment, not the one that was drawn for the round;
- `syncs_later`: answers once the operating system has the data, and leaves the sync to it.
"""

import json
import os
import shutil
import sqlite3
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy
import uvicorn
from tests.service.faults.gate import install

from aftereffect.service.api.app import create_app
from aftereffect.service.api.server import serve
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Command, Tell
from aftereffect.service.experiment.experiment import warm_up
from aftereffect.service.store.store import Store
from aftereffect.service.store.writer import Answer

BEHIND = 0.15


class Broken:
    """A store that hands everything on, except what its kind breaks."""

    def __init__(self, store: Store) -> None:
        """Stand before a store."""
        self._store, self._rng = store, np.random.default_rng(6)

    def __getattr__(self, name: str) -> Any:
        """Hand on whatever is not broken."""
        return getattr(self._store, name)

    async def aperform(self, experiment: str, command: Command) -> dict[str, Any]:
        """Carry out one command, as the kind breaks it."""
        raise NotImplementedError

    async def aperform_many(self, commands: list[tuple[str, Command]]) -> list[Answer]:
        """Carry out one by one, each as `aperform` does."""
        answers: list[Answer] = []
        for experiment, command in commands:
            try:
                answers.append(await self.aperform(experiment, command))
            except Refused as refused:
                answers.append(refused)
        return answers


class CountedTwice(Broken):
    """Books a repeated total for the next round."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._seen: dict[tuple[str, Command], dict[str, Any]] = {}

    async def aperform(self, experiment: str, command: Command) -> dict[str, Any]:
        before = self._seen.get((experiment, command))
        if isinstance(command, Tell) and before is not None:
            opened = await self._store.aperform(experiment, Ask(command.unit))
            await self._store.aperform(experiment, Tell(opened["round"], command.total, opened["unit"]))
            return before
        answer = await self._store.aperform(experiment, command)
        if isinstance(command, Tell):
            self._seen[experiment, command] = answer
        return answer


class LastWins(Broken):
    """Takes another total for a round that has one."""

    async def aperform(self, experiment: str, command: Command) -> dict[str, Any]:
        try:
            return await self._store.aperform(experiment, command)
        except Refused as refused:
            if refused.code != "conflict" or not isinstance(command, Tell):
                raise
            return await self._store.aperform(experiment, Amend(*command[:3]))


class AsksAnew(Broken):
    """Opens another round at every ask."""

    async def aperform(self, experiment: str, command: Command) -> dict[str, Any]:
        answer = await self._store.aperform(experiment, command)
        if not isinstance(command, Ask) or self._rng.random() < 0.8:
            return answer
        await self._store.aperform(experiment, Tell(answer["round"], None, answer["unit"]))
        return await self._store.aperform(experiment, command)


class ForgetsArms(Broken):
    """Names an arm drawn at that moment."""

    async def aperform(self, experiment: str, command: Command) -> dict[str, Any]:
        answer = await self._store.aperform(experiment, command)
        if isinstance(command, Ask):
            arms = self._store.experiment(experiment).arms
            answer = {**answer, "arm": str(self._rng.choice(arms))}
        return answer


class ForgetsKeys(Broken):
    """Creates an experiment for every request, whatever its key."""

    def create(self, settings: Any, *, key: str | None = None) -> Any:
        return self._store.create(settings)

    async def aperform(self, experiment: str, command: Command) -> dict[str, Any]:
        return await self._store.aperform(experiment, command)


KINDS = {
    "forgets_keys": ForgetsKeys,
    "counted_twice": CountedTwice,
    "last_wins": LastWins,
    "asks_anew": AsksAnew,
    "forgets_arms": ForgetsArms,
}


def behind(store: str) -> str:
    """Return the URL of a copy of an SQLite store, brought back to its place after every moment, for ever."""
    place = Path(store.removeprefix("sqlite:///"))
    copy = place.with_name(f"copy{os.getpid()}.db")
    if place.exists():
        shutil.copyfile(place, copy)

    def carry() -> None:
        whole = place.with_name("whole.db")
        while True:
            time.sleep(BEHIND)
            whole.unlink(missing_ok=True)
            with sqlite3.connect(copy) as source, sqlite3.connect(whole) as target:
                source.backup(target)
            source.close()
            target.close()
            whole.replace(place)

    threading.Thread(target=carry, daemon=True).start()
    return f"sqlite:///{copy}"


def sync_later() -> None:
    """Have every SQLite connection leave syncs to the operating system, whatever is asked of it."""

    @sqlalchemy.event.listens_for(sqlalchemy.Pool, "checkout")
    def _off(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA synchronous=OFF")


def main(store: str, port: str, variant: str, channel: str = "") -> None:
    """Serve until told to end."""
    if channel:
        install(int(channel))
    if variant == "syncs_later":
        sync_later()
    if variant == "ack_before_commit":
        store = behind(store)
    config = Config(store=store, port=int(port), log_level="warning")
    if variant not in KINDS:
        serve(config, partial(print, "Aftereffect is at", flush=True))
        return
    opened: Any = KINDS[variant](Store.open(store))
    uvicorn.run(create_app(opened, config), host="127.0.0.1", port=config.port, log_level="warning")


def fork_servers() -> None:
    """Fork a server for every line of the input, a log and the arguments of `main`; tell its number and its status."""
    # Compiled code is loaded once, for all of them; a first compilation may take minutes on a busy machine.
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        log, arguments = json.loads(line)
        child = os.fork()
        if not child:
            with Path(log).open("ab") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.chdir(Path(log).parent)
            main(*arguments)
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["fork"]:
        fork_servers()
    else:
        main(*sys.argv[1:])
