"""The routes: one for each operation of `service/operations.py`, and those about the service itself.

A route's function has the signature that FastAPI needs to validate parameters and to describe them. Responses are
encoded by `reply`, because FastAPI would validate and encode them again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, FastAPI, Header, Path, Query, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic.fields import FieldInfo
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from aftereffect.core.checks import shown
from aftereffect.service.api.auth import Scope
from aftereffect.service.api.body import read_json
from aftereffect.service.api.limits import ThreadPools
from aftereffect.service.api.problems import problem_of
from aftereffect.service.api.telemetry import LOGGER, Telemetry, route_of
from aftereffect.service.dashboard.auth import May
from aftereffect.service.dashboard.views import page
from aftereffect.service.errors import CODES, Refused
from aftereffect.service.messages import Health, Overview, Reply
from aftereffect.service.operations import OPERATIONS, PATH, BulkOperation, CommandOperation, Operation
from aftereffect.service.store.store import Store

MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


class Endpoint:
    """The function of a route: carries out an operation without blocking the server."""

    def __init__(self, operation: Operation[Any]) -> None:
        self.operation = operation
        # The scope is checked before anything else is read.
        self.__signature__ = Signature(
            [
                _parameter("request", Request),
                _parameter("store", Annotated[Store, Depends(Scope(operation.scope))]),
                *(_parameter(name, _in(Path, PATH[name])) for name in operation.names),
                *(_given(each) for each in operation.parameters.values()),
            ]
        )

    async def __call__(self, request: Request, store: Store, **given: Any) -> Response:
        """Answer a request."""
        operation, pools = self.operation, request.app.state.pools
        if request.scope["query_string"]:
            _check_query(request, [name for name in operation.parameters if name != "key"])
        if operation.body is not None:
            given["body"] = await read_json(request, operation)
        if isinstance(operation, CommandOperation):
            return reply(await store.aperform(given.pop("id"), operation.effect(**given)))
        if isinstance(operation, BulkOperation):
            return await self._bulk(operation, request, store, given["body"])
        found = await pools[operation.pool].run(operation.run, store, **given)
        if operation.reply is None:
            return Response(status_code=operation.status)
        if operation.reply is bytes:
            return file_reply(found, given["id"], given["format"] or "csv")
        made = operation.status == 201 and isinstance(found, Overview)
        return reply(found, operation.status, {"Location": f"/v1/experiments/{found.id}"} if made else None)

    async def _bulk(self, operation: BulkOperation[Any], request: Request, store: Store, body: Any) -> Response:
        found = operation.listed(body, await store.aperform_many(operation.orders(body)), problem_of)
        refused = sum("error" in item for item in found["items"])
        telemetry: Telemetry = request.app.state.telemetry
        telemetry.bulk(route_of(request.scope), len(body) - refused, refused)
        return reply(found)


def _check_query(request: Request, allowed: Sequence[str]) -> None:
    """Refuse unknown and repeated query parameters."""
    names = [name for name, _ in request.query_params.multi_items()]
    if {*names} - {*allowed} or len({*names}) < len(names):
        known = " and ".join(allowed) or "no parameters"
        raise Refused("invalid", f"the query may contain {known}, each once, but got {shown(names)}")


def _parameter(name: str, kind: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _given(declared: Parameter) -> Parameter:
    """Return a parameter of the query, or the idempotency key, as FastAPI needs it."""
    kind = _in(Header, declared.annotation, alias="Idempotency-Key") if declared.name == "key" else None
    return _parameter(declared.name, kind or _in(Query, declared.annotation), declared.default)


def _in(place: Callable[..., Any], kind: Any, **more: Any) -> Any:
    """Return the type of a parameter in the path, the query or a header, with the description that it has."""
    (field,) = (each for each in kind.__metadata__ if isinstance(each, FieldInfo))
    return Annotated[kind, place(description=field.description, **more)]


def reply(
    value: Mapping[str, Any] | Reply, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response."""
    # Column names from SQLAlchemy are instances of a subclass of str.
    content = orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status, headers, "application/json")


def _plain(value: Any) -> Any:
    if isinstance(value, Reply):
        return value.data
    raise TypeError(f"a reply must be JSON, but has a {type(value).__name__}")


def file_reply(chunks: Iterator[bytes], name: str, form: str) -> Response:
    """Return a file to download."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"', "Content-Type": MEDIA_TYPES[form]}
    return StreamingResponse(chunks, headers=headers)


def add_operations(app: FastAPI) -> None:
    """Add the routes of all operations; their tag is the scope that a token needs."""
    files: dict[int | str, dict[str, Any]] = {
        200: {"content": {kind.partition(";")[0]: {} for kind in MEDIA_TYPES.values()}}
    }
    for operation in OPERATIONS.values():
        is_file = operation.reply is bytes
        app.add_api_route(
            operation.path,
            Endpoint(operation),
            methods=[operation.method],
            name=operation.name,
            description=operation.description,
            tags=[operation.scope],
            status_code=operation.status,
            response_model=None if is_file else operation.reply,
            response_class=Response,
            responses=files if is_file else None,
        )


# Monitoring tools may add query parameters to these.
about = APIRouter()


@about.get("/healthz", tags=["open"], response_model=Health)
async def health(request: Request) -> Response:
    """Check that the store can be read and written."""
    store: Store = request.app.state.store
    pools: ThreadPools = request.app.state.pools
    try:
        await pools["checks"].run(store.check_health)
    except Refused as refused:
        # No token is required here, so the response omits the reason.
        LOGGER.warning("health check failed: %s", refused.detail)
        raise Refused("busy", "the store must accept reads and writes, but does not; see the log") from None
    return reply({"status": "ok"})


@about.get("/docs", tags=["open"], response_class=HTMLResponse)
def docs(request: Request) -> Response:
    """Return the API reference as a page without scripts; FastAPI's own loads scripts from other sites."""
    return page("reference.html", May(), here="docs", document=request.app.openapi(), codes=CODES)


@about.get("/metrics", tags=["read"], response_class=PlainTextResponse, dependencies=[Depends(Scope("read"))])
async def metrics(request: Request) -> Response:
    """Return metrics in the Prometheus text format."""
    telemetry: Telemetry = request.app.state.telemetry
    return Response(generate_latest(telemetry.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
