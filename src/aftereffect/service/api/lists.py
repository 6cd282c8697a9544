"""Shapes of lists and of bulk requests, and of the record: pages with a cursor, items answered one by one."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from aftereffect.service.api.shapes import Number, Problem, Report, RoundNumber, State, Turn, Unit, reply, request

Cursor = Annotated[str | int | None, Field(description="What to send as `after` for the next page; null at the end.")]
Id = Annotated[str, Field(min_length=1, max_length=100)]


class Row(BaseModel):
    """One unit's round in the record."""

    model_config = reply(
        {"round": 17, "unit": "1", "arm": "email", "total": 31.5, "status": "reported", "draw": False, "block": 3,
         "probability": 0.41, "washin": False, "measured": None, "update": False}
    )

    round: RoundNumber
    unit: str
    arm: str
    total: float | None
    status: str
    draw: bool
    block: int
    probability: float
    washin: bool
    measured: bool | None
    update: bool


class Listed(BaseModel):
    """An experiment in a list: its settings and state."""

    model_config = reply({"id": "pZk2Yt0nQ9vLr8sXw1aBcA", "name": "Autumn mailings", "state": "running", "round": 16})

    id: str
    name: str
    state: State
    round: int


class Experiments(BaseModel):
    """A page of experiments, in the order they were made."""

    model_config = reply(
        {"items": [{"id": "pZk2Yt0nQ9vLr8sXw1aBcA", "name": "Autumn mailings", "state": "running", "round": 16}],
         "next": None}
    )

    items: list[Listed]
    next: Cursor


class Rounds(BaseModel):
    """A page of the record, in the order of rounds and units."""

    model_config = reply(
        {"items": [{"round": 1, "unit": "1", "arm": "letter", "total": 12.0, "status": "reported", "draw": True,
                    "block": 1, "probability": 0.33, "washin": True, "measured": None, "update": False}],
         "next": "1"}
    )

    items: list[Row]
    next: Cursor


class Events(BaseModel):
    """A page of the log, as it is stored, with its chain of hashes."""

    model_config = reply({"items": [{"seq": 1, "kind": "ask", "round": 1, "unit": "1"}], "next": None})

    items: list[dict[str, Any]]
    next: Cursor


class Series(BaseModel):
    """The columns behind the charts."""

    model_config = reply({"round": [1, 2], "arm": ["letter", "letter"], "total": [12.0, None]})


class Verdict(BaseModel):
    """What replaying the log found: it is as stored, or the first thing that differs."""

    model_config = reply({"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "ok": True, "rounds": 365, "finding": None})

    experiment: str
    ok: bool
    rounds: int | None
    finding: str | None


class Verdicts(BaseModel):
    """Verdicts, a page at a time; a page ends after some seconds, however few they are."""

    model_config = reply(
        {
            "items": [{"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "ok": True, "rounds": 365, "finding": None}],
            "next": None,
        }
    )

    items: list[Verdict]
    next: str | None


class BulkAskItem(BaseModel):
    """One ask; `id` is another word for `experiment`."""

    model_config = request({"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA"})

    experiment: Id
    unit: Unit = None


class BulkAsk(BaseModel):
    """Asks over many experiments."""

    model_config = request({"items": [{"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA"}]})

    items: Annotated[list[BulkAskItem], Field(max_length=10_000)]


class BulkTellItem(BaseModel):
    """One report; `id` is another word for `experiment`."""

    model_config = request({"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "round": 17, "total": 31.5})

    experiment: Id
    round: RoundNumber
    total: Number | None
    unit: Unit = None


class BulkTell(BaseModel):
    """Reports over many experiments."""

    model_config = request({"items": [{"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "round": 17, "total": 31.5}]})

    items: Annotated[list[BulkTellItem], Field(max_length=10_000)]


class Unanswered(BaseModel):
    """An item that was refused; the others are not touched by it."""

    model_config = reply({"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "error": {"status": 409, "code": "conflict"}})

    experiment: str | None
    error: Problem


class BulkTurns(BaseModel):
    """The answers to bulk asks, in the order of the items."""

    model_config = reply({"items": [{"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "round": 17, "arm": "email"}]})

    items: list[Turn | Unanswered]


class BulkReports(BaseModel):
    """The answers to bulk tells, in the order of the items."""

    model_config = reply({"items": [{"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "round": 17, "status": "reported"}]})

    items: list[Report | Unanswered]


class Tokens(BaseModel):
    """The tokens there are: names, scopes and dates, never the tokens themselves."""

    model_config = reply({"items": [{"id": "3fQ", "name": "till system", "scopes": ["play"]}]})

    items: list[dict[str, Any]]
