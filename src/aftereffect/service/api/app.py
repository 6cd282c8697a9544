"""`create_app(store, config)` returns the service as an ASGI app: REST API, dashboard, and middleware around both."""

import time
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aftereffect.core import VERSION
from aftereffect.service.api import problems, routes
from aftereffect.service.api.auth import Auth
from aftereffect.service.api.limits import RateLimit, SignIns, thread_pools
from aftereffect.service.api.telemetry import LOGGER, Telemetry, route_of
from aftereffect.service.config import Config
from aftereffect.service.dashboard.auth import problem_page
from aftereffect.service.dashboard.routes import router as dashboard
from aftereffect.service.errors import Refused
from aftereffect.service.messages import Problem
from aftereffect.service.operations import OPERATIONS
from aftereffect.service.store.store import Store

HEALTH = "/healthz"
ABOUT = (
    "Ask for the arm to play in a round, then report the round's total: the sum of all effects observed in that round, "
    "from its own action and from earlier ones. A write is durable once it is answered. Errors are problem+json with a "
    "stable `code`. If tokens are required, the tag of an operation is the scope that the token must have; `admin` "
    "includes `play`, and `play` includes `read`."
)
_PROBLEM = {
    "description": "Refused; `code` gives the reason. With 429 and 503, Retry-After is the number of seconds to wait.",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": routes.REFERENCE.format(model="Problem")}}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
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


class Middleware:
    """Checks Host, Origin and limits of every request, adds security headers, and counts responses.

    It wraps the whole app, so every response has the security headers, and every unhandled exception becomes a problem
    response.
    """

    def __init__(self, app: ASGIApp, auth: Auth, telemetry: Telemetry, config: Config) -> None:
        self._app, self._auth, self._telemetry = app, auth, telemetry
        rate = config.requests_per_second
        self._rate = RateLimit(rate, rate * config.rate_burst)
        self._most, self._in_flight = config.concurrency, 0
        telemetry.in_flight.set_function(lambda: self._in_flight)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, method, status = time.perf_counter(), scope["method"], 0
        if method == "HEAD":
            # Routes declare GET only; the server omits the body of a response to HEAD.
            scope = {**scope, "method": "GET"}

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = list(message.get("headers", ()))
                present = {name.lower() for name, _ in given}
                message["headers"] = given + [pair for pair in SECURITY_HEADERS if pair[0] not in present]
            await send(message)

        self._in_flight += 1
        try:
            self._admit(scope)
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            if not isinstance(error, Refused):
                LOGGER.error("fault", exc_info=error, extra={"facts": {"route": route_of(scope)}})
            if status:
                raise
            await problems.response(error)(scope, receive, send_with_headers)
        finally:
            self._in_flight -= 1
            # No status: the client disconnected, or the server stopped, before the response.
            self._telemetry.answered(method, route_of(scope), status or 499, time.perf_counter() - started)

    def _admit(self, scope: Scope) -> None:
        headers, client = dict(scope["headers"]), scope.get("client")
        if len(headers) != len(scope["headers"]) and sum(name == b"host" for name, _ in scope["headers"]) > 1:
            raise Refused("bad_request", "Host must be sent once, but was sent more than once")
        # Health checks may use any host name, and must succeed under load.
        health = scope["path"] == HEALTH
        self._auth.check_site(scope["method"], headers, any_host=health)
        if self._in_flight > self._most and not health:
            raise Refused("too_many", f"at most {self._most} requests can run at a time; try again", retry_after=1)
        if self._rate.rate and not health:
            self._rate.check(client[0] if client else "")


class App(FastAPI):
    """FastAPI with the models of request bodies added to the OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document; it is built once."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        document = super().openapi()
        models: list[type[BaseModel]] = [Problem]
        models += [operation.body for operation in OPERATIONS.values() if operation.body is not None]
        _, schemas = models_json_schema([(each, "validation") for each in models], ref_template=routes.REFERENCE)
        document["components"]["schemas"] |= schemas["$defs"]
        return document


def create_app(store: Store, config: Config | None = None) -> FastAPI:
    """Return the app of the service on a store. The caller closes the store."""
    config = Config() if config is None else config
    app = App(
        title="Aftereffect",
        version=VERSION,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        responses=PROBLEMS,
    )
    auth, telemetry = Auth(store, config), Telemetry(store, config.log_requests)
    app.state.store, app.state.config, app.state.auth, app.state.telemetry = store, config, auth, telemetry
    app.state.problem_page = problem_page
    app.state.pools, app.state.sign_ins = thread_pools(), SignIns()
    store.webhooks = tuple(config.webhooks)
    # Not in a router of their own, which would be searched twice for each request.
    routes.add_operations(app)
    app.include_router(routes.about)
    app.include_router(dashboard)
    problems.add_handlers(app)
    app.add_middleware(Middleware, auth=auth, telemetry=telemetry, config=config)
    return app
