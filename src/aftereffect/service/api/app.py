"""`create_app(store, config)`: the service as an ASGI app: the REST API, the dashboard, and the gate around both."""

import json
import logging

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from aftereffect.service.api import openapi, problems, reference
from aftereffect.service.api.auth import Access
from aftereffect.service.api.bulk import Bulk
from aftereffect.service.api.endpoint import Call, Endpoint, Handler
from aftereffect.service.api.gate import Gate, Traffic
from aftereffect.service.api.operations import ASK, OPERATIONS, ROUND
from aftereffect.service.api.routes import Routes, answer
from aftereffect.service.api.telemetry import Telemetry
from aftereffect.service.config import Config
from aftereffect.service.dashboard.routes import router
from aftereffect.service.errors import Refused
from aftereffect.service.store.store import Store

_log = logging.getLogger(__name__)


class About:
    """The handlers of routes about the service itself, made once."""

    def __init__(self, store: Store, config: Config) -> None:
        """Write the documents."""
        self.store = store
        self.document = openapi.openapi(config)
        self._openapi = json.dumps(self.document, ensure_ascii=False).encode()
        self._page = reference.page().encode()

    async def health(self, call: Call) -> Response:
        """Say whether the store answers and can be written to, and no more: anybody may ask, by any name."""
        try:
            await run_in_threadpool(self.store.check_health)
        except Refused as refused:
            _log.warning("not well: %s", refused.detail)
            raise Refused("busy", "the store must answer and take writes, but does not; the log says why") from None
        return answer({"status": "ok"})

    async def openapi(self, call: Call) -> Response:
        """Return the OpenAPI document."""
        return Response(self._openapi, media_type="application/json")

    async def docs(self, call: Call) -> Response:
        """Return the reference page."""
        return Response(self._page, headers={"Content-Security-Policy": reference.POLICY}, media_type="text/html")


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer what the web framework itself refuses: an unknown path, a method that a page does not have."""
    if isinstance(error, HTTPException):
        detail = "the path must be one of this service's, but is not" if error.status_code == 404 else str(error.detail)
        return problems.answer_status(error.status_code, detail, error.headers)
    return problems.answer(error)


async def _form_error(request: Request, error: Exception) -> Response:
    """Answer a form that the framework could not read; what was sent is not repeated."""
    return problems.answer_status(422, "the form must have the fields of its page, but has not")


class App(FastAPI):
    """FastAPI, but asks and tells, which are nearly all requests, go past its layers straight to their endpoints."""

    ask: Endpoint
    tell: Endpoint
    gate: Gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or whatever else a server says."""
        endpoint = self._straight(scope) if scope["type"] == "http" else None
        if endpoint is None:
            await super().__call__(scope, receive, send)
        else:
            await self.gate.lead(endpoint, scope, receive, send)

    def _straight(self, scope: Scope) -> Endpoint | None:
        match scope["path"].split("/"):
            case ["", "v1", "experiments", str(identity), "ask"] if identity:
                scope["path_params"] = {"id": identity}
                return self.ask
            case ["", "v1", "experiments", str(identity), "rounds", str(number)] if identity and number:
                scope["path_params"] = {"id": identity, "round": number}
                return self.tell
        return None


def create_app(store: Store, config: Config | None = None) -> FastAPI:
    """Return the service for a store. Whoever opened the store closes it."""
    settings = Config() if config is None else config
    access, traffic = Access(store, settings), Traffic(settings)
    telemetry = Telemetry(settings.log_requests, lambda: traffic.in_flight)
    about = About(store, settings)
    app = App(title="Aftereffect", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.access, app.state.telemetry, app.state.store = access, telemetry, store
    app.state.body_seconds, app.state.config = settings.body_seconds, settings
    handlers = (Routes(store, settings, telemetry), Bulk(store, settings, telemetry), about)
    endpoints: dict[str, Endpoint] = {}
    for operation in OPERATIONS:
        handler: Handler = next(getattr(each, operation.name) for each in handlers if hasattr(each, operation.name))
        path = operation.path
        if path not in endpoints:
            endpoints[path] = Endpoint(openapi.template(path), settings, access, telemetry)
            app.router.routes.append(Route(path, endpoints[path]))
        endpoints[path].add(operation, handler)
    app.include_router(router)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _form_error)
    app.add_middleware(Gate, access=access, telemetry=telemetry, traffic=traffic)
    app.ask, app.tell = endpoints[ASK], endpoints[ROUND]
    app.gate = Gate(app, access, telemetry, traffic)
    return app
