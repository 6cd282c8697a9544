"""Clients that ask, tell, repeat, contradict, correct, create and send in bulk, all at once, through every fault.

Four kinds. An *owner* has an experiment of its own, so that what it may be answered is exact, and repeats
itself, contradicts itself and corrects itself. *Sharers* play one experiment together, each with its own
totals: one wins a round, the others must be refused. *Bulk* clients play several experiments in one
request. *Makers* create experiments and correct their settings, each time with a key. All of them send a
request again, unchanged, until it is answered: that is what an idempotent service is for.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import numpy as np
from tests.service.faults.ledger import Key, Ledger, Total
from tests.service.faults.wire import Answer, Connection, Lost

ARMS = ["red", "green", "blue"]
# Units of each of three experiments in one list: 2,100 items.
WIDTH = 700
# Refusals that a fault explains: too many, the store is away, the disk is full.
LATER = {429, 503, 507}


class Crowd:
    """All clients of one scenario; `go` lets them send, `quiet` waits until nothing is on its way."""

    def __init__(self, ports: list[int], ledger: Ledger, seed: int) -> None:
        """Write into a ledger; each client talks to one of the ports, in turn."""
        self.ports, self.ledger = ports, ledger
        self._seeds = np.random.SeedSequence(seed)
        self._open = asyncio.Event()
        self._flying = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._clients: list[Client] = []

    async def create(self, settings: dict[str, Any]) -> str:
        """Create an experiment, and return its id."""
        connection = Connection(self.ports[0])
        body = {"name": "faults", "arms": ARMS, "low": 0.0, "high": 1.0, "max_delay": 1, **settings}
        answer = await connection.call("POST", "/v1/experiments", body)
        connection.close()
        if answer.status != 201:
            raise RuntimeError(f"creating an experiment must be 201, but got {answer}")
        self.ledger.created(answer.body["id"], settings.get("units") or 1)
        return str(answer.body["id"])

    async def add(
        self, owners: int = 0, sharers: int = 0, bulk: int = 0, wide: int = 0, units: int = 1, makers: int = 0
    ) -> None:
        """Create what these clients play, and start them; they wait for `go`.

        wide: clients in bulk with lists so long that a server may cut them into several transactions.
        """
        for _ in range(owners):
            self._start(self._own(self._client(), await self.create({})))
        shared = await self.create({"units": units} if units > 1 else {}) if sharers else ""
        for _ in range(sharers):
            self._start(self._share(self._client(), shared, units))
        for _ in range(bulk):
            self._start(self._in_bulk(self._client(), [(await self.create({}), "1") for _ in range(3)]))
        for _ in range(makers):
            self._start(self._make(self._client()))
        for _ in range(wide):
            made = [await self.create({"units": WIDTH}) for _ in range(3)]
            places = [(experiment, str(unit + 1)) for experiment in made for unit in range(WIDTH)]
            self._start(self._in_bulk(self._client(), places))

    def go(self) -> None:
        """Let clients send."""
        self._open.set()

    async def quiet(self) -> None:
        """Hold clients back, and return when every request has its answer or is lost."""
        self._open.clear()
        while self._flying:
            await asyncio.sleep(0.002)

    async def end(self) -> None:
        """Be quiet, then stop every client; an error in one is raised here."""
        await self.quiet()
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            client.close()
        for result in results:
            if not isinstance(result, asyncio.CancelledError):
                raise RuntimeError("a client must only end when it is told to") from result

    def _start(self, client: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(client))

    def _client(self) -> "Client":
        (seed,) = self._seeds.spawn(1)
        port = self.ports[len(self._clients) % len(self.ports)]
        self._clients.append(Client(self, port, np.random.default_rng(seed)))
        return self._clients[-1]

    async def _own(self, client: "Client", experiment: str) -> None:
        past: list[Key] = []
        while True:
            key = await client.ask(experiment)
            if key is None:
                continue
            await client.tell(key, client.total())
            past.append(key)
            dice = client.rng.random()
            if dice < 0.15:
                again = past[int(client.rng.integers(len(past)))]
                await client.tell(again, self.ledger.totals.get(again))
            elif dice < 0.25:
                await client.tell(key, client.total())
            elif dice < 0.3:
                await client.amend(key, client.rng.random())

    async def _share(self, client: "Client", experiment: str, units: int) -> None:
        while True:
            unit = None if units == 1 else str(client.rng.integers(1, units + 1))
            key = await client.ask(experiment, unit)
            if key is not None:
                await client.tell(key, client.total())

    async def _in_bulk(self, client: "Client", places: list[tuple[str, str]]) -> None:
        while True:
            keys = await client.ask_all(places)
            await client.tell_all({key: client.total() for key in keys})


    async def _make(self, client: "Client") -> None:
        while True:
            name = f"made {client.rng.integers(2**62)}"
            body = {"name": name, "arms": ARMS, "low": 0.0, "high": 1.0, "max_delay": 1}
            made = await client.make("/v1/experiments", name, body)
            after = f"{name}, corrected"
            await client.make(f"/v1/experiments/{made}/correct", after, {"name": after, "high": 2.0})
            # Every audit reads all of them.
            await asyncio.sleep(0.2)


class Client:
    """One connection, one generator; every method goes on until its request has an answer."""

    def __init__(self, crowd: Crowd, port: int, rng: np.random.Generator) -> None:
        """Write into the crowd's ledger."""
        self.crowd, self.ledger, self.rng = crowd, crowd.ledger, rng
        self._connection = Connection(port)

    def total(self) -> Total:
        """Draw a total, no two alike; one in twenty is missing."""
        return None if self.rng.random() < 0.05 else self.rng.random()

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()

    async def _answer(self, method: str, path: str, body: Any, key: str = "") -> Answer:
        while True:
            await self.crowd._open.wait()
            self.crowd._flying += 1
            try:
                answer = await self._connection.call(method, path, body, key)
            except Lost:
                answer = None
            finally:
                self.crowd._flying -= 1
            if answer is not None and answer.status not in LATER:
                return answer
            if answer is not None:
                self.ledger.refuse(answer.status)
            await asyncio.sleep(0.02)

    async def make(self, path: str, name: str, body: Any) -> str:
        """Create an experiment of this name, which is its key too; one in three is asked for once more."""
        key = name.translate(str.maketrans(" ,", "--"))
        self.ledger.made.setdefault(name, None)
        for _ in range(1 + (self.rng.random() < 1 / 3)):
            answer = await self._answer("POST", path, body, key)
            if answer.status == 201:
                self.ledger.make(name, answer.body["id"])
            else:
                self.ledger.unexpected(f"making {name}", answer.status, answer.body)
        return str(self.ledger.made[name])

    async def ask(self, experiment: str, unit: str | None = None) -> Key | None:
        """Ask for the open round; None if the answer is no round."""
        closed = self.ledger.closed(experiment)
        answer = await self._answer("POST", f"/v1/experiments/{experiment}/ask", {"unit": unit} if unit else None)
        return self._asked(experiment, answer.status, answer.body, closed)

    def _asked(self, experiment: str, status: int, body: Any, closed: int) -> Key | None:
        if status == 200:
            return self.ledger.asked(experiment, body, closed)
        self.ledger.unexpected(f"an ask of {experiment}", status, body)
        return None

    async def tell(self, key: Key, total: Total) -> None:
        """Report a total."""
        self.ledger.sending(key, total)
        body = {"total": total, "unit": key.unit}
        answer = await self._answer("PUT", f"/v1/experiments/{key.experiment}/rounds/{key.round}", body)
        self._told(key, total, answer.status, answer.body)

    def _told(self, key: Key, total: Total, status: int, body: Any) -> None:
        if status == 200:
            self.ledger.told(key, total)
        elif status == 409 and body["code"] in {"conflict", "closed"}:
            self.ledger.conflicted(key, total)
        else:
            self.ledger.unexpected(f"a tell of {key}", status, body)

    async def amend(self, key: Key, total: float) -> None:
        """Correct a total; the player of the paper refuses once its block is closed, and then it must not be stored."""
        self.ledger.sending(key, total)
        self.ledger.amending[key] = total
        body = {"total": total, "unit": key.unit}
        answer = await self._answer("POST", f"/v1/experiments/{key.experiment}/rounds/{key.round}/amend", body)
        self.ledger.amended(key, total, answer.status == 200)
        if answer.status != 200 and answer.code != "closed":
            self.ledger.unexpected(f"an amend of {key}", answer.status, answer.body)

    async def ask_all(self, places: list[tuple[str, str]]) -> list[Key]:
        """Ask for the open rounds of several experiments and units in one request."""
        closed = [self.ledger.closed(experiment) for experiment, _ in places]
        body = {"items": [{"experiment": experiment, "unit": unit} for experiment, unit in places]}
        answer = await self._answer("POST", "/v1/bulk/ask", body)
        keys = []
        for (experiment, _), before, item in zip(places, closed, answer.body["items"], strict=True):
            status = item["error"]["status"] if "error" in item else 200
            key = None if status in LATER else self._asked(experiment, status, item, before)
            keys += [] if key is None else [key]
        return keys

    async def tell_all(self, totals: dict[Key, Total]) -> None:
        """Report several experiments' totals in one request; items that the store refused go again."""
        while totals:
            for key, total in totals.items():
                self.ledger.sending(key, total)
            items = [{**key._asdict(), "total": total} for key, total in totals.items()]
            answer = await self._answer("POST", "/v1/bulk/tell", {"items": items})
            again = {}
            for (key, total), item in zip(totals.items(), answer.body["items"], strict=True):
                status = item["error"]["status"] if "error" in item else 200
                if status in LATER:
                    self.ledger.refuse(status)
                    again[key] = total
                else:
                    self._told(key, total, status, item.get("error"))
            totals = again
