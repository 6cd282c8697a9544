"""The pages."""

import urllib.parse
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.routing import APIRoute

from aftereffect.service.config import Config
from aftereffect.service.dashboard import actions, charts, views
from aftereffect.service.dashboard.auth import NOTHING, LoginNeeded, May, add_login, check_reading, may, safe_place
from aftereffect.service.dashboard.views import HEADERS, content, packed, page, problem_of, see_other
from aftereffect.service.errors import Refused

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

LIST_LENGTH = 25
STATES = (
    ("", "All"),
    ("running", "Running"),
    ("paused", "Paused"),
    ("draft", "Drafts"),
    ("finished", "Finished"),
)
MESSAGES = {
    "created": "The experiment is created. Open round 1 when you are ready to play.",
    "drafted": "The draft is saved.",
    "started": "The experiment runs.",
    "told": "The report is saved.",
    "missing": "The round is closed as missing.",
    "amended": "The correction is saved.",
    "paused": "The experiment is paused.",
    "resumed": "The experiment runs again.",
    "finished": "The experiment is finished.",
    "away": "The arm is away.",
    "back": "The arm is back.",
}
"""What a page says after a form was taken; the address holds the word only, so that nobody can write into a page."""

Place = Annotated[str, Query(max_length=200)]


def router(store: "Store", config: Config) -> APIRouter:
    """Return the dashboard's routes."""
    routes = APIRouter(route_class=PageRoute, include_in_schema=False)
    add_assets(routes)
    add_login(routes, store, config)

    @routes.get("/")
    def experiments(request: Request, after: Place = "", state: Place = "") -> Response:
        allowed = may(request, config)
        check_reading(allowed)
        wanted = state if state in dict(STATES) else ""
        found = store.experiments(after=after or None, limit=LIST_LENGTH, state=wanted or None)
        items = [views.listed(store.experiment(item["id"])) for item in found["items"]]
        values = {"items": items, "next": found["next"], "after": after, "state": wanted, "states": STATES}
        return page("list.html", may=allowed, here="list", **values)

    actions.add_forms(routes, store, config)

    @routes.get("/experiments/{experiment_id}")
    def experiment(
        request: Request,
        experiment_id: str,
        unit: Place = "",
        done: Place = "",
        before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        correct: Annotated[int | None, Query(ge=1, le=2**53)] = None,
    ) -> Response:
        allowed = may(request, config)
        check_reading(allowed)
        view = store.experiment(experiment_id)
        return shown(store, view, allowed, unit=unit, before=before, correct=correct, message=MESSAGES.get(done, ""))

    @routes.get("/experiments/{experiment_id}/charts.json")
    def chart_data(request: Request, experiment_id: str, unit: Place = "") -> Response:
        if not may(request, config).read:
            raise Refused("unauthorized", "the charts need a login")
        return JSONResponse(charts.charts(store, experiment_id, unit), headers=HEADERS)

    def refused(experiment_id: str, allowed: May, refusal: Refused, field: str, kept: Mapping[str, str]) -> Response:
        view = store.experiment(experiment_id)
        correct = 1 if field in ("round", "corrected") else None
        return shown(store, view, allowed, problem=problem_of(refusal, field), kept=kept, correct=correct)

    actions.add_actions(routes, store, config, refused)
    return routes


def shown(
    store: views.Reads,
    view: Mapping[str, Any],
    allowed: May,
    *,
    unit: str = "",
    before: int | None = None,
    correct: int | None = None,
    message: str = "",
    problem: Mapping[str, Any] | None = None,
    kept: Mapping[str, str] | None = None,
) -> Response:
    """Return an experiment's page. problem, kept: why a form was refused, and what it held."""
    open_rows = views.open_rows(store, view)
    it = views.experiment(view, open_rows, unit)
    table = views.table(store, view, before)
    closed = view["state"] == "finished" or any(row["update"] and row["block"] == view["block"] for row in table.rows)
    return page(
        "experiment.html",
        status=200 if problem is None else problem["status"],
        it=it,
        may=allowed,
        here="experiment",
        rows=[views.round_row(row, view, closed) for row in table.rows],
        dated=any(row["date"] for row in table.rows),
        newer=table.newer,
        older=table.older,
        timeline=charts.timeline(views.of_unit(store, view, it["unit"]), view["arms"]),
        outcome_words=charts.outcome_words(view),
        means=views.means(view),
        correct=correct,
        message=message,
        problem=problem,
        kept=kept or {},
    )


def login_first(request: Request) -> RedirectResponse:
    """Send the reader to the login form, and back afterwards."""
    wanted = safe_place(request.url.path) if request.method == "GET" else "/"
    return see_other("/login?" + urllib.parse.urlencode({"next": wanted}))


class PageRoute(APIRoute):
    """A route whose refusals are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route's handler."""
        inner = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await inner(request)
            except LoginNeeded:
                return login_first(request)
            except Refused as refusal:
                found = refusal
            except RequestValidationError:
                found = Refused("invalid", "the address must name a page, but one of its parts is no number")
            return page("problem.html", status=found.status, problem=problem_of(found), may=NOTHING, here="")

        return answer


TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("dashboard.css", "plotly.css", "page.js", "charts.js", "mark.svg", "plotly.min.js")
YEAR = 31_536_000


def add_assets(router: APIRouter) -> None:
    """Add a route for each file, and none for anything else: no name ever becomes a path."""
    for name in NAMES:
        router.add_api_route(f"/static/{name}", _route(name), methods=["GET"], include_in_schema=False)


def _route(name: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Vary": "Accept-Encoding",
            "Cache-Control": f"public, max-age={YEAR}, immutable" if request.url.query else "no-cache",
        }
        kind = TYPES[name.rsplit(".", 1)[-1]]
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed(name), media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(content(name), media_type=kind, headers=headers)

    return answer
