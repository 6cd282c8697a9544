"""Request bodies: `JsonBody(Model)` is a dependency that reads strict JSON and validates it into a pydantic model.

Python's JSON reader takes more than JSON has, and a web framework's more still: NaN and Infinity, 1e400 (read as
infinity), the same key twice (the last wins), integers of any length, lone surrogates (which no database stores), NUL
(which PostgreSQL does not store), and nesting until the stack ends. Here each is an error that names the rule.
"""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, NoReturn

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from aftereffect.core.checks import shown
from aftereffect.service.api.limits import ThreadPools
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused, checked
from aftereffect.service.messages import MOST_BULK

JSON_TYPE = re.compile(r"\s*(application/(json|[^;]*\+json)\s*(;.*)?)?", re.IGNORECASE)
"""A Content-Type of JSON; none at all is taken for it."""
MAX_DEPTH = 16
TOO_DEEP = f"the body must be nested at most {MAX_DEPTH} deep, but is deeper"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# Reading a body of this size takes about a millisecond; longer ones are read in a thread.
LONG_BODY = 1 << 16


class JsonBody:
    """A FastAPI dependency: the body of a request as a model. optional: no body is the same as {}.

    The OpenAPI document finds the model here.
    """

    bulk = False

    def __init__(self, model: type[BaseModel], *, optional: bool = False) -> None:
        self.model, self.optional = model, optional

    async def __call__(self, request: Request) -> Any:
        """Return the body of a request."""
        config: Config = request.app.state.config
        limit = config.bulk_body_limit if self.bulk else config.body_limit
        raw = await read_body(request, limit, config.body_seconds)
        if self.optional and not raw.strip():
            return self.read(b"{}")
        kind = request.headers.get("content-type", "")
        if not JSON_TYPE.fullmatch(kind):
            raise Refused("unsupported", f"Content-Type must be application/json, but got {shown(kind)}")
        if len(raw) < LONG_BODY:
            return self.read(raw)
        pools: ThreadPools = request.app.state.pools
        return await pools.reads.run(self.read, raw)

    def read(self, raw: bytes) -> Any:
        """Return what a JSON text holds."""
        return checked(self.model, parse(raw))


class BulkBody(JsonBody):
    """A FastAPI dependency: the items of a bulk request, each as a pair: the experiment it names, and what it holds.

    An item that does not fit its model does not touch the others: its pair holds the refusal. model: the whole body.
    """

    bulk = True

    def __init__(self, model: type[BaseModel], item: type[BaseModel]) -> None:
        super().__init__(model)
        self.item = item

    def read(self, raw: bytes) -> list[tuple[str | None, Any]]:
        """Return the items of a JSON text."""
        items = checked(_Items, parse(raw)).items
        if len(items) > MOST_BULK:
            raise Refused("too_large", f"items must be at most {MOST_BULK}, but got {len(items)}", limit=MOST_BULK)
        return [self._pair(item) for item in items]

    def _pair(self, item: Any) -> tuple[str | None, Any]:
        named = item.get("experiment") if isinstance(item, dict) else None
        try:
            return named, checked(self.item, item, "an item")
        except Refused as refused:
            return named[:100] if isinstance(named, str) else None, refused


class _Items(BaseModel, extra="forbid"):
    items: list[Any]


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """Return the body of a request, at most `limit` bytes that arrive within `seconds`."""
    declared = request.headers.get("content-length", "")
    if declared in ("", "0") and "transfer-encoding" not in request.headers:
        return b""
    if declared.isdigit() and int(declared[:20]) > limit:
        raise _too_large(limit, f"{int(declared[:20])} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise _too_large(limit, "more")
    except TimeoutError:
        raise Refused("timeout", f"the body must arrive within {seconds:g} seconds, but did not") from None
    except ClientDisconnect:
        raise Refused("bad_request", "the body must arrive whole, but the connection was closed") from None
    return bytes(body)


def _too_large(limit: int, size: str) -> Refused:
    return Refused("too_large", f"the body must have at most {limit} bytes, but has {size}", limit=limit)


def refuse(detail: str) -> NoReturn:
    """Refuse what a client sent, with the rule it breaks."""
    raise Refused("invalid", detail)


def parse(body: bytes) -> Any:
    """Return the value of a strict JSON text.

    >>> parse(b'{"total": 0.5}')
    {'total': 0.5}
    >>> parse(b'{"total": 1e400}')
    Traceback (most recent call last):
        ...
    aftereffect.service.errors.Refused: a number in the body must be finite, but got '1e400'
    """
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        refuse(f"the body must be UTF-8, but byte {error.start} is not")
    except json.JSONDecodeError as error:
        refuse(f"the body must be JSON, but is not at character {error.pos}: {error.msg}")
    except RecursionError:
        refuse(TOO_DEEP)
    # NUL and lone surrogates come only as escapes: raw ones are not JSON, or not UTF-8.
    if b"\\u" in body or body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check([value], 0)
    return value


def _check(parts: Iterable[Any], depth: int) -> None:
    """Refuse texts that cannot be stored, and deep nesting."""
    if depth > MAX_DEPTH:
        refuse(TOO_DEEP)
    for part in parts:
        if isinstance(part, str):
            if UNSTORABLE.search(part):
                refuse(f"a text in the body must be free of NUL and of lone surrogates, but got {shown(part)}")
        elif isinstance(part, dict):
            _check((*part, *part.values()), depth + 1)
        elif isinstance(part, list):
            _check(part, depth + 1)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        refuse(f"a number in the body must be finite, but got {shown(text)}")
    return number


def _integer(text: str) -> int:
    # The length first: turning a long text into an int takes quadratic time.
    if len(text) > 20 or not -(2**63) <= (number := int(text)) < 2**64:
        refuse(f"an integer in the body must lie within 64 bits, but got {shown(text)}")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        refuse(f"an object in the body must have each key once, but has {shown(key)} more than once")
    return read


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_float)
