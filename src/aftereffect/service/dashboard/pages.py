"""The pages: the list of experiments, one experiment, the form for a new one, the login; `router` puts all together."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from aftereffect.service.config import Config
from aftereffect.service.dashboard import acting, charts, creating, presenting, reading, timeline
from aftereffect.service.dashboard.assets import add_assets
from aftereffect.service.dashboard.guarding import May, check_reading, may
from aftereffect.service.dashboard.rendering import HEADERS, page
from aftereffect.service.dashboard.routing import PageRoute, problem_of
from aftereffect.service.dashboard.signing import add_login
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
        items = [presenting.listed(store.experiment(item["id"])) for item in found["items"]]
        values = {"items": items, "next": found["next"], "after": after, "state": wanted, "states": STATES}
        return page("list.html", may=allowed, here="list", **values)

    creating.add_forms(routes, store, config)

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
        return shown(
            store, view, allowed, unit=unit, before=before, correct=correct, message=MESSAGES.get(done, "")
        )

    @routes.get("/experiments/{experiment_id}/charts.json")
    def chart_data(request: Request, experiment_id: str, unit: Place = "") -> Response:
        if not may(request, config).read:
            raise Refused("unauthorized", "the charts need a login")
        return JSONResponse(charts.charts(store, experiment_id, unit), headers=HEADERS)

    def refused(
        experiment_id: str, allowed: May, refusal: Refused, field: str, kept: Mapping[str, str]
    ) -> Response:
        view = store.experiment(experiment_id)
        correct = 1 if field in ("round", "corrected") else None
        return shown(store, view, allowed, problem=problem_of(refusal, field), kept=kept, correct=correct)

    acting.add_actions(routes, store, config, refused)
    return routes


def shown(
    store: reading.Reads,
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
    open_rows = reading.open_rows(store, view)
    it = presenting.experiment(view, open_rows, unit)
    table = reading.table(store, view, before)
    closed = view["state"] == "finished" or any(
        row["update"] and row["block"] == view["block"] for row in table.rows
    )
    return page(
        "experiment.html",
        status=200 if problem is None else problem["status"],
        it=it,
        may=allowed,
        here="experiment",
        rows=[presenting.round_row(row, view, closed) for row in table.rows],
        dated=any(row["date"] for row in table.rows),
        newer=table.newer,
        older=table.older,
        timeline=timeline.timeline(reading.of_unit(store, view, it["unit"]), view["arms"]),
        outcome_words=charts.outcome_words(view),
        means=presenting.means(view),
        correct=correct,
        message=message,
        problem=problem,
        kept=kept or {},
    )
