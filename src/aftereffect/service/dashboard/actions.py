"""Forms that change something: the buttons of an experiment's page, and the form for a new experiment.

A form of an experiment's page is turned into commands. If all succeed, the browser is redirected to the page; if one is
refused, the page is shown again with the reason and the values entered.
"""

import secrets
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from aftereffect.service import totals, words
from aftereffect.service.dashboard import forms
from aftereffect.service.dashboard.auth import (
    Manager,
    ManagerOfPage,
    May,
    Open,
    PageRoute,
    Player,
    see_other,
    with_scope,
)
from aftereffect.service.dashboard.forms import FormFields
from aftereffect.service.dashboard.views import design_of, exact, experiment_page, open_rows, page, path_of, problem_of
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.commands import Amend, Command, Tell
from aftereffect.service.experiment.plan import planned
from aftereffect.service.messages import NewReminder, Note, Overview, Plan, Reports, TellItem
from aftereffect.service.operations import OPERATIONS, forget_reminder, remind
from aftereffect.service.settings import PlanQuestion, checked_settings
from aftereffect.service.store.store import Store

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Form = Mapping[str, str]
# Pairs of a form field and the command made from it.
Orders = list[tuple[str, Command]]


@contextmanager
def _about(field: str) -> Iterator[None]:
    """Add the form field to a `Refused` raised inside."""
    try:
        yield
    except Refused as refusal:
        refusal.extra["field"] = field
        raise


def _round(form: Form) -> int:
    return forms.whole("round", form.get("round", ""))


def _told(view: Overview, number: int, total: float | None, unit: str | None) -> TellItem:
    return checked(TellItem, {"experiment": view.id, "round": number, "total": total, "unit": unit}, "the form")


def tell(store: Store, view: Overview, form: Form) -> Orders:
    """Report the open round: field `total` if there is one unit, else `total-0`, `total-1` and so on."""
    number, units = _round(form), view.units
    if len(units) == 1:
        forms.require(form, {"total": f"Total of round {number:,}"})
    names = ["total"] if len(units) == 1 else [f"total-{i}" for i in range(len(units))]
    found: Orders = []
    ahead = form.get("anyway") == "yes"
    for field, unit in zip(names, units, strict=True):
        text = form.get(field, "")
        if text.strip() or field == "total":
            with _about(field):
                told = _told(view, number, totals.number("total", text), unit)
                found.append((field, Tell(told.round, told.total, told.unit, ahead, next=True)))
    if not found:
        waiting = {f"total-{i}": row for i, row in enumerate(open_rows(store, view)) if row["status"] == "open"}
        forms.require(form, {name: f"Total of unit {row['unit']}" for name, row in waiting.items()})
    return found


def missing(store: Store, view: Overview, form: Form) -> Orders:
    """Close the open round; units without a report are missing."""
    number = _round(form)
    if view.open_round != number:
        raise Refused("not_open", f"round must be the open one to be closed as missing, but got {number}")
    ahead = form.get("anyway") == "yes"
    waiting = [row["unit"] for row in open_rows(store, view) if row["status"] == "open"]
    return [("", Tell(number, None, unit, ahead, next=True)) for unit in waiting]


def amend(store: Store, view: Overview, form: Form) -> Orders:
    """Correct a reported round."""
    with _about("corrected"):
        forms.require(form, {"corrected": "Correct total"})
        total = totals.number("total", form["corrected"])
    told = _told(view, _round(form), total, form.get("unit") or None)
    return [("", Amend(told.round, told.total, told.unit))]


def note(store: Store, view: Overview, form: Form) -> Orders:
    """Write a note on a round, or remove it: for one unit or, if none is chosen, for all."""
    text = form.get("note", "").strip()
    given = checked(Note, {"note": text or None, "unit": form.get("unit") or None}, "the form")
    units = view.units if given.unit is None else [given.unit]
    return [("note", commands.Note(_round(form), given.note, unit)) for unit in units]


def arms(store: Store, view: Overview, form: Form) -> Orders:
    """Mark an arm as away, or as back."""
    arm = form.get("arm", "")
    return [("", commands.Back(arm) if form.get("move") == "back" else commands.Away(arm))]


def check_range(view: Overview, told: Iterable[tuple[str, float | None]], form: Form) -> None:
    """Refuse a total that the range makes impossible, until somebody has said that it is meant. told: with fields."""
    if view.high is None or form.get("anyway") == "yes":
        return
    design = design_of(view)
    low, high = design.limits
    for field, total in told:
        if total is not None and not low <= total <= high:
            rule = f"the total must be in {words.possible(design)}, the range of a total with these settings"
            detail = f"{rule}, but got {exact(total)}. Is it a typing error? If not, the range is wrong"
            raise Refused("invalid", detail, field=field, outside=True)


def add_action(name: str, operation: str, orders: Command | Callable[[Store, Overview, Form], Orders]) -> None:
    """Add the route of a button, which needs the scope of this operation.

    orders: a command, or a function that makes the commands from the form.
    """
    guard = with_scope(OPERATIONS[operation].scope)

    @router.post(f"/experiments/{{experiment_id}}/{name}", name=name)
    def answer(store: Open, experiment_id: str, allowed: Annotated[May, Depends(guard)], form: FormFields) -> Response:
        try:
            given = orders(store, store.experiment(experiment_id), form) if callable(orders) else [("", orders)]
            told = [(field or "corrected", each.total) for field, each in given if isinstance(each, Tell | Amend)]
            check_range(store.experiment(experiment_id), told, form)
            answers = store.perform_many([(experiment_id, command) for _, command in given])
            for (field, _), done in zip(given, answers, strict=True):
                if isinstance(done, Refused):
                    done.extra["field"] = field
                    raise done
        except Refused as refusal:
            return _refused(store, experiment_id, allowed, refusal, form)
        reported = [command.round for _, command in given if isinstance(command, Tell | Amend) and name != "missing"]
        query: dict[str, Any] = {"told": reported[-1]} if reported else {"done": name}
        last = answers[-1] if answers else {}
        if not isinstance(last, Refused) and last.get("correction"):
            query = {"done": "corrected_late" if last["learned"] else "corrected_record"}
        query |= {"unit": form["unit"]} if form.get("unit") else {}
        return see_other(path_of(experiment_id) + ("" if name == "ask" else f"?{urllib.parse.urlencode(query)}"))


def _refused(store: Store, experiment_id: str, allowed: May, refusal: Refused, form: Form) -> Response:
    """Return the page with what is wrong with a form."""
    field = refusal.extra.get("field", "")
    return experiment_page(store, experiment_id, allowed, refusal=refusal, field=field, kept=form)


@router.post("/experiments/{experiment_id}/reminder")
def reminder(store: Open, experiment_id: str, allowed: Manager, form: FormFields) -> Response:
    """Set or remove the reminder of an experiment."""
    try:
        if form.get("webhook"):
            with _about("after"):
                after = forms.duration("after", form.get("after", "").strip() or "12 hours")
                when = "before" if form.get("when") == "before" else "after"
                new = checked(NewReminder, {"webhook": form["webhook"], when: after}, "the form")
            remind.run(store, id=experiment_id, body=new)
        else:
            forget_reminder.run(store, id=experiment_id)
    except Refused as refusal:
        return _refused(store, experiment_id, allowed, refusal, form)
    return see_other(f"{path_of(experiment_id)}?done=reminder")


@router.post("/experiments/{experiment_id}/reports")
def reports(store: Open, experiment_id: str, allowed: Player, form: FormFields) -> Response:
    """Report several rounds, from lines of text or from a CSV file, all or none."""
    try:
        forms.require(form, {"lines": "Totals"})
        given: dict[str, Any] = {"csv": form["lines"], "ahead": form.get("anyway") == "yes", "next": True}
        given |= {"restate": form.get("restate") == "yes"}
        given |= {"first": forms.whole("first", form["first"])} if form.get("first") else {}
        command = totals.reports(checked(Reports, given, "the form"))
        check_range(store.experiment(experiment_id), (("lines", each.total) for each in command.items), form)
        done = store.perform(experiment_id, command)
    except Refused as refusal:
        return experiment_page(store, experiment_id, allowed, refusal=refusal, field="lines", kept=form)
    query = {"told": done["items"][-1]["round"], "since": done["items"][0]["round"]}
    return see_other(f"{path_of(experiment_id)}?{urllib.parse.urlencode(query)}")


add_action("ask", "ask", commands.Ask())
add_action("tell", "tell", tell)
add_action("missing", "tell", missing)
add_action("amend", "amend", amend)
add_action("note", "note", note)
add_action("arms", "away", arms)
add_action("start", "start", commands.Start())
add_action("pause", "pause", commands.Pause())
add_action("resume", "resume", commands.Resume())
add_action("finish", "finish", commands.Finish())


def new_page(allowed: May, form: Form, found: Plan | None = None, refusal: Refused | None = None) -> Response:
    """Return the form for a new experiment, with the values entered so far."""
    kept: dict[str, Any] = {**forms.BLANK, **form}
    if not form.get("once") or (refusal is not None and refusal.code == "conflict"):
        # An idempotency key: the form sent twice (a double click, a reload) creates one experiment.
        kept["once"] = secrets.token_urlsafe(16)
    more = ("units", "horizon", "start_date", "player", "seed")
    kept["more"] = any(kept[name] != forms.BLANK[name] for name in more)
    problem = None if refusal is None else problem_of(refusal, forms.field_of(refusal))
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
