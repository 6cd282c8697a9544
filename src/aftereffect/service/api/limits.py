"""Limits on load: requests of each client address, sign-ins, and threads for blocking store calls."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio

from aftereffect.service.api.telemetry import LOGGER
from aftereffect.service.errors import Refused

P = ParamSpec("P")
T = TypeVar("T")


class RateLimit:
    """A token bucket per client: refilled at `rate` tokens per second up to `burst`; each request takes one token.

    >>> limit = RateLimit(rate=1.0, burst=1.0, clock=iter([0.0, 0.25, 2.0]).__next__)
    >>> limit.wait("a"), limit.wait("a"), limit.wait("a")
    (0, 1, 0)
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic, clients: int = 10_000
    ) -> None:
        self.rate, self.burst, self.clock, self.clients = rate, max(1.0, burst), clock, clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def check(self, client: str) -> None:
        """Refuse the request if the client has exceeded its rate."""
        if seconds := self.wait(client):
            detail = f"requests from one address must be at most {self.rate:g} per second; wait {seconds} s"
            raise Refused("too_many", detail, retry_after=seconds)

    def wait(self, client: str) -> int:
        """Take a token and return 0, or return the seconds until one is available, rounded up."""
        now = self.clock()
        left, at = self._buckets.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        taken = left >= 1.0
        self._buckets[client] = (left - 1.0 if taken else left, now)
        # Drop the bucket that was unused longest: it has refilled most, and a dropped bucket starts again full.
        if len(self._buckets) > self.clients:
            self._buckets.popitem(last=False)
        return 0 if taken else max(1, math.ceil((1.0 - left) / self.rate))


class SignIns:
    """What requests that have not signed in may use: few bodies at a time, and few lines of the log.

    Without this limit, slow bodies of strangers would take the places of all requests (`Config.concurrency`).
    """

    AT_ONCE, BYTES, SECONDS = 16, 8192, 5.0

    def __init__(self) -> None:
        self.places = asyncio.Semaphore(self.AT_ONCE)
        self._lines = RateLimit(rate=1.0, burst=10.0)

    def check(self, client: str) -> None:
        """Refuse the request if all places for reading a body are taken."""
        if self.places.locked():
            refusal = Refused("too_many", f"at most {self.AT_ONCE} can sign in at a time; try again", retry_after=1)
            self.log(client, refusal.detail)
            raise refusal

    def log(self, client: str, detail: str) -> None:
        """Log a refused sign-in with its address; of one address one line a second, after the first ten."""
        if not self._lines.wait(client):
            LOGGER.warning("unauthorized", extra={"facts": {"route": "/login", "detail": detail, "client": client}})


class ThreadPool:
    """Runs blocking functions in at most `threads` threads; refuses a call if `waiting` others wait for one."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._most = threads + waiting
        self._limiter, self._places = anyio.CapacityLimiter(threads), asyncio.Semaphore(self._most)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function in a thread and return its result."""
        if self._places.locked():
            raise Refused("too_many", f"at most {self._most} requests of this kind can run at a time; try again")
        async with self._places:
            return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._limiter)


ThreadPools = dict[str, ThreadPool]


def thread_pools() -> ThreadPools:
    """Return a pool for each kind of call, so that slow calls do not delay others."""
    # Long reads are exports and replays; their time grows with the number of rounds.
    return {"reads": ThreadPool(16, 512), "long_reads": ThreadPool(2, 16), "checks": ThreadPool(4, 1024)}
