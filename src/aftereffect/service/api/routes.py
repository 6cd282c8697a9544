"""The routes: one for each operation of `service/operations.py`, and those about the service itself.

Parameters and body are validated as the operation declares them, for `Local` too, and described for OpenAPI here.
Responses are encoded by `reply`, because FastAPI would validate and encode them again.
"""

from collections.abc import Callable, Coroutine, Mapping
from operator import attrgetter
from typing import Any

import orjson
from fastapi import APIRouter, Depends, FastAPI, Request
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse

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
from aftereffect.service.operations import KEY, OPERATIONS, BulkOperation, CommandOperation, Operation
from aftereffect.service.store.store import Store

REFERENCE = "#/components/schemas/{model}"
MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def endpoint(operation: Operation[Any]) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """Return the function of a route, which carries out an operation without blocking the server."""

    async def answer(request: Request) -> Response:
        store: Store = request.app.state.store
        given = operation.given(request.path_params, _query(request, operation))
        if operation.body is not None:
            given["body"] = await read_json(request, operation)
        if isinstance(operation, CommandOperation):
            return reply(await store.aperform(given.pop("id"), operation.effect(**given)))
        if isinstance(operation, BulkOperation):
            body = given["body"]
            listed = operation.listed(body, await store.aperform_many(operation.orders(body)), problem_of)
            refused = sum("error" in item for item in listed["items"])
            request.app.state.telemetry.bulk(route_of(request.scope), len(body) - refused, refused)
            return reply(listed)
        found = await request.app.state.pools[operation.pool].run(operation.run, store, **given)
        if operation.reply is None:
            return Response(status_code=operation.status)
        if operation.reply is bytes:
            form = given["format"] or "csv"
            headers = {"Content-Disposition": f'attachment; filename="{given["id"]}.{form}"'}
            return StreamingResponse(found, headers=headers, media_type=MEDIA_TYPES[form])
        made = operation.status == 201 and isinstance(found, Overview)
        return reply(found, operation.status, {"Location": f"/v1/experiments/{found.id}"} if made else None)

    return answer


def _query(request: Request, operation: Operation[Any]) -> dict[str, str]:
    """Return the query, and the idempotency key; refuse unknown and repeated parameters."""
    pairs = request.query_params.multi_items() if request.scope["query_string"] else []
    found, allowed = dict(pairs), [name for name in operation.parameters if name != "key"]
    if len(found) < len(pairs) or not {*found} <= {*allowed}:
        known, names = " and ".join(allowed) or "no parameters", shown([name for name, _ in pairs])
        raise Refused("invalid", f"the query may contain {known}, each once, but got {names}")
    if "key" in operation.parameters and KEY in request.headers:
        found[KEY] = request.headers[KEY]
    return found


def reply(
    value: Mapping[str, Any] | Reply, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response."""
    # Column names from SQLAlchemy are instances of a subclass of str.
    content = orjson.dumps(value, default=attrgetter("data"), option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status, headers, "application/json")


def add_operations(app: FastAPI) -> None:
    """Add the routes of all operations; their tag is the scope that a token needs."""
    files: dict[int | str, dict[str, Any]] = {
        200: {"content": {kind.partition(";")[0]: {} for kind in MEDIA_TYPES.values()}}
    }
    for operation in OPERATIONS.values():
        is_file = operation.reply is bytes
        app.add_api_route(
            operation.path,
            endpoint(operation),
            dependencies=[Depends(Scope(operation.scope))],
            openapi_extra=described(operation),
            methods=[operation.method],
            name=operation.name,
            description=operation.description,
            tags=[operation.scope],
            status_code=operation.status,
            response_model=None if is_file else operation.reply,
            response_class=Response if is_file or operation.reply is None else JSONResponse,
            responses=files if is_file else None,
        )


def described(operation: Operation[Any]) -> dict[str, Any]:
    """Return the parameters and the body of an operation for OpenAPI."""
    parameters, schema = [], operation.arguments.model_json_schema()
    for name, field in schema["properties"].items():
        place = "path" if name in operation.names else "header" if name == KEY else "query"
        named = {"name": name, "in": place, "required": name in schema.get("required", ())}
        parameters.append({**named, "description": field.pop("description"), "schema": field})
    if operation.body is None:
        return {"parameters": parameters}
    content = {"application/json": {"schema": {"$ref": REFERENCE.format(model=operation.body.__name__)}}}
    return {"parameters": parameters, "requestBody": {"required": not operation.optional, "content": content}}


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
