"""From a path's request to its handler: method, access, body, and refusals as answers.

One `Endpoint` answers all methods of a path. It is a plain ASGI app: what a web framework would do for each request
(dependencies, models, validation errors of its own) is neither needed nor wanted here.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError
from aftereffect.service.api import problems
from aftereffect.service.api.auth import Access
from aftereffect.service.api.body import parse, refuse
from aftereffect.service.api.gate import HEADERS, ROUTE
from aftereffect.service.api.limits import query_of, read_body
from aftereffect.service.api.operations import Operation
from aftereffect.service.api.problems import Rejected
from aftereffect.service.api.telemetry import Telemetry
from aftereffect.service.api.usual import fields
from aftereffect.service.config import Config

# Reading a body of this size takes about a millisecond; longer ones must not hold up the others.
READ_APART = 1 << 16


@dataclass(frozen=True, slots=True)
class Call:
    """A request that may be carried out: its path's parts, its query, and its body (None if none came).

    raw: the body as it came, where the handler reads it: lists of many items.
    """

    path: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any] | None
    raw: bytes = b""


Handler = Callable[[Call], Awaitable[Response]]


def is_json(content_type: bytes) -> bool:
    """Say whether a Content-Type is JSON's; none at all is taken for it.

    >>> is_json(b""), is_json(b"application/json; charset=utf-8"), is_json(b"text/plain")
    (True, True, False)
    """
    kind = content_type.partition(b";")[0].strip().lower()
    return not kind or kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


class Endpoint:
    """All methods of one path."""

    def __init__(self, path: str, config: Config, access: Access, telemetry: Telemetry) -> None:
        """Have no methods yet; `route` names the path in metrics and logs."""
        self.route, self.versioned = path, path.startswith("/v1/")
        self._config, self._access, self._telemetry = config, access, telemetry
        self._methods: dict[str, tuple[Operation, Handler]] = {}

    def add(self, operation: Operation, handler: Handler) -> None:
        """Let a handler answer a method; GET answers HEAD too."""
        self._methods[operation.method] = (operation, handler)
        if operation.method == "GET":
            self._methods["HEAD"] = (operation, handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope[ROUTE] = self.route
        try:
            response = await self._respond(scope, receive)
        except (AftereffectError, Rejected) as error:
            response = problems.answer(error)
            if response.status_code >= 500:
                self._telemetry.refused(self.route, error)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        found = self._methods.get(scope["method"])
        if found is None:
            allowed = ", ".join(sorted(self._methods))
            detail = f"the method must be one of {allowed}, but got {shown(scope['method'])}"
            raise Rejected("not_allowed", detail, {"Allow": allowed})
        operation, handler = found
        headers: Mapping[bytes, bytes] = scope[HEADERS]
        if operation.scope is not None:
            await self._access.check(headers, operation.scope)
        # What asks for health or metrics may add a query of its own.
        query = query_of(scope["query_string"], operation.query) if self.versioned else {}
        raw = b"" if operation.body == "none" else await self._raw(operation, headers, receive)
        if operation.body == "bulk":
            return await handler(Call(scope["path_params"], query, None, raw))
        body = await _body(raw) if raw or operation.body == "required" else None
        return await handler(Call(scope["path_params"], query, body))

    async def _raw(self, operation: Operation, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Return the body as it came, within the limits and said to be JSON."""
        config = self._config
        limit = config.bulk_body_limit if operation.body == "bulk" else config.body_limit
        raw = await read_body(headers, receive, limit, config.body_seconds)
        if operation.body == "optional" and not raw.strip():
            return b""
        kind = headers.get(b"content-type", b"")
        if not is_json(kind):
            got = shown(kind.decode("latin-1"))
            raise Rejected("unsupported", f"Content-Type must be application/json, but got {got}")
        return raw


async def _body(raw: bytes) -> dict[str, Any]:
    if (plain := fields(raw)) is not None:
        return plain
    value = parse(raw) if len(raw) < READ_APART else await run_in_threadpool(parse, raw)
    if not isinstance(value, dict):
        refuse(f"the body must be a JSON object, but got {shown(value)}")
    return value
