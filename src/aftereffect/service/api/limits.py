"""How much the service does at once: requests a second from one address, and threads for calls into the store."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio

from aftereffect.service.errors import Refused

P = ParamSpec("P")
T = TypeVar("T")


class RateLimit:
    """A token bucket for each client: `rate` tokens a second flow in, `burst` of them fit, a request takes one.

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
        """Refuse a request of a client that sent too many."""
        if seconds := self.wait(client):
            detail = f"requests of one address must be at most {self.rate:g} a second; wait {seconds} s"
            raise Refused("too_many", detail, retry_after=seconds)

    def wait(self, client: str) -> int:
        """Return 0 and take a token, or the whole seconds to wait before there is one."""
        now = self.clock()
        left, at = self._buckets.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        taken = left >= 1.0
        self._buckets[client] = (left - 1.0 if taken else left, now)
        # The bucket unused for the longest time is the fullest, so forgetting it forgives the least.
        if len(self._buckets) > self.clients:
            self._buckets.popitem(last=False)
        return 0 if taken else max(1, math.ceil((1.0 - left) / self.rate))


class ThreadPool:
    """Runs functions that block in at most `threads` threads; beyond `waiting` callers in the queue it refuses."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._limiter, self._most, self._callers = anyio.CapacityLimiter(threads), threads + waiting, 0

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the function returns."""
        if self._callers >= self._most:
            raise Refused("too_many", f"requests of this kind must be at most {self._most} at one time; try again")
        self._callers += 1
        try:
            return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._limiter)
        finally:
            self._callers -= 1


class ThreadPools:
    """One pool for each kind of call, so that none waits for another."""

    def __init__(self) -> None:
        self.reads = ThreadPool(16, 512)
        # Exports and replays take as long as an experiment is.
        self.long_reads = ThreadPool(2, 16)
        self.checks = ThreadPool(4, 1024)
