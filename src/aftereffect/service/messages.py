"""Models of all requests, replies and rows of the service; the settings of an experiment are in `settings.py`.

Requests are strict: a Boolean or a string is not accepted as a number, and unknown keys are errors.
`errors.checked(Tell, given)` validates a request. Replies may have more fields than are listed here, so a client can
read the replies of a newer server. The domain and the store return plain dicts with the same fields.
"""

import math
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused, sentence
from aftereffect.service.settings import LARGEST, WIDEST, Date, Duration, Name, Number, Text, unit_name

MOST_ITEMS = 1_000
"""The maximum number of items on a page of a list."""
MOST_SERIES = 20_000
"""The maximum number of rows for the charts."""
MOST_COMPARED = 20
"""The maximum number of experiments in a comparison."""
MOST_BULK = 10_000
"""The maximum number of items in a bulk request."""

State = Literal["draft", "running", "paused", "finished"]
Scope = Literal["read", "play", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)


def is_id(given: object) -> bool:
    """Return whether this has the form of an id of an experiment or token."""
    return isinstance(given, str) and 0 < len(given) <= 32 and given.isascii() and given.isprintable()


def _in_order(scopes: list[Scope]) -> list[Scope]:
    return sorted(set(scopes), key=SCOPES.index)


RoundNumber = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Probability = Annotated[float, Field(ge=0, le=1)]
UnitName = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Unit = Annotated[
    UnitName | None,
    BeforeValidator(unit_name, json_schema_input_type=UnitName | int | None),
    Field(description="The name of a unit; may be omitted if there is only one."),
]
Total = Annotated[
    Annotated[Number, Field(ge=-WIDEST, le=WIDEST)] | None,
    Field(description="The observed total; null if there will be no report."),
]
Id = Annotated[str, Field(strict=True, min_length=1, max_length=100, description="The id of an experiment.")]
Cursor = Annotated[str | int | None, Field(description="The `after` of the next page; null on the last one.")]

ID = "pZk2Yt0nQ9vLr8sXw1aBcA"
ROW = {
    "round": 17, "unit": "1", "arm": "email", "total": 31.5, "status": "reported", "draw": False, "block": 3,
    "block_start": 14, "probability": 0.41, "washin": False, "measured": None, "update": False, "fed": None,
    "date": "2026-01-17", "substituted": False, "reason": "learner", "drawn": "email", "withheld": False,
    "asked_at": "2026-01-17T08:00:00Z", "told_at": "2026-01-17T20:00:00Z", "note": None,
    "why": "email stays: round 4 of block 3.",
}  # fmt: skip


class Request(BaseModel):
    """A request; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Reply(BaseModel):
    """A reply; newer servers may add fields."""

    model_config = ConfigDict(frozen=True, extra="allow")

    @property
    def data(self) -> dict[str, Any]:
        """The whole answer as received, including fields unknown to this version."""
        return self.model_dump(exclude_unset=True)

    @classmethod
    def read(cls, data: Any) -> Self:
        """Validate the answer of a server, which may be of a newer version.

        >>> Verdict.read({"experiment": "x", "ok": True, "rounds": 3, "finding": None, "mood": "fine"}).rounds
        3
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            reason = sentence(error.errors()[0], cls, "it")
            # The server is another service, or an incompatible version of this one.
            raise Refused("unreadable", f"an answer must be a {cls.__name__}, but {reason}: {shown(data)}") from None


def example(**fields: Any) -> dict[str, Any]:
    """Return the part of a model's JSON schema that shows an example."""
    return {"examples": [fields]}


def finite(value: float | None) -> float | None:
    """Return None for a number that is not finite, which JSON does not have."""
    return float(value) if value is not None and math.isfinite(value) else None


Finite = Annotated[float | None, AfterValidator(finite)]
"""A number; None if it is not finite."""

Fields = dict[str, Any]
"""The fields of a reply as plain data: as the REST API sends them, and as `Reply.read` reads them."""


class NoFields(Request):
    """No fields. The body may be omitted."""


class Ask(Request, json_schema_extra=example(unit="north")):
    """The unit whose arm is wanted, by default the first unit that has not reported. The body may be omitted."""

    unit: Unit = None


class Told(Request):
    """A total: a number, or null if there will be no report."""

    total: Total
    unit: Unit = None


Flag = Annotated[bool, Field(strict=True)]


class Tell(Told, json_schema_extra=example(total=31.5)):
    """The total of a round. next: also open the next round, and return it, if this report closes the round."""

    ahead: Flag = True
    """Accept a report of a round before its date; if false, refuse."""
    next: Flag = False


class ReportItem(Told):
    """One of several reports.

    round, date: which round; without both, the open one or the next. arm: the arm that was played; a conflict if it is
    not the one that the service names. It may be omitted for rounds that play the arm of the latest round opened.
    """

    round: RoundNumber | None = None
    date: Date | None = None
    arm: Name | None = None


class Reports(Request, json_schema_extra=example(items=[{"round": 17, "total": 31.5}, {"round": 18, "total": 28.0}])):
    """Reports of several rounds in order, as items or as the text of a CSV file. All are taken, or none."""

    items: Annotated[list[ReportItem], Field(min_length=1, max_length=MOST_ITEMS)] | None = None
    csv: Annotated[str, Field(strict=True)] | None = None
    first: RoundNumber | None = None
    """The round of the first report, if the reports name no rounds."""
    ahead: Flag = True
    """Accept a report of a round before its date; if false, refuse."""
    next: Flag = False
    """Also open the next round, and return it."""
    restate: Flag = False
    """Take another total of a round that has one as a correction."""


class Amend(Told, json_schema_extra=example(total=31.5, was=30.0)):
    """A correction of a round's total. was: the total to be corrected; a conflict if the current total differs."""

    was: Total = None


class Note(Request, json_schema_extra=example(note="holiday")):
    """A note on a round, such as "holiday"; null removes it."""

    note: Text | None
    unit: Unit = None


class NewReminder(Request, json_schema_extra=example(webhook="sales", after="12 hours")):
    """The webhook to call, by its name in the server's configuration, so long after a round ended without a report.

    before: instead, in every round, so long before its end, with what to play, what is overdue, and alarms; it opens.
    """

    webhook: Name
    after: Duration = 0.5
    before: Duration | None = None


class AskItem(Ask, json_schema_extra=example(experiment=ID)):
    """One item of a bulk ask."""

    experiment: Id


class TellItem(Told, json_schema_extra=example(experiment=ID, round=17, total=31.5)):
    """One item of a bulk report."""

    experiment: Id
    round: RoundNumber


class BulkAsk(Request, json_schema_extra=example(items=[{"experiment": ID}])):
    """Asks for many experiments, each answered separately."""

    items: Annotated[list[AskItem], Field(max_length=MOST_BULK)]


class BulkTell(Request, json_schema_extra=example(items=[{"experiment": ID, "round": 17, "total": 31.5}])):
    """Reports for many experiments, each answered separately."""

    items: Annotated[list[TellItem], Field(max_length=MOST_BULK)]


class Correction(Request, extra="allow", json_schema_extra=example(high=500)):
    """Settings to change, with the names of those of a new experiment; the others stay as they are."""


class Continuation(Request, extra="allow", json_schema_extra=example(add=["video"], retire=["letter"])):
    """Arms to add and to retire, and settings to change, with the names of those of a new experiment."""

    add: list[Name] = []
    retire: list[Name] = []


class NewToken(Request, json_schema_extra=example(name="till system", scopes=["play"])):
    """A token to create. Scopes: read; play (also ask, tell, amend); admin (also manage experiments and tokens)."""

    name: Text
    scopes: Annotated[list[Scope], Field(min_length=1), AfterValidator(_in_order)]


Reason = Literal["inherited", "substitute", "opening", "warm_up", "mixed", "learner"]
"""Why a round plays its arm or its total is withheld: a round of the experiment before, the arm drawn is away, the
warm-up after a pause, effects of a substitute that still arrive; or as the learner has drawn."""
Status = Literal["open", "reported", "missing", "void", "clipped"]
"""What has become of the report of a round; void and clipped: the total is out of range."""


class StoredRow(Reply):
    """One round of one unit as it is stored.

    draw: the arm was drawn in this round. washin: effects of the previous arm may still arrive. measured: whether the
    total was learned from, None until the block has ended. fed: the loss passed to the learner, if this round ended a
    block. substituted: the arm that was drawn is away, and this one is played in its place. drawn: the arm that the
    learner drew. withheld: the total is recorded, but only a model learns from it.
    """

    round: RoundNumber
    unit: str
    arm: str
    total: float | None
    status: Status
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
    reason: Reason
    drawn: str
    withheld: bool
    asked_at: str | None
    told_at: str | None
    note: str | None


class Row(StoredRow, json_schema_extra=example(**ROW)):
    """One round of one unit in the record. why: why its arm is played, and how its total is used, in words."""

    why: str


class Turn(Row, json_schema_extra=example(experiment=ID, **ROW, warmup=False, state="running")):
    """The arm to play, and why; the answer stays the same until the round is reported.

    arms: the arm of each unit, if there are several and the request named none.
    """

    experiment: str
    warmup: bool
    state: State
    arms: dict[str, str] | None = None


class Report(Row, json_schema_extra=example(experiment=ID, **ROW, repeated=False, state="running", open_round=None)):
    """How a report was recorded: status "reported", "missing", or "void" or "clipped" for a total out of range.

    update: the block ended with this report and was learned from. repeated: the same report had been made before.
    warning: what is done with a total out of range, None for other totals. next: the next round, if it was asked for.
    learned, correction: of a correction after the end of its block, whether it was learned from, and what was done.
    """

    experiment: str
    repeated: bool
    state: State
    open_round: int | None
    warning: str | None = None
    learned: bool | None = None
    correction: str | None = None
    next: Turn | None = None


class ManyReports(Reply):
    """How several reports were recorded. next: the round that was opened then, if that was asked for."""

    experiment: str
    items: list[Report]
    next: Turn | None = None


class Forecast(Reply):
    """What a simulation expects of settings: gains over an equal split, in the units of the totals.

    most: what knowing the best arm would bring. player, test: what the player and the better A/B test of the best
    length would; test_winner: whether that compares mean totals, or lets the lag model name the winner. model: what the
    lag model would bring, None if it is the player. enough_rounds, enough_units: how many would make a player worth
    while, None if one is, or if none of those simulated do.
    """

    recommended: Literal["player", "test", "model"]
    worthwhile: bool
    rounds: int
    gap: float
    noise: float
    most: float
    player: float
    test: float
    test_rounds: int
    test_winner: Literal["means", "lags"]
    model: float | None
    enough_rounds: int | None
    enough_units: int | None
    sentences: list[str]


class Plan(Reply):
    """What the settings imply, before the start. Block lengths are in rounds; decisions are per unit.

    informative_from: the first round from which the worst case stays below the largest possible regret; None if never.
    With the player "model", which plays in no blocks, there are only sentences; if the opening lasts up to the horizon,
    nothing is said of blocks. forecast: whether it is worth while; None if it was not asked for, or if settings of this
    size are not simulated.
    """

    max_delay: int | None = None
    shortest_block: int | None = None
    mean_block: float | None = None
    decisions_per_quarter: float | None = None
    informative_from: int | None = None
    sentences: list[str]
    forecast: Forecast | None = None


class Summary(Reply):
    """An experiment in a list: its settings and its state."""

    id: str
    name: str
    state: State
    arms: list[str]
    units: list[str]
    direction: Literal["maximize", "minimize"]
    low: float
    high: float | None
    max_delay: int | None
    max_lag: int | None = None
    carry_over: dict[str, int | float | str] | None
    horizon: int | None
    player: str
    seed: int
    start_date: str | None
    round_length: float
    measure: str | None = None
    round: int
    created_at: str


class BeginningPrior(Reply):
    """What was known about the arms before round 1, worth so many updates. experiment: where it was measured."""

    means: dict[str, float]
    updates: float
    experiment: str | None = None


Sure = Literal["certain", "likely", "open", "unknown"]
Band = list[float]
"""An estimate, and the ends of its 95% interval."""


class ArmEffect(Reply):
    """The whole effect of an action with an arm, relative to the mean of the arms; `best`: how likely it is the best.

    effect: [estimate, low, high] with 95% probability. by_lag: the same for each lag from 0. plays: how often it was
    played, in all units. away: it cannot be played at present.
    """

    arm: str
    plays: int
    effect: Band
    best: Probability
    by_lag: list[Band]
    away: bool


class Finding(Reply):
    """What speaks against an assumption of the model, if `found`.

    name: "changed", "held", "jumps", "autocorrelated" or "season".
    """

    name: str
    found: bool
    sentence: str


class Learned(Reply):
    """What all totals so far say about the arms, by one model, whoever chose the arms.

    reason: why there is no model; None if there is one, and what follows is empty otherwise. rounds, totals: how many
    it has learned from, those of the experiment before included. arms: the likeliest best arm first. leader: the
    likeliest best arm; sure: "certain" (best with a probability of 95%), "likely" (80%), "open", or "unknown" before
    two arms were reported. difference: between the leader and the runner-up. loss_of_settling, loss_per_day: the
    expected loss of playing the leader for ever from now on, per round and day, in all units. gain: of all rounds so
    far over an equal split. lasts: the longest lag at which an effect of an arm is certain; None if there is none.
    """

    experiment: str
    reason: str | None = None
    rounds: int = 0
    totals: int = 0
    max_lag: int = 0
    arms: list[ArmEffect] = []
    leader: str | None = None
    runner_up: str | None = None
    sure: Sure = "unknown"
    difference: Band | None = None
    loss_of_settling: float | None = None
    loss_per_day: float | None = None
    gain: Band | None = None
    percent: Band | None = None
    lasts: int | None = None
    findings: list[Finding] = []
    sentences: list[str] = []


class NextDecision(Reply):
    """The expected round of the next draw and the earliest one, with their dates."""

    round: int
    date: str | None
    earliest_round: int
    earliest_date: str | None
    words: str


class CertificateSoFar(Reply):
    """The fields of `aftereffect.Certificate`; None for a number that is not finite."""

    rounds: int
    updates: int
    value: Finite
    any_time: Finite
    terms: dict[str, Finite]
    worst_case: Finite
    trivial: Finite
    informative: bool
    worst_case_from: int | None
    impossible: int


class Guarantee(Reply):
    """The worst case over the horizon, or over the rounds so far, and the certificate so far.

    trivial: the largest possible regret. informative_from: the round from which the worst case stays below it.
    certificate: None before the first round has closed, and for the player "paper".
    sentence: the guarantee in plain words; words: the paragraphs as one string.
    """

    value: Finite
    per_round: Finite
    horizon: int
    trivial: Finite
    informative_from: int | None
    informative: bool
    void: bool
    certificate: CertificateSoFar | None
    sentence: str
    words: str
    paragraphs: list[str]


class Due(Reply):
    """The round to be reported next, its date, and the time when it is over."""

    round: int
    date: str | None
    at: str


class Overview(Summary):
    """An experiment in full: its settings, its state and its guarantee. What it has learned is `Learned`.

    probabilities: of each arm, to be drawn or, with the player "model", to be the best when an arm was last chosen.
    max_delay, guarantee: None with the player "model".
    """

    out_of_range: Literal["void", "clip"] = "void"
    inherited: dict[str, str | int] | None = None
    prior: BeginningPrior | None = None
    open_round: int | None
    updates: int
    block: int
    block_start: int | None
    warm_until: int
    probabilities: dict[str, Probability]
    plays: dict[str, int]
    away: list[str]
    counts: dict[str, int]
    sum_of_totals: float
    next_decision: NextDecision | None
    alarms: list[str]
    plan: Plan
    guarantee: Guarantee | None
    started_at: str | None
    finished_at: str | None
    due: Due | None = None


class Event(Reply):
    """A stored event of the log, with its hash."""

    seq: int
    kind: str
    round: int | None
    unit: str | None
    body: dict[str, Any]
    at: str
    hash: str


class Series(Reply):
    """The columns for the charts, one list each: those of Row but why, asked_at, told_at and note."""

    experiment: str
    arms: list[str]


class Verdict(Reply):
    """The result of replaying a log. finding: the first difference from what is stored, None if there is none.

    events, head: the number of events, and the hash of the last one.
    """

    experiment: str
    ok: bool
    rounds: int | None
    finding: str | None
    events: int | None = None
    head: str | None = None


class Reminder(Reply):
    """The reminder of an experiment. webhook: None if there is no reminder.

    after: in days after the end of a round; negative if it is called before the end of every round.

    round, outcome, outcome_at: the latest round of which the webhook was told, "sent" or why that failed, and when.
    webhooks: the names that the operator allows.
    """

    experiment: str
    webhook: str | None = None
    after: float | None = None
    round: int | None = None
    outcome: str | None = None
    outcome_at: str | None = None
    webhooks: list[str] = []


class Comparison(Reply):
    """The most important figures of an experiment; those of `Learned` in short, positive is better."""

    id: str
    name: str
    state: State
    round: int
    reports: int
    mean: float | None
    leader: str | None
    best: Probability | None
    sure: Sure
    gain: Band | None
    percent: Band | None
    next_decision: str | None
    alarms: int


class Token(Reply):
    """A new token; only this answer contains it."""

    name: str
    scopes: list[Scope]
    token: str


class KnownToken(Reply):
    """The name, scopes and dates of a token, without the token itself."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    revoked_at: str | None


class Health(Reply):
    """The store can be read and written."""

    status: Literal["ok"]


class Problem(Reply):
    """Why a request was refused (RFC 9457). `code` is for programs, `detail` for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Unanswered(Reply):
    """A refused item of a bulk request; the other items are not affected."""

    experiment: str | None
    error: Problem


Item = TypeVar("Item", bound=Reply)


class Page(Reply, Generic[Item]):
    """A page of a list. next: the cursor of the next page, None on the last one."""

    items: list[Item]
    next: Cursor = None


class BulkReply(Reply, Generic[Item]):
    """The answers to a bulk request, in the order of its items."""

    items: list[Item | Unanswered]
