"""Every operation of the service, declared once: method and path, scope, fields, reply, and what it does to the store.

The routes of the REST API (`api/routes.py`), the requests of `Client`, the calls of `Local` and the tests of access are
derived from these declarations; `protocol.Service` has a method for each.

An operation is a function with a decorator. Its parameters are those in the path, by name; `body`, a model of
`messages.py`; `key`, the idempotency key, if it creates something; and those of the query, which have defaults. An
operation with the parameter `store` may block. One without, which asks or reports, returns the command for the writer,
so that no thread waits for it; with the parameter `item`, it does so for each of many items.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticKnownError

from aftereffect.core.checks import shown
from aftereffect.service import messages, totals
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.commands import Command
from aftereffect.service.messages import Fields, NoFields, Overview, Page, Reply, Report, Turn
from aftereffect.service.settings import LARGEST, ExperimentSettings, PlanQuestion, days

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store
    from aftereffect.service.store.writer import Answer

R = TypeVar("R")
# (id, command or why there is none); the id is None if it cannot be read.
Items = list[tuple[str | None, Any]]
ALL, ONE = "/v1/experiments", "/v1/experiments/{id}"
KEY = "Idempotency-Key"
"""The header with the key of a request that creates something."""
_DIGITS = re.compile(r"[0-9]{1,19}", re.ASCII)


def _whole(text: Any) -> Any:
    """Accept only integers and digits: pydantic would also accept True, 1.0, '1.0', ' 1' and '1_000'."""
    if isinstance(text, bool | float) or (isinstance(text, str) and not _DIGITS.fullmatch(text)):
        raise PydanticKnownError("int_parsing")
    return text


def _number(default: int) -> BeforeValidator:
    """Return the validator of a query parameter with digits only; an empty value means the default."""
    return BeforeValidator(lambda text: default if text == "" else _whole(text))


PATH: dict[str, Any] = {
    "id": Annotated[str, Field(description="The id of an experiment.", examples=[messages.ID])],
    "round": Annotated[int, BeforeValidator(_whole), Field(ge=1, le=LARGEST, description="The number of a round.")],
    "arm": Annotated[str, Field(description="The name of an arm.", examples=["email"])],
    "token": Annotated[str, Field(description="The id of a token (not the token itself).")],
}
"""The parameters in paths."""
After = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9._~:+-]{0,300}$", description="The `next` of the previous page; empty at first.")
]
AfterEvent = Annotated[int, _number(0), Field(ge=0, le=LARGEST, description="The `next` of the previous page.")]
Format = Annotated[Literal["csv", "parquet", ""], Field(description="The file format.")]
Ids = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9._~,-]{1,700}$", description="The ids of experiments, separated by commas.")
]
Last = Annotated[int, _number(2000), Field(ge=1, le=messages.MOST_SERIES, description="The maximum number of rounds.")]
Limit = Annotated[int, _number(100), Field(ge=1, le=messages.MOST_ITEMS, description="The maximum number of items.")]
Search = Annotated[str, Field(max_length=200, description="Only experiments whose names contain this.")]
StateName = Annotated[Literal[messages.State, ""], Field(description="Only experiments in this state.")]
Key = Annotated[
    str | None,
    Field(
        alias=KEY,
        pattern=r"^[!-~]{8,100}$",
        description="Chosen at random for each request; a request that is repeated with its key is answered as the "
        "first time, and changes nothing. Answers are kept for 30 days.",
    ),
]


@dataclass(eq=False)
class Operation(Generic[R]):
    """An operation: a function of the store, and what is declared about it.

    reply: a model, `bytes` for a file, or None. pool: the threads in which it runs in a server. parameters: those of
    the query, and `key`. body: the model of the body, None if there is none; optional: it may be omitted.
    """

    effect: Callable[..., Any]
    method: str
    path: str
    reply: type[R] | None
    scope: str
    pool: str = "reads"
    status: int = 200
    optional: bool = False
    body: type[BaseModel] | None = None

    def __post_init__(self) -> None:
        self.name, self.description = self.effect.__name__, self.effect.__doc__ or ""
        self.names: list[str] = re.findall(r"{(\w+)", self.path)
        given = inspect.signature(self.effect).parameters
        self.parameters = {name: given[name] for name in given if name not in ("store", "body", *self.names)}
        if "body" in given:
            self.body = given["body"].annotation

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """A model of the parameters of path and query."""
        fields: dict[str, Any] = {name: PATH[name] for name in self.names}
        for name, each in self.parameters.items():
            fields[name] = each.annotation, ... if each.default is each.empty else each.default
        rules = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
        found: type[BaseModel] = create_model(self.name, __config__=rules, **fields)
        return found

    def given(self, path: Mapping[str, Any], query: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the parameters of path and query, as the REST API does."""
        return {**vars(checked(self.arguments, {**path, **query}, "the query"))}

    def read(self, given: Any) -> Any:
        """Validate a body."""
        return given if self.body is None else checked(self.body, given)

    def run(self, store: "Store", **given: Any) -> Any:
        """Carry out the operation and return its answer."""
        return self.effect(store, **given)

    def replied(self, answer: Any) -> R:
        """Return an answer as the reply that is declared."""
        found: R = self.reply.read(answer) if isinstance(self.reply, type) and issubclass(self.reply, Reply) else answer
        return found


class CommandOperation(Operation[R]):
    """An operation that is one command for the writer."""

    def run(self, store: "Store", **given: Any) -> Any:
        """Carry out the command."""
        return store.perform(given.pop("id"), self.effect(**given))


class BulkOperation(Operation[R]):
    """An operation with many items, each with an answer or error of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.item = self.parameters.pop("item").annotation

    def read(self, given: Any) -> Items:
        """Validate each item."""
        items = checked(_Items, given).items
        if len(items) > (most := messages.MOST_BULK):
            raise Refused("too_large", f"items must be at most {most} long, but got {len(items)}", limit=most)
        return [self._order(item) for item in items]

    def _order(self, item: Any) -> tuple[str | None, Any]:
        named = item.get("experiment") if isinstance(item, dict) else None
        try:
            return named, self.effect(checked(self.item, item, "an item"))
        except Refused as refused:
            return named[:100] if isinstance(named, str) else None, refused

    def orders(self, body: Items) -> list[tuple[Any, Command]]:
        """Return the commands of the valid items."""
        return [order for order in body if not isinstance(order[1], Refused)]

    def listed(
        self, body: Items, done: Sequence["Answer"], problem: Callable[[Refused], Fields] = Refused.problem
    ) -> Fields:
        """Return the answer or the refusal of each item. done: the answers to the orders. problem: shows a refusal."""
        left, items = iter(done), list[Fields]()
        for name, item in body:
            answer = item if isinstance(item, Refused) else next(left)
            items.append({"experiment": name, "error": problem(answer)} if isinstance(answer, Refused) else answer)
        return {"items": items}

    def run(self, store: "Store", **given: Any) -> Fields:
        """Carry out the valid items as one job."""
        return self.listed(given["body"], store.perform_many(self.orders(given["body"])))


class _Items(BaseModel, extra="forbid"):
    items: list[Any]


OPERATIONS: dict[str, Operation[Any]] = {}
"""All operations by name; asks and reports come first, because routes are tried in order."""


def operation(
    method: str, path: str, reply: type[R] | None, scope: str = "play", **more: Any
) -> Callable[[Callable[..., Any]], Operation[R]]:
    """Declare an operation: on the store, on each of many items, or one command."""

    def declared(effect: Callable[..., Any]) -> Operation[R]:
        names = inspect.signature(effect).parameters
        kind: Any = Operation if "store" in names else BulkOperation if "item" in names else CommandOperation
        found: Operation[R] = kind(effect, method, path, reply, scope, **more)
        OPERATIONS[found.name] = found
        return found

    return declared


# Playing


@operation("POST", ONE + "/ask", Turn, optional=True)
def ask(body: messages.Ask) -> Command:
    """Open the next round, or return the open one."""
    return commands.Ask(body.unit)


@operation("PUT", ONE + "/rounds/{round}", Report)
def tell(round: int, body: messages.Tell) -> Command:
    """Report the total of a round, or that it is missing."""
    return commands.Tell(round, body.total, body.unit, body.ahead, body.next)


@operation("POST", ONE + "/rounds/{round}/amend", Report)
def amend(round: int, body: messages.Amend) -> Command:
    """Correct a total, or report a late one; after the end of its block, what was learned is corrected too."""
    was = body.was if "was" in body.model_fields_set else ...
    return commands.Amend(round, body.total, body.unit, was)


@operation("PUT", ONE + "/rounds/{round}/note", Report)
def note(round: int, body: messages.Note) -> Command:
    """Write a note on a round, such as "holiday", or remove it."""
    return commands.Note(round, body.note, body.unit)


@operation("POST", "/v1/bulk/ask", messages.BulkReply[Turn], body=messages.BulkAsk)
def bulk_ask(item: messages.AskItem) -> Command:
    """Ask for many experiments; each item has its own answer or error."""
    return commands.Ask(item.unit)


@operation("POST", "/v1/bulk/tell", messages.BulkReply[Report], body=messages.BulkTell)
def bulk_tell(item: messages.TellItem) -> Command:
    """Report totals for many experiments; each item has its own answer or error."""
    return commands.Tell(item.round, item.total, item.unit)


@operation("POST", ONE + "/reports", messages.ManyReports, "play")
def reports(store: "Store", id: str, body: messages.Reports, key: Key = None) -> Fields:
    """Report several rounds at once, all or none, from a list or from the text of a CSV file."""
    return store.report(id, totals.reports(body), key=key)


# Reading


@operation("GET", ALL, Page[messages.Summary], "read")
def experiments(
    store: "Store", after: After = "", limit: Limit = 100, state: StateName = "", search: Search = ""
) -> Fields:
    """List the experiments."""
    return store.experiments(after or None, limit, state or None, search or None)


@operation("GET", "/v1/compare", Page[messages.Comparison], "read")
def compare(store: "Store", ids: Ids) -> Page[messages.Comparison]:
    """Compare experiments, in the order asked for: gain over an equal split, leading arm, next decision."""
    return Page(items=store.compare(ids.split(",")))


@operation("GET", ONE, Overview, "read")
def experiment(store: "Store", id: str) -> Overview:
    """Return an experiment: state, probabilities, guarantee."""
    return store.experiment(id)


@operation("GET", ONE + "/learned", messages.Learned, "read", pool="long_reads")
def learned(store: "Store", id: str) -> messages.Learned:
    """Return what all totals so far say: the effects of the arms, which is best, how long effects last."""
    return store.learned(id)


@operation("GET", ONE + "/rounds", Page[messages.Row], "read")
def rounds(store: "Store", id: str, after: After = "", limit: Limit = 100) -> Fields:
    """List the rounds, one row per unit."""
    return store.rounds(id, after or None, limit)


@operation("GET", ONE + "/events", Page[messages.Event], "read")
def events(store: "Store", id: str, after: AfterEvent = 0, limit: Limit = 100) -> Fields:
    """List the events of the log."""
    return store.events(id, after, limit)


@operation("GET", ONE + "/series", messages.Series, "read")
def series(store: "Store", id: str, last: Last = 2000) -> Fields:
    """Return the data of the charts, column by column."""
    return store.series(id, last)


@operation("GET", ONE + "/export", bytes, "read", pool="long_reads")
def export(store: "Store", id: str, format: Format = "csv") -> Iterator[bytes]:
    """Return the record as a CSV or Parquet file."""
    return store.export(id, format or "csv")


@operation("GET", ONE + "/reminder", messages.Reminder, "read", pool="checks")
def reminder(store: "Store", id: str) -> messages.Reminder:
    """Return the reminder of an experiment, and the names of the webhooks that the operator allows."""
    allowed, known = list(store.webhooks), next(iter(store.reminders(id)), None)
    if known is None:
        return messages.Reminder(experiment=id, webhook=None, webhooks=allowed)
    said = {name: getattr(known, name) for name in ("webhook", "after", "round", "outcome", "outcome_at")}
    return messages.Reminder(experiment=id, **said, webhooks=allowed)


@operation("POST", "/v1/plan", messages.Plan, "read", pool="long_reads")
def plan(store: "Store", body: PlanQuestion) -> messages.Plan:
    """Return what to expect of settings: a forecast against an A/B test, blocks, decisions. Nothing is stored."""
    from aftereffect.service.experiment.plan import planned

    return planned(body)


# Administration


@operation("POST", ALL, Overview, "admin", status=201)
def create(store: "Store", body: ExperimentSettings, key: Key = None) -> Overview:
    """Create an experiment; it runs at once unless it is a draft."""
    return store.create(body, key=key)


@operation("POST", ONE + "/correct", Overview, "admin", status=201)
def correct(store: "Store", id: str, body: messages.Correction, key: Key = None) -> Overview:
    """Create an experiment with some settings of this one changed, and with its rounds; this one is finished."""
    return store.correct(id, body.model_extra or {}, key=key)


@operation("POST", ONE + "/continue", Overview, "admin", status=201)
def continue_with(store: "Store", id: str, body: messages.Continuation, key: Key = None) -> Overview:
    """Create an experiment with arms added or retired, which begins with what this one has measured; this one ends."""
    return store.continue_with(id, body.add, body.retire, body.model_extra or {}, key=key)


@operation("POST", ONE + "/start", Overview, "admin", optional=True)
def start(store: "Store", id: str, body: NoFields) -> Overview:
    """Start a draft."""
    return store.change(id, commands.Start())


@operation("POST", ONE + "/pause", Overview, "admin", optional=True)
def pause(store: "Store", id: str, body: NoFields) -> Overview:
    """Pause an experiment: no round opens until it is resumed."""
    return store.change(id, commands.Pause())


@operation("POST", ONE + "/resume", Overview, "admin", optional=True)
def resume(store: "Store", id: str, body: NoFields) -> Overview:
    """Resume after a pause, with max_delay rounds of warm-up."""
    return store.change(id, commands.Resume())


@operation("POST", ONE + "/finish", Overview, "admin", optional=True)
def finish(store: "Store", id: str, body: NoFields) -> Overview:
    """End an experiment permanently."""
    return store.change(id, commands.Finish())


@operation("POST", ONE + "/arms/{arm:path}/away", Overview, "admin", optional=True)
def away(store: "Store", id: str, arm: str, body: NoFields) -> Overview:
    """Mark an arm as unavailable; the guarantee is void from then on."""
    return store.change(id, commands.Away(arm))


@operation("POST", ONE + "/arms/{arm:path}/back", Overview, "admin", optional=True)
def back(store: "Store", id: str, arm: str, body: NoFields) -> Overview:
    """Mark an arm as available again."""
    return store.change(id, commands.Back(arm))


@operation("PUT", ONE + "/reminder", messages.Reminder, "admin", pool="checks")
def remind(store: "Store", id: str, body: messages.NewReminder) -> messages.Reminder:
    """Call a webhook when a round waits for its report, or in every round with what to play."""
    if body.webhook not in store.webhooks:
        names = ", ".join(store.webhooks) or "none are"
        raise Refused("invalid", f"webhook must be allowed by the operator ({names}), but got {shown(body.webhook)}")
    store.remind(id, body.webhook, days(body.after) if body.before is None else -days(body.before))
    found: messages.Reminder = reminder.run(store, id=id)
    return found


@operation("DELETE", ONE + "/reminder", None, "admin", pool="checks", status=204)
def forget_reminder(store: "Store", id: str) -> None:
    """Remove the reminder of an experiment."""
    store.remind(id, None)


# The time of a replay grows with the log, so it requires the scope `admin`.
@operation("GET", ONE + "/verify", messages.Verdict, "admin", pool="long_reads")
def verify(store: "Store", id: str) -> messages.Verdict:
    """Replay the log and compare the result with the stored data."""
    return store.verify(id)[0]


@operation("GET", "/v1/verify", Page[messages.Verdict], "admin", pool="long_reads")
def verify_all(store: "Store", after: After = "", limit: Limit = 100) -> Page[messages.Verdict]:
    """Replay every log, including those of experiments that no longer exist."""
    return store.verify_page(after or None, limit)


@operation("POST", "/v1/tokens", messages.Token, "admin", pool="checks", status=201)
def create_token(store: "Store", body: messages.NewToken, key: Key = None) -> messages.Token:
    """Create a token; only this response contains it."""
    token = store.create_token(body.name, body.scopes, key=key)
    return messages.Token(name=body.name, scopes=body.scopes, token=token)


@operation("GET", "/v1/tokens", Page[messages.KnownToken], "admin", pool="checks")
def tokens(store: "Store") -> Page[messages.KnownToken]:
    """List all tokens, revoked ones too: names, scopes and dates, not the tokens themselves."""
    return Page(items=store.tokens())


@operation("DELETE", "/v1/tokens/{token}", None, "admin", pool="checks", status=204)
def revoke_token(store: "Store", token: str) -> None:
    """Revoke a token; the last one with the scope `admin` cannot be revoked."""
    store.revoke_token(token)
