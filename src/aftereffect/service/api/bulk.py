"""Bulk asks and tells: many experiments in one request, one durable write, each item answered on its own.

An item that cannot be read, or that the domain refuses, is answered with its problem; the others are not touched by it.
"""

from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from aftereffect.core.errors import AftereffectError
from aftereffect.service import commands
from aftereffect.service.api.endpoint import Call
from aftereffect.service.api.limits import items_of
from aftereffect.service.api.problems import problem_of
from aftereffect.service.api.routes import ID, answer, experiment_id
from aftereffect.service.api.strictness import (
    MAX_INTEGER,
    UNIT_LENGTH,
    object_of,
    refuse,
    round_of,
    total_of,
    unit_of,
)
from aftereffect.service.api.telemetry import Telemetry
from aftereffect.service.config import Config
from aftereffect.service.desk import Desk

Order = tuple[str, commands.Command]
Answers = list[dict[str, Any]]


# Ten thousand items at once: those of the usual form are read without the checks that word a refusal.
ASKED = (frozenset({"experiment"}), frozenset({"experiment", "unit"}))
TOLD = (frozenset({"experiment", "round", "total"}), frozenset({"experiment", "round", "total", "unit"}))


def asked(item: Any) -> Order:
    """Return the ask that an item means."""
    if type(item) is dict and item.keys() in ASKED and _plain(item):
        return item["experiment"], commands.Ask(item.get("unit"))
    read = object_of(item, "an item", ("experiment", "id", "unit"))
    return _which(read), commands.Ask(unit_of(read.get("unit")))


def told(item: Any) -> Order:
    """Return the tell that an item means."""
    if type(item) is dict and item.keys() in TOLD and _plain(item):
        number, total = item["round"], item["total"]
        if type(number) is int and 1 <= number < MAX_INTEGER and type(total) is float:
            return item["experiment"], commands.Tell(number, total, item.get("unit"))
    read = object_of(item, "an item", ("experiment", "id", "round", "total", "unit"), ("round", "total"))
    if isinstance(read["round"], str):
        refuse(f"round must be an integer, but got {read['round']!r}")
    return _which(read), commands.Tell(round_of(read["round"]), total_of(read["total"]), unit_of(read.get("unit")))


def _plain(item: dict[str, Any]) -> bool:
    """Say whether an item's experiment and unit are such as are nearly always sent."""
    where, unit = item["experiment"], item.get("unit")
    usual = unit is None or (type(unit) is str and 1 <= len(unit) <= UNIT_LENGTH)
    return usual and type(where) is str and ID.fullmatch(where) is not None


def _which(item: dict[str, Any]) -> str:
    if ("experiment" in item) == ("id" in item):
        refuse("an item must have exactly one of the keys 'experiment' and 'id'")
    return experiment_id(item["experiment"] if "experiment" in item else item["id"])


def orders(items: list[Any], reading: Callable[[Any], Order]) -> tuple[list[Order], list[int], Answers]:
    """Return the commands of the items that can be read, their places, and the answers to the others."""
    read: list[Order] = []
    places: list[int] = []
    answers: Answers = [{}] * len(items)
    for place, item in enumerate(items):
        try:
            read.append(reading(item))
            places.append(place)
        except AftereffectError as error:
            named = item.get("experiment", item.get("id")) if isinstance(item, dict) else None
            answers[place] = unanswered(named, error)
    return read, places, answers


def unanswered(experiment: Any, error: Exception) -> dict[str, Any]:
    """Return the answer to an item that was refused."""
    named = experiment[:100] if isinstance(experiment, str) else None
    return {"experiment": named, "error": problem_of(error)}


class Bulk:
    """The handlers of the bulk routes."""

    def __init__(self, desk: Desk, config: Config, telemetry: Telemetry) -> None:
        """Answer for a desk."""
        self.desk, self.config, self.telemetry = desk, config, telemetry

    async def bulk_ask(self, call: Call) -> Response:
        """Ask for many experiments."""
        return await self._all(call, asked, "/v1/bulk/ask")

    async def bulk_tell(self, call: Call) -> Response:
        """Report for many experiments."""
        return await self._all(call, told, "/v1/bulk/tell")

    async def _all(self, call: Call, reading: Callable[[Any], Order], route: str) -> Response:
        items = items_of(object_of(call.body, "the body", ("items",), ("items",)), self.config.bulk_items)
        # Ten thousand items take tens of milliseconds, in which other requests go on.
        read, places, answers = await run_in_threadpool(orders, items, reading)
        outcomes = await self.desk.aperform_many(read) if read else []

        def finished() -> Response:
            for place, (experiment, _), outcome in zip(places, read, outcomes, strict=True):
                if isinstance(outcome, Exception):
                    answers[place] = unanswered(experiment, outcome)
                else:
                    answers[place] = {"experiment": experiment, **outcome}
            return answer({"items": answers})

        response = await run_in_threadpool(finished)
        refused = sum("error" in one for one in answers)
        self.telemetry.bulk(route, len(answers) - refused, refused)
        return response
