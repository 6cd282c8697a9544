"""How much the service takes: bytes of a body and seconds to send it, items of a list, requests a second.

Beyond a limit the answer is 413, 408, 422 or 429 (with Retry-After), before any work is done for the request.
"""

import asyncio
import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.types import Receive

from aftereffect.core.checks import shown
from aftereffect.service.api.body import refuse
from aftereffect.service.api.problems import Rejected
from aftereffect.service.errors import Refused

DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
CURSOR = re.compile(r"[A-Za-z0-9._~:+-]{1,300}", re.ASCII)


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, limit: int, seconds: float) -> bytes:
    """Return the body of a request, at most `limit` bytes that arrive within `seconds`."""
    declared = headers.get(b"content-length", b"")
    if declared in (b"", b"0") and b"transfer-encoding" not in headers:
        return b""
    if declared.isdigit() and int(declared[:20]) > limit:
        raise too_large(limit, f"{int(declared[:20])} bytes")
    try:
        async with asyncio.timeout(seconds):
            return await _received(receive, limit)
    except TimeoutError:
        raise Rejected("timeout", f"the body must arrive within {seconds:g} seconds, but did not") from None


async def _received(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Rejected("bad_request", "the body must arrive whole, but the connection was closed")
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit, "more")
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def too_large(limit: int, size: str) -> Refused:
    """Return the refusal of a body beyond the limit."""
    return Refused("too_large", f"the body must have at most {limit} bytes, but has {size}", limit=limit)


def query_of(raw: bytes, allowed: tuple[str, ...]) -> dict[str, str]:
    """Return the query's parameters: none but the allowed ones, each at most once; an empty one is as if left out.

    >>> query_of(b"after=3&limit=", ("after", "limit"))
    {'after': '3'}
    """
    if not raw:
        return {}
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20)
    except ValueError:
        refuse("the query must be percent-encoded UTF-8 with at most 20 parameters, but is not")
    seen: set[str] = set()
    for key, _ in pairs:
        if key not in allowed:
            known = ", ".join(allowed) or "no parameters"
            refuse(f"the query may have {known}, but got {shown(key)}")
        if key in seen:
            refuse(f"the query must have each parameter once, but got {key} twice")
        seen.add(key)
    return {key: value for key, value in pairs if value}


def count(name: str, text: str | None, default: int, low: int, high: int) -> int:
    """Return a number in the query, such as `limit`."""
    if text is None:
        return default
    if not DIGITS.fullmatch(text) or not low <= (number := int(text)) <= high:
        refuse(f"{name} must be an integer from {low} to {high}, but got {shown(text)}")
    return number


def cursor(text: str | None) -> str | None:
    """Return a cursor in the query: `next` of the page before; none is the start."""
    if text is not None and not CURSOR.fullmatch(text):
        refuse(f"after must be the `next` of a page, but got {shown(text)}")
    return text


def items_of(body: Mapping[str, Any], most: int) -> list[Any]:
    """Return the items of a bulk request."""
    items = body["items"]
    if not isinstance(items, list):
        refuse(f"items must be a list, but got {shown(items)}")
    if len(items) > most:
        raise Refused("too_large", f"items must be at most {most}, but got {len(items)}", limit=most)
    return items


class Rate:
    """A bucket of allowances for each client: `rate` a second flow in, `burst` of them fit, a request takes one.

    >>> rate = Rate(rate=1.0, burst=1.0, clock=iter([0.0, 0.25, 2.0]).__next__)
    >>> rate.wait("a"), rate.wait("a"), rate.wait("a")
    (0, 1, 0)
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic, clients: int = 10_000
    ) -> None:
        """Start with full buckets; a rate of 0 allows everything."""
        self.rate, self.burst, self.clock, self.clients = rate, max(1.0, burst), clock, clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def limits(self) -> bool:
        """Whether there is a limit at all."""
        return self.rate > 0.0

    def wait(self, client: str) -> int:
        """Return 0 and take an allowance, or the whole seconds to wait before one is there."""
        if self.rate <= 0.0:
            return 0
        now = self.clock()
        left, at = self._buckets.pop(client, (self.burst, now))
        left = min(self.burst, left + (now - at) * self.rate)
        taken = left >= 1.0
        self._buckets[client] = (left - 1.0 if taken else left, now)
        # The bucket unused for the longest time is the fullest, so forgetting it forgives the least.
        if len(self._buckets) > self.clients:
            self._buckets.popitem(last=False)
        return 0 if taken else max(1, math.ceil((1.0 - left) / self.rate))
