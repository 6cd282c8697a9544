"""The routes of the pages: the list, an experiment, the forms that change something, and static files.

The form of a button becomes calls of the service, as a command does. If they succeed, the browser is redirected to the
page, whose address says what is to be said there; if one is refused, the page is shown again with the reason and the
values entered.
"""

import secrets
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Request, Response

from aftereffect.core.checks import shown
from aftereffect.service import fields, totals, words
from aftereffect.service.dashboard import auth, forms, views
from aftereffect.service.dashboard.auth import Manager, ManagerOfPage, May, Open, Reader, see_other, with_scope
from aftereffect.service.dashboard.forms import FormFields
from aftereffect.service.dashboard.views import Shown, Text, design_of, experiment_page, open_rows, page, path_of
from aftereffect.service.errors import Corrupt, Refused, checked
from aftereffect.service.experiment.plan import planned
from aftereffect.service.local import Local
from aftereffect.service.messages import Overview, Plan, State, Told
from aftereffect.service.operations import OPERATIONS
from aftereffect.service.settings import PlanQuestion, checked_settings

router = APIRouter(include_in_schema=False)
router.include_router(auth.router)

ASSETS = ("dashboard.css", "plotly.css", "page.js", "charts.js", "mark.svg", "plotly.min.js")
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
YEAR, LIST_LENGTH = 31_536_000, 100
Form = Mapping[str, str]
Query = dict[str, Any]
"""Of the address of the page after a form: `told`, the round reported; or `done`, the key of a message."""


@router.get("/")
def experiments(store: Open, allowed: Reader, after: Text = "", state: Text = "", search: Text = "") -> Response:
    """Show the list of experiments, those that need a person first. search: a part of the names."""
    wanted = state if state in get_args(State) else ""
    found = store.experiments(after=after or None, limit=LIST_LENGTH, state=wanted or None, search=search or None)
    items = [{"name": each, "path": path_of(each), "damaged": True} for each in found.get("damaged", ())]
    for item in found["items"]:
        try:
            view = store.experiment(item["id"])
        except Corrupt:
            items.append({**item, "path": path_of(item["id"]), "damaged": True})
            continue
        shown_as = {"path": path_of(view.id), "damaged": False, "waiting": words.waiting(view, store.now())}
        items.append({**dict(view), **shown_as})
    items.sort(key=lambda item: (-1, "") if item["damaged"] else (item["waiting"].rank, item["waiting"].at))
    values = {"items": items, "next": found["next"], "after": after, "state": wanted}
    values |= {"search": search, "query": urllib.parse.urlencode({"state": wanted, "search": search})}
    return page("list.html", allowed, here="list", **values)


@router.get("/compare")
def compare(request: Request, store: Open, allowed: Reader) -> Response:
    """Show experiments side by side: those whose ids the query has."""
    ids = request.query_params.getlist("id")
    if not ids:
        raise Refused("invalid", "experiments must be chosen in the list to be compared, but none were")
    items = [{**dict(item), "path": path_of(item.id)} for item in store.compare(ids)]
    return page("compare.html", allowed, here="compare", items=items)


@contextmanager
def _about(field: str) -> Iterator[None]:
    """Add the form field to a `Refused` raised inside."""
    try:
        yield
    except Refused as refusal:
        refusal.extra["field"] = field
        raise


def _round(form: Form) -> int:
    return totals.whole("round", form.get("round", ""))


def _report(service: Local, view: Overview, form: Form, told: Sequence[tuple[str, str, float | None]]) -> None:
    """Report the open round, all totals or none. told: the form field, the unit and the total of each."""
    for field, _, total in told:
        check_range(view, field, total, form)
    items = [{"round": _round(form), "unit": unit, "total": total} for _, unit, total in told]
    try:
        service.tell_many(view.id, items, ahead=form.get("anyway") == "yes", next=True)
    except Refused as refusal:
        if place := refusal.extra.get("place"):
            refusal.extra["field"] = told[place - 1][0]
            refusal.detail = refusal.detail.removeprefix(f"report {place}: ")
        raise


def tell(service: Local, view: Overview, form: Form) -> Query:
    """Report the open round: field `total` if there is one unit, else `total-0`, `total-1` and so on."""
    number, several = _round(form), len(view.units) > 1
    names = [f"total-{i}" if several else "total" for i in range(len(view.units))]
    told: list[tuple[str, str, float | None]] = []
    for field, unit in zip(names, view.units, strict=True):
        if form.get(field, "").strip():
            with _about(field):
                total = checked(Told, {"total": totals.number("total", form[field])}).total
            told.append((field, unit, total))
    if not told:
        rows = zip(names, open_rows(service.store, view), strict=False)
        waiting = {field: f"Total of unit {row['unit']}" for field, row in rows if row["status"] == "open"}
        forms.require(form, waiting if several else {"total": f"Total of round {number:,}"})
    _report(service, view, form, told)
    return {"told": number}


def missing(service: Local, view: Overview, form: Form) -> Query:
    """Close the open round; units without a report are missing."""
    if view.open_round != _round(form):
        raise Refused("not_open", f"round must be the open one to be closed as missing, but got {_round(form)}")
    waiting = [row["unit"] for row in open_rows(service.store, view) if row["status"] == "open"]
    _report(service, view, form, [("", unit, None) for unit in waiting])
    return {"done": "missing"}


def reports(service: Local, view: Overview, form: Form) -> Query:
    """Report several rounds, from lines of text or from a CSV file, all or none."""
    forms.require(form, {"lines": "Totals"})
    with _about("lines"):
        for item in totals.items(form["lines"]):
            check_range(view, "lines", item.total, form)
        first = totals.whole("first", form["first"]) if form.get("first") else None
        options: dict[str, Any] = {"ahead": form.get("anyway") == "yes", "restate": form.get("restate") == "yes"}
        done = service.tell_many(view.id, csv=form["lines"], first=first, next=True, **options).items
    return {"told": done[-1].round, "since": done[0].round}


def amend(service: Local, view: Overview, form: Form) -> Query:
    """Correct a reported round."""
    with _about("corrected"):
        forms.require(form, {"corrected": "Correct total"})
        total = totals.number("total", form["corrected"])
        check_range(view, "corrected", total, form)
        done = service.amend(view.id, _round(form), total, form.get("unit") or None)
    if done.correction is None:
        return {"told": done.round}
    return {"done": "corrected_late" if done.learned else "corrected_record"}


def note(service: Local, view: Overview, form: Form) -> Query:
    """Write a note on a round, or remove it: for one unit or, if none is chosen, for all."""
    with _about("note"):
        for unit in [form["unit"]] if form.get("unit") else view.units:
            service.note(view.id, _round(form), form.get("note", "").strip() or None, unit)
    return {"done": "note"}


def reminder(service: Local, view: Overview, form: Form) -> Query:
    """Set or remove the reminder of an experiment."""
    when = "before" if form.get("when") == "before" else "after"
    with _about("after"):
        length = fields.duration("after", form.get("after", "").strip() or "12 hours")
        service.remind(view.id, form.get("webhook") or None, **{when: length})
    return {"done": "reminder"}


def arms(service: Local, view: Overview, form: Form) -> Query:
    """Mark an arm as away, or as back."""
    service.change(view.id, "back" if form.get("move") == "back" else "away", form.get("arm", ""))
    return {"done": "arms"}


def change(verb: str, service: Local, view: Overview, form: Form) -> Query:
    """Start, pause, resume or finish the experiment."""
    service.change(view.id, verb)
    return {"done": verb}


def ask(service: Local, view: Overview, form: Form) -> Query:
    """Open the next round."""
    service.ask(view.id)
    return {}


def check_range(view: Overview, field: str, total: float | None, form: Form) -> None:
    """Refuse a total that the range makes impossible, until somebody has said that it is meant."""
    if view.high is None or total is None or form.get("anyway") == "yes":
        return
    design = design_of(view)
    low, high = design.limits
    if not low <= total <= high:
        rule = f"the total must be in {words.possible(design)}, but got {words.exact(total)}"
        detail = f"{rule}. Is it a typing error? If not, the range is wrong"
        raise Refused("invalid", detail, field=field, outside=True)


def add_action(name: str, operation: str, act: Callable[[Local, Overview, Form], Query]) -> None:
    """Add the route of a form, which needs the scope of this operation."""
    guard = with_scope(OPERATIONS[operation].scope)

    @router.post(f"/experiments/{{experiment_id}}/{name}", name=name)
    def answer(store: Open, experiment_id: str, allowed: Annotated[May, Depends(guard)], form: FormFields) -> Response:
        try:
            query = act(Local(store), store.experiment(experiment_id), form)
        except Refused as refusal:
            return experiment_page(store, experiment_id, allowed, refusal=refusal, kept=form)
        query |= {"unit": form["unit"]} if form.get("unit") else {}
        return see_other(path_of(experiment_id) + (f"?{urllib.parse.urlencode(query)}" if query else ""))


add_action("ask", "ask", ask)
add_action("tell", "tell", tell)
add_action("missing", "tell", missing)
add_action("reports", "reports", reports)
add_action("amend", "amend", amend)
add_action("note", "note", note)
add_action("arms", "away", arms)
add_action("reminder", "remind", reminder)
for verb in ("start", "pause", "resume", "finish"):
    add_action(verb, verb, partial(change, verb))


def new_page(allowed: May, form: Form, found: Plan | None = None, refusal: Refused | None = None) -> Response:
    """Return the form for a new experiment, with the values entered so far."""
    kept: dict[str, Any] = {**forms.BLANK, **form}
    if not form.get("once") or (refusal is not None and refusal.code == "conflict"):
        # An idempotency key: the form sent twice (a double click, a reload) creates one experiment.
        kept["once"] = secrets.token_urlsafe(16)
    more = ("units", "horizon", "start_date", "max_lag", "player", "seed")
    kept["more"] = any(kept[name] != forms.BLANK[name] for name in more)
    problem = None if refusal is None else views.problem_of(refusal, forms.field_of(refusal))
    status = 200 if refusal is None else refusal.status
    return page("new.html", allowed, status=status, here="new", kept=kept, plan=found, problem=problem)


@router.get("/experiments/new")
def new(allowed: ManagerOfPage) -> Response:
    """Show the form for a new experiment."""
    return new_page(allowed, {})


@router.post("/experiments/plan")
def preview(allowed: Manager, form: FormFields) -> Response:
    """Show the form with its plan; the name may still be empty."""
    try:
        found = forms.settings({**form, "name": "A plan"})
        question = {name: value for name, value in found.items() if name in PlanQuestion.model_fields}
        return new_page(allowed, form, planned(question))
    except Refused as refusal:
        return new_page(allowed, form, None, refusal)


@router.post("/experiments/new")
def create(store: Open, allowed: Manager, form: FormFields) -> Response:
    """Create an experiment."""
    try:
        found = forms.settings(form) | {"draft": bool(form.get("draft"))}
        settings = checked_settings({name: found[name] for name in found if name not in ("gap", "noise")})
        key = form.get("once") or None
        source = form.get("source")
        made = store.correct(source, settings, key=key) if source else store.create(settings, key=key)
    except Refused as refusal:
        return new_page(allowed, form, None, refusal)
    done = "corrected" if form.get("source") else "drafted" if form.get("draft") else "created"
    return see_other(f"{path_of(made.id)}?done={done}")


@router.get("/experiments/{experiment_id}/correct")
def correct(store: Open, allowed: ManagerOfPage, experiment_id: str) -> Response:
    """Show the form for a new experiment that corrects the settings of another and inherits its rounds."""
    return new_page(allowed, forms.filled(store.experiment(experiment_id)))


# After the other pages, because its path would also match /experiments/new.
@router.get("/experiments/{experiment_id}")
def experiment(store: Open, allowed: Reader, experiment_id: str, asked: Annotated[Shown, Depends()]) -> Response:
    """Show one experiment."""
    return experiment_page(store, experiment_id, allowed, asked)


@router.get("/static/{name}")
def static(request: Request, name: str) -> Response:
    """Return a static file; nothing else of a request leads to a file."""
    if name not in ASSETS:
        raise Refused("not_found", f"name must be one of {', '.join(ASSETS)}, but got {shown(name)}")
    headers = {
        "Vary": "Accept-Encoding",
        "Cache-Control": f"public, max-age={YEAR}, immutable" if request.url.query else "no-cache",
    }
    content = views.asset(name)
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers["Content-Encoding"] = views.packed_asset(name), "gzip"
    return Response(content, media_type=TYPES[name.rsplit(".", 1)[-1]], headers=headers)
