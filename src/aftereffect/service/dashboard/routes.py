"""The routes of the pages: the list of experiments, one experiment, and static files."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from aftereffect.service.dashboard import actions, auth, views
from aftereffect.service.dashboard.auth import Open, PageRoute, Reader
from aftereffect.service.dashboard.views import Shown, Text

ASSETS = ("dashboard.css", "plotly.css", "page.js", "charts.js", "mark.svg", "plotly.min.js")
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
YEAR = 31_536_000
router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
def experiments(store: Open, allowed: Reader, after: Text = "", state: Text = "", search: Text = "") -> Response:
    """Show the list of experiments."""
    return views.list_page(store, allowed, after, state, search)


@router.get("/compare")
def compare(request: Request, store: Open, allowed: Reader) -> Response:
    """Show experiments side by side: those whose ids the query has."""
    return views.compare_page(store, allowed, request.query_params.getlist("id"))


# Before the page of an experiment, because its path pattern would also match /experiments/new.
router.include_router(actions.router)
router.include_router(auth.router)


@router.get("/experiments/{experiment_id}")
def experiment(store: Open, allowed: Reader, experiment_id: str, shown: Annotated[Shown, Depends()]) -> Response:
    """Show one experiment."""
    return views.experiment_page(store, experiment_id, allowed, shown)


def add_asset(name: str) -> None:
    """Add the route of one static file; file paths are never taken from requests."""

    @router.get(f"/static/{name}", name=name)
    def answer(request: Request) -> Response:
        headers = {
            "Vary": "Accept-Encoding",
            "Cache-Control": f"public, max-age={YEAR}, immutable" if request.url.query else "no-cache",
        }
        content = views.asset(name)
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = views.packed_asset(name), "gzip"
        return Response(content, media_type=TYPES[name.rsplit(".", 1)[-1]], headers=headers)


for each in ASSETS:
    add_asset(each)
