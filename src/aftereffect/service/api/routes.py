"""The endpoints, one function each: parameters are the request, `response_model` is the response.

Endpoints have no logic of their own: models validate requests, the store carries them out. The router determines the
scope that a token needs. Responses are encoded by `reply`, because FastAPI would validate and encode them again.
"""

import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.routing import APIRoute
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BeforeValidator
from pydantic_core import PydanticKnownError
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from aftereffect.core.checks import shown
from aftereffect.service import messages, totals
from aftereffect.service.api.auth import Scope
from aftereffect.service.api.body import BulkBody, JsonBody
from aftereffect.service.api.limits import ThreadPools
from aftereffect.service.api.problems import problem_of
from aftereffect.service.api.telemetry import LOGGER, Telemetry, route_of
from aftereffect.service.dashboard.auth import May
from aftereffect.service.dashboard.views import page
from aftereffect.service.errors import CODES, Refused
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.commands import Command
from aftereffect.service.experiment.plan import planned
from aftereffect.service.messages import ACTIVE
from aftereffect.service.settings import LARGEST, ExperimentSettings, PlanQuestion, days
from aftereffect.service.store.store import Store

DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)
MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


class StrictQuery(APIRoute):
    """A route that refuses unknown and repeated query parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, preceded by the check."""
        handle = super().get_route_handler()
        allowed = [field.alias for field in self.dependant.query_params]

        async def check(request: Request) -> Response:
            names = [name for name, _ in request.query_params.multi_items()] if request.scope["query_string"] else []
            for name in names:
                if name not in allowed or names.count(name) > 1:
                    known = " and ".join(allowed) or "no parameters"
                    raise Refused("invalid", f"the query may contain {known}, each once, but got {shown(names)}")
            return await handle(request)

        return check


# The tag of a router is the scope required by its endpoints. `play` comes first: routes are tried in order, and most
# requests are asks and tells. `about` is not strict: monitoring tools may add query parameters.
play = APIRouter(tags=["play"], route_class=StrictQuery)
read = APIRouter(tags=["read"], route_class=StrictQuery)
admin = APIRouter(tags=["admin"], route_class=StrictQuery)
about = APIRouter()
ROUTERS = (play, read, admin, about)


async def _pools(request: Request) -> ThreadPools:
    pools: ThreadPools = request.app.state.pools
    return pools


def _whole(text: Any) -> Any:
    """Accept only digits: pydantic would also accept '1.0', ' 1' and '1_000'."""
    if isinstance(text, str) and not DIGITS.fullmatch(text):
        raise PydanticKnownError("int_parsing")
    return text


def _number(default: int) -> BeforeValidator:
    """Return the validator of a query parameter with digits only; an empty value means the default."""
    return BeforeValidator(lambda text: default if text == "" else _whole(text))


PlayStore = Annotated[Store, Depends(Scope("play"))]
ReadStore = Annotated[Store, Depends(Scope("read"))]
AdminStore = Annotated[Store, Depends(Scope("admin"))]
Pools = Annotated[ThreadPools, Depends(_pools)]
ExperimentId = Annotated[str, Path(description="The id of an experiment.", examples=["pZk2Yt0nQ9vLr8sXw1aBcA"])]
RoundNumber = Annotated[int, BeforeValidator(_whole), Path(ge=1, le=LARGEST, description="The number of a round.")]
TokenId = Annotated[str, Path(description="The id of a token (not the token itself).")]
ArmName = Annotated[str, Path(description="The name of an arm.", examples=["email"])]
After = Annotated[
    str, Query(pattern=r"^[A-Za-z0-9._~:+-]{0,300}$", description="The `next` of the previous page; empty at first.")
]
Format = Annotated[Literal["csv", "parquet", ""], Query(description="The file format.")]
StateName = Annotated[messages.State | Literal[""], Query(description="Only experiments in this state.")]
Search = Annotated[str, Query(max_length=200, description="Only experiments whose names contain this.")]
Ids = Annotated[
    str, Query(pattern=r"^[A-Za-z0-9._~,-]{1,700}$", description="The ids of experiments, separated by commas.")
]
Last = Annotated[int, _number(2000), Query(ge=1, le=messages.MOST_SERIES, description="The maximum number of rounds.")]
AfterEvent = Annotated[int, _number(0), Query(ge=0, le=LARGEST, description="The `next` of the previous page.")]
Limit = Annotated[int, _number(100), Query(ge=1, le=messages.MOST_ITEMS, description="The maximum number of items.")]
AskBody = Annotated[messages.Ask, Depends(JsonBody(messages.Ask, optional=True))]
TellBody = Annotated[messages.Tell, Depends(JsonBody(messages.Tell))]
ReportsBody = Annotated[messages.Reports, Depends(JsonBody(messages.Reports))]
AcceptBody = Annotated[messages.Accept, Depends(JsonBody(messages.Accept, optional=True))]
AmendBody = Annotated[messages.Amend, Depends(JsonBody(messages.Amend))]
NoteBody = Annotated[messages.Note, Depends(JsonBody(messages.Note))]
ReminderBody = Annotated[messages.NewReminder, Depends(JsonBody(messages.NewReminder))]
NoBody = Annotated[messages.NoFields, Depends(JsonBody(messages.NoFields, optional=True))]
Items = list[tuple[Any, Any]]
AskItems = Annotated[Items, Depends(BulkBody(messages.BulkAsk, messages.AskItem))]
TellItems = Annotated[Items, Depends(BulkBody(messages.BulkTell, messages.TellItem))]
SettingsBody = Annotated[ExperimentSettings, Depends(JsonBody(ExperimentSettings))]
CorrectionBody = Annotated[messages.Correction, Depends(JsonBody(messages.Correction))]
ContinuationBody = Annotated[messages.Continuation, Depends(JsonBody(messages.Continuation))]
PlanBody = Annotated[PlanQuestion, Depends(JsonBody(PlanQuestion))]
TokenBody = Annotated[messages.NewToken, Depends(JsonBody(messages.NewToken))]


def reply(value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    # Column names from SQLAlchemy are instances of a subclass of str.
    content = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    return Response(content, status, headers, "application/json")


# Playing


@play.post("/v1/experiments/{id}/ask", response_model=messages.Turn)
async def ask(store: PlayStore, id: ExperimentId, body: AskBody) -> Response:
    """Open the next round, or return the open one."""
    return reply({"experiment": id, **await store.aperform(id, commands.Ask(body.unit))})


@play.put("/v1/experiments/{id}/rounds/{round}", response_model=messages.Report)
async def tell(store: PlayStore, id: ExperimentId, round: RoundNumber, body: TellBody) -> Response:
    """Report the total of a round, or that it is missing."""
    told = {"experiment": id, **await store.aperform(id, commands.Tell(round, body.total, body.unit, body.ahead))}
    if body.next and told["state"] in ACTIVE and told["open_round"] != round:
        told["next"] = {"experiment": id, **await store.aperform(id, commands.Ask())}
    return reply(told)


@play.post("/v1/experiments/{id}/reports", response_model=messages.ManyReports)
async def reports(store: PlayStore, pools: Pools, id: ExperimentId, body: ReportsBody) -> Response:
    """Report several rounds at once, all or none, from a list or from the text of a CSV file."""
    return reply(await store.aperform(id, await pools.reads.run(totals.reports, body)))


@play.post("/v1/experiments/{id}/rounds/{round}/amend", response_model=messages.Report)
async def amend(store: PlayStore, id: ExperimentId, round: RoundNumber, body: AmendBody) -> Response:
    """Correct a total, or report a late one; after the end of its block, what was learned is corrected too."""
    was = body.was if "was" in body.model_fields_set else ...
    return reply({"experiment": id, **await store.aperform(id, commands.Amend(round, body.total, body.unit, was))})


@play.put("/v1/experiments/{id}/rounds/{round}/note", response_model=messages.Report)
async def note(store: PlayStore, id: ExperimentId, round: RoundNumber, body: NoteBody) -> Response:
    """Write a note on a round, such as "holiday", or remove it."""
    return reply({"experiment": id, **await store.aperform(id, commands.Note(round, body.note, body.unit))})


@play.post("/v1/bulk/ask", response_model=messages.BulkReply[messages.Turn])
async def bulk_ask(request: Request, store: PlayStore, items: AskItems) -> Response:
    """Ask for many experiments; each item has its own answer or error."""
    return await _bulk(request, store, items, lambda item: commands.Ask(item.unit))


@play.post("/v1/bulk/tell", response_model=messages.BulkReply[messages.Report])
async def bulk_tell(request: Request, store: PlayStore, items: TellItems) -> Response:
    """Report totals for many experiments; each item has its own answer or error."""
    return await _bulk(request, store, items, lambda item: commands.Tell(item.round, item.total, item.unit))


async def _bulk(request: Request, store: Store, items: Items, command: Callable[[Any], Command]) -> Response:
    telemetry: Telemetry = request.app.state.telemetry
    valid = [(name, command(item)) for name, item in items if not isinstance(item, Refused)]
    done = iter(await store.aperform_many(valid))
    answers = [item if isinstance(item, Refused) else next(done) for _, item in items]
    refused = sum(isinstance(answer, Refused) for answer in answers)
    telemetry.bulk(route_of(request.scope), len(items) - refused, refused)
    told = [{"error": problem_of(answer)} if isinstance(answer, Refused) else answer for answer in answers]
    return reply({"items": [{"experiment": name, **each} for (name, _), each in zip(items, told, strict=True)]})


# Reading


@read.get("/v1/experiments", response_model=messages.Page[messages.Summary])
async def experiments(
    store: ReadStore, pools: Pools, after: After = "", limit: Limit = 100, state: StateName = "", search: Search = ""
) -> Response:
    """List the experiments."""
    wanted = {"state": state or None, "search": search or None}
    return reply(await pools.reads.run(store.experiments, after=after or None, limit=limit, **wanted))


@read.get("/v1/compare", response_model=messages.Comparisons)
async def compare(store: ReadStore, pools: Pools, ids: Ids) -> Response:
    """Compare experiments: gain over an equal split, leading arm, next decision."""
    return reply({"items": await pools.reads.run(store.compare, ids.split(","))})


@read.get("/v1/experiments/{id}/reminder", response_model=messages.Reminder)
async def reminder(request: Request, store: ReadStore, pools: Pools, id: ExperimentId) -> Response:
    """Return the reminder of an experiment, and the names of the webhooks that the operator allows."""
    found = await pools.checks.run(store.reminders, id)
    names = list(request.app.state.config.webhooks)
    return reply({"experiment": id, "webhook": None, **(found[0] if found else {}), "webhooks": names})


@read.get("/v1/experiments/{id}", response_model=messages.Overview)
async def experiment(store: ReadStore, pools: Pools, id: ExperimentId) -> Response:
    """Return an experiment: state, probabilities, guarantee."""
    return reply(await pools.reads.run(store.experiment, id))


@read.get("/v1/experiments/{id}/rounds", response_model=messages.Page[messages.Row])
async def rounds(store: ReadStore, pools: Pools, id: ExperimentId, after: After = "", limit: Limit = 100) -> Response:
    """List the rounds, one row per unit."""
    return reply(await pools.reads.run(store.rounds, id, after=after or None, limit=limit))


@read.get("/v1/experiments/{id}/events", response_model=messages.Page[messages.Event])
async def events(
    store: ReadStore, pools: Pools, id: ExperimentId, after: AfterEvent = 0, limit: Limit = 100
) -> Response:
    """List the events of the log."""
    return reply(await pools.reads.run(store.events, id, after=after, limit=limit))


@read.get("/v1/experiments/{id}/series", response_model=messages.Series)
async def series(store: ReadStore, pools: Pools, id: ExperimentId, last: Last = 2000) -> Response:
    """Return the data of the charts, column by column."""
    return reply(await pools.reads.run(store.series, id, last=last))


@read.get("/v1/experiments/{id}/carryover", response_model=messages.EffectsByLag)
async def carryover(store: ReadStore, pools: Pools, id: ExperimentId) -> Response:
    """Return how long effects last, estimated from the rounds of the pilot or else from the latest rounds."""
    return reply(await pools.long_reads.run(store.carryover, id))


@read.get(
    "/v1/experiments/{id}/export",
    response_class=Response,
    responses={200: {"content": {kind.partition(";")[0]: {} for kind in MEDIA_TYPES.values()}}},
)
async def export(store: ReadStore, pools: Pools, id: ExperimentId, format: Format = "csv") -> Response:
    """Return the record as a CSV or Parquet file."""
    form = format or "csv"
    chunks = await pools.long_reads.run(store.export, id, form)
    headers = {"Content-Disposition": f'attachment; filename="{id}.{form}"', "Content-Type": MEDIA_TYPES[form]}
    return StreamingResponse(chunks, headers=headers)


@read.post("/v1/plan", response_model=messages.Plan)
async def plan(store: ReadStore, pools: Pools, body: PlanBody) -> Response:
    """Return what a choice of carry-over implies: blocks, decisions, the guarantee. Nothing is stored."""
    return reply(await pools.reads.run(planned, body))


# Administration


@admin.post("/v1/experiments", response_model=messages.Overview, status_code=201)
async def create(store: AdminStore, body: SettingsBody) -> Response:
    """Create an experiment; it runs at once unless it is a draft."""
    made = await store.acreate(body)
    return reply(made, 201, {"Location": f"/v1/experiments/{made['id']}"})


@admin.post("/v1/experiments/{id}/correct", response_model=messages.Overview, status_code=201)
async def correct(store: AdminStore, pools: Pools, id: ExperimentId, body: CorrectionBody) -> Response:
    """Create an experiment with some settings of this one changed, and with its rounds; this one is finished."""
    made = await pools.reads.run(store.correct, id, body.model_extra or {})
    return reply(made, 201, {"Location": f"/v1/experiments/{made['id']}"})


@admin.post("/v1/experiments/{id}/continue", response_model=messages.Overview, status_code=201)
async def continue_with(store: AdminStore, pools: Pools, id: ExperimentId, body: ContinuationBody) -> Response:
    """Create an experiment with arms added or retired, which begins with what this one has measured; this one ends."""
    made = await pools.reads.run(store.continue_with, id, body.add, body.retire, body.model_extra or {})
    return reply(made, 201, {"Location": f"/v1/experiments/{made['id']}"})


async def _changed(store: Store, pools: ThreadPools, id: str, command: Command) -> Response:
    await store.aperform(id, command)
    return reply(await pools.reads.run(store.experiment, id))


@admin.post("/v1/experiments/{id}/start", response_model=messages.Overview)
async def start(store: AdminStore, pools: Pools, id: ExperimentId, body: NoBody) -> Response:
    """Start a draft."""
    return await _changed(store, pools, id, commands.Start())


@admin.post("/v1/experiments/{id}/accept", response_model=messages.Overview)
async def accept(store: AdminStore, pools: Pools, id: ExperimentId, body: AcceptBody) -> Response:
    """End the pilot and play on with a max_delay: this one or, if none is given, the one proposed."""
    return reply(await pools.long_reads.run(store.accept, id, body.max_delay))


@admin.post("/v1/experiments/{id}/pause", response_model=messages.Overview)
async def pause(store: AdminStore, pools: Pools, id: ExperimentId, body: NoBody) -> Response:
    """Pause an experiment: no round opens until it is resumed."""
    return await _changed(store, pools, id, commands.Pause())


@admin.post("/v1/experiments/{id}/resume", response_model=messages.Overview)
async def resume(store: AdminStore, pools: Pools, id: ExperimentId, body: NoBody) -> Response:
    """Resume after a pause, with max_delay rounds of warm-up."""
    return await _changed(store, pools, id, commands.Resume())


@admin.post("/v1/experiments/{id}/finish", response_model=messages.Overview)
async def finish(store: AdminStore, pools: Pools, id: ExperimentId, body: NoBody) -> Response:
    """End an experiment permanently."""
    return await _changed(store, pools, id, commands.Finish())


@admin.post("/v1/experiments/{id}/arms/{arm:path}/away", response_model=messages.Overview)
async def away(store: AdminStore, pools: Pools, id: ExperimentId, arm: ArmName, body: NoBody) -> Response:
    """Mark an arm as unavailable; the guarantee is void from then on."""
    return await _changed(store, pools, id, commands.Away(arm))


@admin.post("/v1/experiments/{id}/arms/{arm:path}/back", response_model=messages.Overview)
async def back(store: AdminStore, pools: Pools, id: ExperimentId, arm: ArmName, body: NoBody) -> Response:
    """Mark an arm as available again."""
    return await _changed(store, pools, id, commands.Back(arm))


@admin.put("/v1/experiments/{id}/reminder", response_model=messages.Reminder)
async def remind(request: Request, store: AdminStore, pools: Pools, id: ExperimentId, body: ReminderBody) -> Response:
    """Call a webhook when a round waits for its report."""
    allowed = request.app.state.config.webhooks
    if body.webhook not in allowed:
        names = ", ".join(allowed) or "none are"
        raise Refused("invalid", f"webhook must be allowed by the operator ({names}), but got {shown(body.webhook)}")
    await pools.checks.run(store.remind, id, body.webhook, days(body.after))
    return await reminder(request, store, pools, id)


@admin.delete("/v1/experiments/{id}/reminder", status_code=204)
async def forget_reminder(store: AdminStore, pools: Pools, id: ExperimentId) -> Response:
    """Remove the reminder of an experiment."""
    await pools.checks.run(store.remind, id, None)
    return Response(status_code=204)


# The time of a replay grows with the log, so it requires the scope `admin`.
@admin.get("/v1/experiments/{id}/verify", response_model=messages.Verdict)
async def verify(store: AdminStore, pools: Pools, id: ExperimentId) -> Response:
    """Replay the log and compare the result with the stored data."""
    return reply((await pools.long_reads.run(store.verify, id))[0])


@admin.get("/v1/verify", response_model=messages.Page[messages.Verdict])
async def verify_all(store: AdminStore, pools: Pools, after: After = "", limit: Limit = 100) -> Response:
    """Replay every log, including those of experiments that no longer exist."""
    return reply(await pools.long_reads.run(store.verify_page, after=after or None, limit=limit))


@admin.post("/v1/tokens", response_model=messages.Token, status_code=201)
async def create_token(store: AdminStore, pools: Pools, body: TokenBody) -> Response:
    """Create a token; only this response contains it."""
    token = await pools.checks.run(store.create_token, body.name, body.scopes)
    return reply({"name": body.name, "scopes": body.scopes, "token": token}, 201)


@admin.get("/v1/tokens", response_model=messages.Tokens)
async def tokens(store: AdminStore, pools: Pools) -> Response:
    """List the tokens: names, scopes and dates, not the tokens themselves."""
    return reply({"items": await pools.checks.run(store.tokens)})


@admin.delete("/v1/tokens/{token}", status_code=204)
async def revoke_token(store: AdminStore, pools: Pools, token: TokenId) -> Response:
    """Revoke a token."""
    if not messages.is_id(token):
        raise Refused("not_found", f"token must be the id of a token, but got {shown(token)}")
    known = await pools.checks.run(store.tokens)
    if [each["id"] for each in known if "admin" in each["scopes"] and each["revoked_at"] is None] == [token]:
        raise Refused("forbidden", "the last token with the scope 'admin' cannot be revoked; create another one first")
    await pools.checks.run(store.revoke_token, token)
    return Response(status_code=204)


# About the service itself


@about.get("/healthz", tags=["open"], response_model=messages.Health)
async def health(request: Request, pools: Pools) -> Response:
    """Check that the store can be read and written."""
    store: Store = request.app.state.store
    try:
        await pools.checks.run(store.check_health)
    except Refused as refused:
        # No token is required here, so the response omits the reason.
        LOGGER.warning("health check failed: %s", refused.detail)
        raise Refused("busy", "the store must accept reads and writes, but does not; see the log") from None
    return reply({"status": "ok"})


@about.get("/docs", tags=["open"], response_class=HTMLResponse)
def docs(request: Request) -> Response:
    """Return the API reference as a page without scripts; FastAPI's own loads scripts from other sites."""
    return page("reference.html", May(), here="docs", document=request.app.openapi(), codes=CODES)


@about.get("/metrics", tags=["read"], response_class=PlainTextResponse)
async def metrics(request: Request, store: ReadStore) -> Response:
    """Return metrics in the Prometheus text format."""
    telemetry: Telemetry = request.app.state.telemetry
    return Response(generate_latest(telemetry.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
