"""Bulk asks and tells: many experiments in one request, one durable write, each item answered on its own.

An item that cannot be read, or that the domain refuses, is answered with its problem; the others are not touched by it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from aftereffect.core.errors import AftereffectError
from aftereffect.service.api import usual
from aftereffect.service.api.body import object_of, parse, refuse, round_of, total_of, unit_of
from aftereffect.service.api.encoding import Json, encoded
from aftereffect.service.api.endpoint import READ_APART, Call
from aftereffect.service.api.limits import items_of
from aftereffect.service.api.problems import problem_of
from aftereffect.service.api.routes import experiment_id
from aftereffect.service.api.telemetry import Telemetry
from aftereffect.service.api.usual import Order
from aftereffect.service.config import Config
from aftereffect.service.experiment import commands
from aftereffect.service.store.jobs import Sent
from aftereffect.service.store.store import Store

MANY = 256
"""From so many items on their answers are written in a thread, and other requests go on."""


class Kind(NamedTuple):
    """What a bulk route reads: all items where each is of the usual form, or else one by one."""

    route: str
    usual: Callable[[list[Any]], usual.Found]
    item: Callable[[Any], Order]


class Reading(NamedTuple):
    """A body that has been read. unread: the problems of items that mean nothing, by their place."""

    orders: list[Order]
    unread: dict[int, dict[str, Any]]


def asked(item: Any) -> Order:
    """Return the ask that an item means."""
    read = object_of(item, "an item", ("experiment", "id", "unit"))
    return _which(read), commands.Ask(unit_of(read.get("unit")))


def told(item: Any) -> Order:
    """Return the tell that an item means."""
    read = object_of(item, "an item", ("experiment", "id", "round", "total", "unit"), ("round", "total"))
    if isinstance(read["round"], str):
        refuse(f"round must be an integer, but got {read['round']!r}")
    return _which(read), commands.Tell(round_of(read["round"]), total_of(read["total"]), unit_of(read.get("unit")))


ASK = Kind("/v1/bulk/ask", usual.asks, asked)
TELL = Kind("/v1/bulk/tell", usual.tells, told)


def _which(item: dict[str, Any]) -> str:
    if ("experiment" in item) == ("id" in item):
        refuse("an item must have exactly one of the keys 'experiment' and 'id'")
    return experiment_id(item["experiment"] if "experiment" in item else item["id"])


def reading(raw: bytes, kind: Kind, most: int) -> Reading:
    """Return the commands in a body, and the problems of items that cannot be read."""
    found = usual.orders(raw, kind.usual, most)
    if found is not None:
        return Reading(found, {})
    items = items_of(object_of(parse(raw, flat=True), "the body", ("items",), ("items",)), most)
    read, unread = [], {}
    for place, item in enumerate(items):
        try:
            read.append(kind.item(item))
        except AftereffectError as error:
            named = item.get("experiment", item.get("id")) if isinstance(item, dict) else None
            unread[place] = unanswered(named, error)
    return Reading(read, unread)


def unanswered(experiment: Any, error: Exception) -> dict[str, Any]:
    """Return the answer to an item that was refused."""
    named = experiment[:100] if isinstance(experiment, str) else None
    return {"experiment": named, "error": problem_of(error)}


def answered(experiment: str, answer: dict[str, Any]) -> bytes:
    """Return the text of an item's answer.

    >>> answered("x", {"round": 1, "arm": "a"})
    b'{"experiment":"x","round":1,"arm":"a"}'
    """
    return b'{"experiment":' + encoded(experiment) + b"," + encoded(answer)[1:]


def answering(read: Reading, outcomes: list[Sent]) -> tuple[bytes, int]:
    """Return the text of all answers, in the order of the items, and how many were refused."""
    answers: list[bytes] = []
    refused = len(read.unread)
    for (experiment, _), outcome in zip(read.orders, outcomes, strict=True):
        if isinstance(outcome, bytes):
            answers.append(outcome)
        else:
            refused += 1
            answers.append(encoded(unanswered(experiment, outcome)))
    for place, problem in read.unread.items():
        answers.insert(place, encoded(problem))
    return b'{"items":[' + b",".join(answers) + b"]}", refused


class Bulk:
    """The handlers of the bulk routes."""

    def __init__(self, store: Store, config: Config, telemetry: Telemetry) -> None:
        """Answer for a store."""
        self.store, self.config, self.telemetry = store, config, telemetry

    async def bulk_ask(self, call: Call) -> Response:
        """Ask for many experiments."""
        return await self._all(call, ASK)

    async def bulk_tell(self, call: Call) -> Response:
        """Report for many experiments."""
        return await self._all(call, TELL)

    async def _all(self, call: Call, kind: Kind) -> Response:
        most = self.config.bulk_items
        if len(call.raw) < READ_APART:
            read = reading(call.raw, kind, most)
        else:
            read = await run_in_threadpool(reading, call.raw, kind, most)
        outcomes = await self.store.aperform_many(read.orders, answered)
        if len(outcomes) < MANY:
            content, refused = answering(read, outcomes)
        else:
            content, refused = await run_in_threadpool(answering, read, outcomes)
        self.telemetry.bulk(kind.route, len(outcomes) + len(read.unread) - refused, refused)
        return Json(content)
