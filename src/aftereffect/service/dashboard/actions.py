"""Forms that change something."""

import secrets
import threading
import urllib.parse
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from aftereffect.service.config import Config
from aftereffect.service.dashboard import forms
from aftereffect.service.dashboard.auth import May, check_reading, may, writing
from aftereffect.service.dashboard.views import open_rows, page, problem_of, see_other
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Command, Finish, Pause, Resume, Start, Tell
from aftereffect.service.experiment.plan import plan
from aftereffect.service.messages import Plan
from aftereffect.service.settings import checked_settings

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

Fields = Annotated[dict[str, str], Depends(forms.fields)]
Refusal = Callable[[str, May, Refused, str, Mapping[str, str]], Response]
PLAYS = ("ask", "tell", "missing", "amend")
MOVES: dict[str, tuple[Command, str]] = {
    "start": (Start(), "started"),
    "pause": (Pause(), "paused"),
    "resume": (Resume(), "resumed"),
    "finish": (Finish(), "finished"),
}


class Wrong(Exception):
    """A refusal, with the field it is about."""

    def __init__(self, refusal: Refused, field: str) -> None:
        """Keep both."""
        super().__init__(str(refusal))
        self.refusal, self.field = refusal, field


def reports(store: "Store", experiment_id: str, given: Mapping[str, str]) -> list[tuple[str, Command]]:
    """Return the fields and commands of the form for the open round: `total` for one unit, `total-3` for the fourth."""
    number = _whole("round", given)
    units = store.experiment(experiment_id)["units"]
    names = ["total"] if len(units) == 1 else [f"total-{i}" for i in range(len(units))]
    found: list[tuple[str, Command]] = []
    for field, unit in zip(names, units, strict=True):
        text = given.get(field, "")
        if text.strip() or field == "total":
            found.append((field, Tell(number, _number(field, "total", text), unit)))
    if not found:
        raise Wrong(Refused("invalid", "one total at least must be given, but all are empty"), "")
    return found


def gaps(store: "Store", experiment_id: str, given: Mapping[str, str]) -> list[tuple[str, Command]]:
    """Return the commands that close the rest of the open round as missing; none if it is closed already."""
    number = _whole("round", given)
    view = store.experiment(experiment_id)
    if view["open_round"] != number:
        raise Wrong(Refused("not_open", f"round must be the open one to be closed as missing, but got {number}"), "")
    waiting = [row["unit"] for row in open_rows(store, view) if row["status"] == "open"]
    return [("", Tell(number, None, unit)) for unit in waiting]


def _number(field: str, name: str, text: str) -> float:
    try:
        return forms.number(name, text)
    except Refused as refusal:
        raise Wrong(refusal, field) from None


def _whole(name: str, given: Mapping[str, str]) -> int:
    try:
        return forms.whole(name, given.get(name, ""))
    except Refused as refusal:
        raise Wrong(refusal, name) from None


def carry_out(store: "Store", experiment_id: str, commands: list[tuple[str, Command]]) -> None:
    """Carry out all commands, and then complain about the first that was refused."""
    answers = store.perform_many([(experiment_id, command) for _, command in commands])
    for (field, _), answer in zip(commands, answers, strict=True):
        if isinstance(answer, Refused):
            raise Wrong(answer, field)


def add_actions(routes: APIRouter, store: "Store", config: Config, refused: Refusal) -> None:
    """Add a route for each button. refused: shows the page again, with the reason and what was filled in."""

    def act(request: Request, experiment_id: str, given: Mapping[str, str], word: str) -> Response:
        allowed = may(request, config)
        try:
            done = _acted(store, experiment_id, given, word)
        except Wrong as wrong:
            return refused(experiment_id, allowed, wrong.refusal, wrong.field, given)
        except Refused as refusal:
            if refusal.code == "not_found":
                raise
            return refused(experiment_id, allowed, refusal, "", given)
        query = {"done": done} if done else {}
        if word == "amend" and given.get("unit"):
            query["unit"] = given["unit"]
        place = f"/experiments/{urllib.parse.quote(experiment_id, safe='')}"
        return see_other(place + (f"?{urllib.parse.urlencode(query)}" if query else ""))

    for word in (*PLAYS, "arms", *MOVES):
        # To play is one scope, to steer another: the same as by REST.
        guard = [Depends(writing(config, "play" if word in PLAYS else "admin"))]
        path = f"/experiments/{{experiment_id}}/{word}"
        routes.add_api_route(path, _route(act, word), methods=["POST"], dependencies=guard)


def _route(act: Callable[[Request, str, Mapping[str, str], str], Response], word: str) -> Callable[..., Response]:
    def answer(request: Request, experiment_id: str, given: Fields) -> Response:
        return act(request, experiment_id, given, word)

    return answer


def _acted(store: "Store", experiment_id: str, given: Mapping[str, str], word: str) -> str:
    """Do what a form asks; return the word for the page's message."""
    if word == "ask":
        store.perform(experiment_id, Ask())
        return ""
    if word == "tell":
        carry_out(store, experiment_id, reports(store, experiment_id, given))
        return "told"
    if word == "missing":
        carry_out(store, experiment_id, gaps(store, experiment_id, given))
        return "missing"
    if word == "amend":
        total = _number("corrected", "total", given.get("corrected", ""))
        store.perform(experiment_id, Amend(_whole("round", given), total, given.get("unit") or None))
        return "amended"
    if word == "arms":
        away = given.get("move") != "back"
        arm = given.get("arm", "")
        store.perform(experiment_id, Away(arm) if away else Back(arm))
        return "away" if away else "back"
    command, done = MOVES[word]
    store.perform(experiment_id, command)
    return done


REMEMBERED = 1_000


class Once:
    """Remembers which forms were taken, so that one sent twice (a second click, a reload) makes one experiment."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._lock = threading.Lock()
        self._made: OrderedDict[str, str] = OrderedDict()

    def create(self, store: "Store", key: str, settings: Mapping[str, Any]) -> str:
        """Return the id of the experiment that the form with this key made, now or before."""
        with self._lock:
            known = self._made.get(key)
            if known is not None:
                return known
            made: str = store.create(settings)["id"]
            if key:
                self._made[key] = made
                if len(self._made) > REMEMBERED:
                    self._made.popitem(last=False)
            return made


def planned(given: Mapping[str, str]) -> Plan:
    """Return the plan for a form; it need not have a name yet."""
    settings = checked_settings(forms.settings({**given, "name": given.get("name", "").strip() or "A plan"}))
    return plan(settings)


def shown(
    allowed: May, given: Mapping[str, str], found: Plan | None = None, refusal: Refused | None = None
) -> Response:
    """Return the form's page, with what was filled in."""
    kept = {**forms.BLANK, **given}
    kept["once"] = given.get("once") or secrets.token_urlsafe(16)
    problem = None if refusal is None else problem_of(refusal, forms.field_of(refusal))
    more = any(kept[name] != forms.BLANK[name] for name in ("units", "horizon", "start_date", "player", "seed"))
    values = {"kept": {**kept, "more": more}, "plan": found, "problem": problem}
    return page("new.html", status=200 if refusal is None else refusal.status, may=allowed, here="new", **values)


def add_forms(routes: APIRouter, store: "Store", config: Config) -> None:
    """Add the form's routes."""
    once, guard = Once(), [Depends(writing(config, "admin"))]

    @routes.get("/experiments/new")
    def blank(request: Request) -> Response:
        allowed = may(request, config)
        check_reading(allowed)
        if not allowed.manage:
            raise Refused("forbidden", "the token must have the scope 'admin' to create an experiment, but has not")
        return shown(allowed, {})

    @routes.post("/experiments/plan", dependencies=guard)
    def preview(request: Request, given: Fields) -> Response:
        allowed = may(request, config)
        try:
            return shown(allowed, given, planned(given))
        except Refused as refusal:
            return shown(allowed, given, None, refusal)

    @routes.post("/experiments/new", dependencies=guard)
    def create(request: Request, given: Fields) -> Response:
        allowed = may(request, config)
        try:
            made = once.create(store, given.get("once", ""), forms.settings(given))
        except Refused as refusal:
            return shown(allowed, given, None, refusal)
        return see_other(f"/experiments/{made}?done={'drafted' if given.get('draft') else 'created'}")
