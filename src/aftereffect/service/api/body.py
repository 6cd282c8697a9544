"""Request bodies: `read_json` reads strict JSON and validates it as an operation declares.

Python's JSON parser also accepts duplicate keys (the last one is kept), integers of any length, lone surrogates (which
no database stores), NUL (which PostgreSQL does not store), and nesting up to the recursion limit. Here each of these is
an error that names the rule. NaN and infinity are refused by the models: no field takes them.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from starlette.requests import ClientDisconnect, Request

from aftereffect.core.checks import shown
from aftereffect.service.api.limits import ThreadPools
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.operations import BulkOperation, Operation

JSON_TYPE = re.compile(r"\s*(application/(json|[^;]*\+json)\s*(;.*)?)?", re.IGNORECASE)
"""Content-Type values accepted as JSON, including an empty one."""
MAX_DEPTH = 16
TOO_DEEP = f"the body must be nested at most {MAX_DEPTH} levels deep, but is deeper"
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# In bytes. Parsing a body of this size takes about a millisecond; longer bodies are parsed in a thread.
LONG_BODY = 1 << 16


async def read_json(request: Request, operation: Operation[Any]) -> Any:
    """Return the body of a request, validated as its operation declares."""
    config: Config = request.app.state.config
    limit = config.bulk_body_limit if isinstance(operation, BulkOperation) else config.body_limit
    raw = await read_body(request, limit, config.body_seconds)
    if operation.optional and not raw.strip():
        return operation.read({})
    kind = request.headers.get("content-type", "")
    if not JSON_TYPE.fullmatch(kind):
        raise Refused("unsupported", f"Content-Type must be application/json, but got {shown(kind)}")
    if len(raw) < LONG_BODY:
        return operation.read(parse(raw))
    pools: ThreadPools = request.app.state.pools
    return await pools["reads"].run(lambda: operation.read(parse(raw)))


async def read_body(request: Request, limit: int, seconds: float) -> bytes:
    """Return the body of a request; refuse more than `limit` bytes, or a body not complete within `seconds`."""
    declared = request.headers.get("content-length", "")
    if declared in ("", "0") and "transfer-encoding" not in request.headers:
        return b""
    if (coded := request.headers.get("content-encoding", "identity")).lower() != "identity":
        raise Refused("unsupported", f"Content-Encoding must be identity, but got {shown(coded)}")
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
        raise Refused("bad_request", "the body must be complete, but the connection was closed") from None
    return bytes(body)


def _too_large(limit: int, size: str) -> Refused:
    return Refused("too_large", f"the body must have at most {limit} bytes, but has {size}", limit=limit)


def parse(body: bytes) -> Any:
    """Return the value of a strict JSON text.

    >>> parse(b'{"total": 0.5}')
    {'total': 0.5}
    >>> parse(b'{"total": 1, "total": 2}')
    Traceback (most recent call last):
        ...
    aftereffect.service.errors.Refused: an object in the body must have each key once, but has 'total' more than once
    """
    try:
        value = _DECODER.decode(body.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise Refused("invalid", f"the body must be JSON in UTF-8, but is not: {error}") from None
    except RecursionError:
        raise Refused("invalid", TOO_DEEP) from None
    # NUL and lone surrogates can only occur as escapes: a raw NUL is not valid JSON, a raw surrogate not valid UTF-8.
    if b"\\u" in body or body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _check([value], 0)
    return value


def _check(parts: Iterable[Any], depth: int) -> None:
    """Refuse strings that cannot be stored, and nesting deeper than MAX_DEPTH."""
    if depth > MAX_DEPTH:
        raise Refused("invalid", TOO_DEEP)
    for part in parts:
        if isinstance(part, str):
            if UNSTORABLE.search(part):
                rule = "a string in the body must not contain NUL or lone surrogates"
                raise Refused("invalid", f"{rule}, but got {shown(part)}")
        elif isinstance(part, dict):
            _check((*part, *part.values()), depth + 1)
        elif isinstance(part, list):
            _check(part, depth + 1)


def _integer(text: str) -> int:
    # Check the length first: converting a long string to an int takes quadratic time.
    if len(text) > 20 or not -(2**63) <= (number := int(text)) < 2**64:
        raise Refused("invalid", f"an integer in the body must fit in 64 bits, but got {shown(text)}")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) != len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise Refused("invalid", f"an object in the body must have each key once, but has {shown(key)} more than once")
    return read


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer)
