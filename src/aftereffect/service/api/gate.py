"""The gate that every request passes: names and origins are checked, limits kept, headers added, answers counted.

It is plain ASGI around the whole app, so that nothing the app does (a page, a file, an unknown path, a fault) can leave
without the security headers, and no fault can leave as anything but a problem.
"""

import time
from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aftereffect.service.api import problems
from aftereffect.service.api.auth import Access
from aftereffect.service.api.limits import Rate
from aftereffect.service.api.telemetry import UNMATCHED, Telemetry
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused

ROUTE = "aftereffect.route"
HEADERS = "aftereffect.headers"
"""Where a request's scope holds its headers as a mapping."""
HEALTH = "/healthz"
SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
)
PLAIN = frozenset({b"content-length", b"content-type"})


class Traffic:
    """The requests in work, and those of late of each address."""

    def __init__(self, config: Config) -> None:
        """Begin with none."""
        per_second = config.requests_per_second
        self.rate = Rate(per_second, per_second * config.rate_burst)
        self.most = config.concurrency
        self.in_flight = 0


class Gate:
    """ASGI middleware; the outermost one of the app."""

    def __init__(self, app: ASGIApp, access: Access, telemetry: Telemetry, traffic: Traffic) -> None:
        """Wrap an app."""
        self._app, self._access, self._telemetry, self._traffic = app, access, telemetry, traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or answer it here."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self.lead(self._app, scope, receive, send)
        else:
            # No route speaks WebSocket, so none is opened.
            await send({"type": "websocket.close", "code": 1008})

    async def lead(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one HTTP request through to an app."""
        started = time.perf_counter()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = with_security_headers(message.get("headers", ()))
            await send(message)

        self._traffic.in_flight += 1
        try:
            self._admit(scope)
            await app(scope, receive, sending)
        except Refused as refusal:
            await problems.answer(refusal)(scope, receive, sending)
        except Exception as error:
            self._telemetry.failed(scope.get(ROUTE, UNMATCHED), error)
            if status:
                raise
            await problems.answer(error)(scope, receive, sending)
        finally:
            self._traffic.in_flight -= 1
            route = scope.get(ROUTE, UNMATCHED)
            # No status: the client left, or the server is stopping, before there was an answer.
            self._telemetry.answered(scope["method"], route, status or 499, time.perf_counter() - started)

    def _admit(self, scope: Scope) -> None:
        headers = scope[HEADERS] = dict(scope["headers"])
        watched = scope["path"] == HEALTH
        # Who watches a service may know it by any address; it learns whether all is well, and nothing else.
        if not watched:
            self._access.check_host(headers)
        self._access.check_origin(scope["method"], headers)
        if watched:
            return
        traffic = self._traffic
        if traffic.in_flight > traffic.most:
            raise Refused("too_many", f"requests in work must be at most {traffic.most}; try again", retry_after=1)
        if not traffic.rate.limits:
            return
        client: Any = scope.get("client")
        wait = traffic.rate.wait(client[0] if client else "")
        if wait:
            words = f"requests of one address must be at most {traffic.rate.rate:g} a second; wait {wait} s"
            raise Refused("too_many", words, retry_after=wait)


def with_security_headers(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with the security headers that it does not set itself."""
    given = list(headers)
    present = {name.lower() for name, _ in given}
    if present == PLAIN:
        return [*given, *SECURITY_HEADERS]
    return given + [pair for pair in SECURITY_HEADERS if pair[0] not in present]
