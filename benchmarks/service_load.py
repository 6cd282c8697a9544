"""The load generator, in its own process: clients on plain sockets, with as little work per request as possible.

    python benchmarks/service_load.py KIND PORT CLIENTS SECONDS [EXPERIMENTS PER CLIENT]

Kinds: `noop` posts to /noop; `rounds` asks and tells in turn, each client in its own experiment; `bulk` asks for all
experiments of a client in one request and tells them in another; `units` does the same with experiments of 50 units,
and counts the total of every unit. Prints one JSON object: requests, rounds (acknowledged totals), seconds, and median
and 99% quantile of the latencies in milliseconds. Any status but 200 ends the run with an error.
"""

import asyncio
import functools
import json
import re
import sys
import time
import urllib.request
from collections.abc import Generator

ROUND = re.compile(rb'"round": ?(\d+)')
LENGTH = re.compile(rb"content-length: ?(\d+)", re.IGNORECASE)
UNITS = 50
Script = Generator[bytes, bytes, None]
"""Yields requests; the body of each response is sent back to it."""


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """Return the bytes of one request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Client(asyncio.Protocol):
    """One connection, which sends the requests of a script and passes it the body of each response."""

    def __init__(self, script: Script, until: float, done: "asyncio.Future[None]") -> None:
        """Run until the first response after the time `until`."""
        self.script, self.until, self.done = script, until, done
        self.latencies: list[float] = []
        self.buffer = b""
        self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"transport must be a stream, but got {transport!r}")
        self.transport = transport
        self._send(next(self.script))

    def _send(self, data: bytes) -> None:
        self.sent = time.perf_counter()
        self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Read a response, and send the next request."""
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = LENGTH.search(self.buffer, 0, end)
        if found is None:
            return self._fail("a response must have a Content-Length")
        size = end + 4 + int(found[1])
        if len(self.buffer) < size:
            return
        body, head, self.buffer = self.buffer[end + 4 : size], self.buffer[:16], self.buffer[size:]
        now = time.perf_counter()
        self.latencies.append(now - self.sent)
        if head[9:12] != b"200":
            return self._fail(f"every status must be 200, but got {head!r}: {body[:300]!r}")
        if now >= self.until:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        self._send(self.script.send(body))

    def _fail(self, words: str) -> None:
        self.transport.close()
        if not self.done.done():
            self.done.set_exception(RuntimeError(words))

    def connection_lost(self, error: Exception | None) -> None:
        """Report a connection that was closed too early."""
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"the server must keep the connection, but closed it: {error}"))


class Count:
    """Acknowledged totals."""

    def __init__(self) -> None:
        """Begin at 0."""
        self.rounds = 0


def noop() -> Script:
    """Post to /noop again and again."""
    data = request("POST", "/noop", b'{"total": 0.5}')
    while True:
        yield data


def rounds(count: Count, experiment: str) -> Script:
    """Ask and tell in turn."""
    path = f"/v1/experiments/{experiment}"
    ask = request("POST", f"{path}/ask")
    while True:
        answer = yield ask
        found = ROUND.search(answer)
        if found is None:
            raise RuntimeError(f"the response to an ask must have a round, but got {answer[:300]!r}")
        yield request("PUT", f"{path}/rounds/{int(found[1])}", b'{"total": 0.5}')
        count.rounds += 1


def bulk(count: Count, experiments: list[str], n_units: int = 1) -> Script:
    """Ask for all experiments, then tell the totals of all their units."""
    ask = request(
        "POST", "/v1/bulk/ask", json.dumps({"items": [{"experiment": e} for e in experiments]}).encode()
    )
    names = [""] if n_units == 1 else [f', "unit": "{unit}"' for unit in range(1, n_units + 1)]
    while True:
        answer = yield ask
        numbers = [item["round"] for item in json.loads(answer)["items"]]
        items = ",".join(
            f'{{"experiment": "{e}", "round": {n}, "total": 0.5{unit}}}'
            for e, n in zip(experiments, numbers, strict=True)
            for unit in names
        )
        told = yield request("POST", "/v1/bulk/tell", b'{"items": [' + items.encode() + b"]}")
        if b'"error"' in told:
            raise RuntimeError(f"every total must be accepted, but got {told[:300]!r}")
        count.rounds += len(names) * len(experiments)


def create(port: int, n_units: int = 1) -> str:
    """Create an experiment with four arms and effects over three rounds; return its id."""
    body: dict[str, object] = {"name": "load", "arms": ["a", "b", "c", "d"], "low": 0.0, "high": 1.0, "max_delay": 2}
    if n_units > 1:
        body["units"] = n_units
    made = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/experiments",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(made) as answer:
        return str(json.load(answer)["id"])


def _same(client: Client) -> Client:
    return client


async def load(kind: str, port: int, clients: int, seconds: float, each: int) -> dict[str, float]:
    """Run the clients, and return their counts."""
    count = Count()
    scripts: list[Script] = []
    for _ in range(clients):
        if kind == "noop":
            scripts.append(noop())
        elif kind == "rounds":
            scripts.append(rounds(count, create(port)))
        else:
            n_units = UNITS if kind == "units" else 1
            scripts.append(bulk(count, [create(port, n_units) for _ in range(each)], n_units))
    loop = asyncio.get_running_loop()
    begun = time.perf_counter()
    made = []
    for script in scripts:
        client = Client(script, begun + seconds, loop.create_future())
        made.append(client)
        await loop.create_connection(functools.partial(_same, client), "127.0.0.1", port)
    await asyncio.gather(*(client.done for client in made))
    took = time.perf_counter() - begun
    latencies = sorted(latency for client in made for latency in client.latencies)
    return {
        "requests": len(latencies),
        "rounds": count.rounds,
        "seconds": took,
        "median_ms": 1000.0 * latencies[len(latencies) // 2],
        "p99_ms": 1000.0 * latencies[int(len(latencies) * 0.99)],
    }


def main() -> None:
    """Run one load."""
    kind, port, clients, seconds, *each = sys.argv[1:]
    found = asyncio.run(load(kind, int(port), int(clients), float(seconds), int(each[0]) if each else 1))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
