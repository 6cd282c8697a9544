"""Every request, reply and row of the service, declared once; the settings of an experiment are in `settings.py`.

Requests are strict: a Boolean or a text is not a number, unknown keys are errors. `errors.checked(Tell, given)` reads
one or refuses. Replies may have further fields than are listed here, so that a client reads a newer server; the domain
and the store answer with plain dicts that fit them.
"""

from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import sentence
from aftereffect.service.settings import LARGEST, Number, Text, unit_name

MOST_ITEMS = 1_000
"""The longest page of a list."""
MOST_SERIES = 20_000
"""The most rows behind the charts."""
MOST_BULK = 10_000
"""The most items of a bulk request."""

State = Literal["draft", "running", "paused", "finished"]
STATES: tuple[str, ...] = get_args(State)
Scope = Literal["read", "play", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)


def is_id(given: object) -> bool:
    """Say whether this can be the id of an experiment or of a token; what cannot is not even looked for."""
    return isinstance(given, str) and 0 < len(given) <= 32 and given.isascii() and given.isprintable()


def _in_order(scopes: list[Scope]) -> list[Scope]:
    return sorted(set(scopes), key=SCOPES.index)


RoundNumber = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Probability = Annotated[float, Field(ge=0, le=1)]
UnitName = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Unit = Annotated[
    UnitName | None,
    BeforeValidator(unit_name, json_schema_input_type=UnitName | int | None),
    Field(description="The name of a unit; it may be left out where there is only one."),
]
Total = Annotated[Number | None, Field(description="The total that was seen; null if no report will come.")]
Id = Annotated[str, Field(strict=True, min_length=1, max_length=100, description="The id of an experiment.")]
Cursor = Annotated[str | int | None, Field(description="What to send as `after` for the next page; null at the end.")]

ID = "pZk2Yt0nQ9vLr8sXw1aBcA"
ROW = {
    "round": 17, "unit": "1", "arm": "email", "total": 31.5, "status": "reported", "draw": False, "block": 3,
    "block_start": 14, "probability": 0.41, "washin": False, "measured": None, "update": False, "fed": None,
    "date": "2026-01-17", "substituted": False, "why": "email stays: round 4 of block 3.",
    "asked_at": "2026-01-17T08:00:00Z", "told_at": "2026-01-17T20:00:00Z",
}  # fmt: skip


class Request(BaseModel):
    """What comes in: unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Reply(BaseModel):
    """What goes out: it may grow."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @property
    def data(self) -> dict[str, Any]:
        """The whole answer as it came, with fields this version does not know."""
        return self.model_dump(exclude_unset=True)

    @classmethod
    def read(cls, data: Any) -> Self:
        """Return an answer of a server, which may be newer.

        >>> Verdict.read({"experiment": "x", "ok": True, "rounds": 3, "finding": None, "mood": "fine"}).rounds
        3
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            reason = sentence(error.errors()[0], cls.model_fields, "it")
            raise UnreadableAnswer(f"an answer must be a {cls.__name__}, but {reason}: {shown(data)}") from None


class UnreadableAnswer(AftereffectError):
    """An answer lacks a field that it must have: the other side is not this service, or another version of it."""


def example(**fields: Any) -> ConfigDict:
    """Return the configuration of a model with this example in its JSON schema."""
    return ConfigDict(json_schema_extra={"examples": [fields]})


class NoFields(Request):
    """Nothing: the path says it all. The body may be left out."""


class Ask(Request):
    """Whose arm is wanted; without a unit, the first one that has not reported yet. The body may be left out."""

    model_config = example(unit="north")

    unit: Unit = None


class Tell(Request):
    """The total of a round: one number, or null if no report will come."""

    model_config = example(total=31.5)

    total: Total
    unit: Unit = None


class Amend(Tell):
    """Another total for a round. was: the total that is corrected; if it is another by now, that is a conflict."""

    model_config = example(total=31.5, was=30.0)

    was: Total = None


class AskItem(Ask):
    """One ask among many."""

    model_config = example(experiment=ID)

    experiment: Id


class TellItem(Tell):
    """One report among many."""

    model_config = example(experiment=ID, round=17, total=31.5)

    experiment: Id
    round: RoundNumber


class BulkAsk(Request):
    """Asks over many experiments, each answered on its own."""

    model_config = example(items=[{"experiment": ID}])

    items: Annotated[list[AskItem], Field(max_length=MOST_BULK)]


class BulkTell(Request):
    """Reports over many experiments, each answered on its own."""

    model_config = example(items=[{"experiment": ID, "round": 17, "total": 31.5}])

    items: Annotated[list[TellItem], Field(max_length=MOST_BULK)]


class NewToken(Request):
    """A token to make. Scopes: read; play may ask, tell and amend too; admin all else: experiments, tokens."""

    model_config = example(name="till system", scopes=["play"])

    name: Text
    scopes: Annotated[list[Scope], Field(min_length=1), AfterValidator(_in_order)]


class Row(Reply):
    """One unit's round in the record.

    draw: the arm was drawn in this round. washin: effects of the arm before may still arrive. measured: whether the
    total is among those learned from, None until the block has ended. fed: the loss the learner was fed, if this round
    ended a block. substituted: the arm that was drawn is away, and this one is played in its place.
    """

    model_config = example(**ROW)

    round: RoundNumber
    unit: str
    arm: str
    total: float | None
    status: Literal["open", "reported", "missing", "void"]
    draw: bool
    block: int
    block_start: int
    probability: Probability
    washin: bool
    measured: bool | None
    update: bool
    fed: float | None
    date: str | None
    substituted: bool
    why: str
    asked_at: str | None
    told_at: str | None


SERIES = tuple(name for name in Row.model_fields if name not in ("why", "asked_at", "told_at"))
"""The columns behind the charts."""


class Turn(Row):
    """What to play, and why: the same answer until the round is reported.

    arms: the arm of each unit, where several play and none was named.
    """

    model_config = example(experiment=ID, **ROW, warmup=False, state="running")

    experiment: str
    warmup: bool
    state: State
    arms: dict[str, str] | None = None


class Report(Row):
    """What became of a total: "reported", "missing", or "void" where it lies outside the range.

    update: the block ended with this report and was learned from. repeated: it was known already.
    """

    model_config = example(experiment=ID, **ROW, repeated=False, state="running", open_round=None)

    experiment: str
    repeated: bool
    state: State
    open_round: int | None


class Change(Reply):
    """What starting, pausing, resuming, finishing an experiment or a change of its arms led to."""

    state: State
    round: int
    open_round: int | None
    away: list[str]
    warm_until: int
    repeated: bool


class Plan(Reply):
    """What settings lead to, before anything starts. Blocks in rounds; all units share the decisions.

    informative_from: the round from which on the worst case is below what any way of playing can lose; None if never.
    """

    max_delay: int
    shortest_block: int
    mean_block: float
    decisions_per_quarter: float
    informative_from: int | None
    sentences: list[str]


class Summary(Reply):
    """An experiment in a list: its settings and its state."""

    id: str
    name: str
    state: State
    arms: list[str]
    units: list[str]
    direction: Literal["maximize", "minimize"]
    low: float
    high: float
    max_delay: int
    carry_over: dict[str, int | float | str] | None
    horizon: int | None
    player: str
    seed: int
    start_date: str | None
    round_length: float
    round: int
    created_at: str


class Overview(Summary):
    """An experiment as a person sees it: its settings, its state, what it has learned and what is guaranteed."""

    tuning: dict[str, str]
    open_round: int | None
    updates: int
    block: int
    block_start: int | None
    warm_until: int
    probabilities: dict[str, Probability]
    plays: dict[str, int]
    away: list[str]
    counts: dict[str, int]
    sum_of_totals: float | None
    measured: dict[str, dict[str, float | None]]
    alarms: list[str]
    plan: Plan
    guarantee: dict[str, Any]
    winner: dict[str, Any] | None
    started_at: str | None
    finished_at: str | None


class Event(Reply):
    """An entry of the log, as it is stored, with its link in the chain of hashes."""

    seq: int
    kind: str
    round: int | None
    unit: str | None
    body: dict[str, Any]
    at: str
    hash: str


class Series(Reply):
    """The columns behind the charts, one list each (SERIES); odds: the probabilities when arms were drawn."""

    experiment: str
    arms: list[str]
    odds: dict[str, Any]


class Verdict(Reply):
    """What replaying the log found: it is as stored, or the first thing that differs."""

    experiment: str
    ok: bool
    rounds: int | None
    finding: str | None


class Token(Reply):
    """A new token. This answer is the only place where it is ever shown."""

    name: str
    scopes: list[Scope]
    token: str


class KnownToken(Reply):
    """What a token is called and may do, never the token itself."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    revoked_at: str | None


class Health(Reply):
    """The store answers, and takes writes."""

    status: Literal["ok"]


class Problem(Reply):
    """Why a request was refused (RFC 9457). `code` is for programs, `detail` for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Unanswered(Reply):
    """An item of a bulk request that was refused; the others are not touched by it."""

    experiment: str | None
    error: Problem


Item = TypeVar("Item", bound=Reply)


class Page(Reply, Generic[Item]):
    """A part of a list; `next` is where the following page starts, None at the end."""

    items: list[Item]
    next: Cursor = None


class BulkReply(Reply, Generic[Item]):
    """The answers to a bulk request, in the order of its items."""

    items: list[Item | Unanswered]


class Tokens(Reply):
    """The tokens there are."""

    items: list[KnownToken]
