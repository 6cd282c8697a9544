"""The buttons of an experiment's page: each form becomes commands, and is answered by going back to the page."""

import urllib.parse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Request, Response

from aftereffect.service.config import Config
from aftereffect.service.dashboard import forms
from aftereffect.service.dashboard.guarding import May, may, writing
from aftereffect.service.dashboard.reading import open_rows
from aftereffect.service.dashboard.routing import see_other
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Command, Finish, Pause, Resume, Start, Tell

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
        raise Wrong(
            Refused("not_open", f"round must be the open one to be closed as missing, but got {number}"), ""
        )
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
