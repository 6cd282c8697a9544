"""What goes over the wire, as models with examples: the OpenAPI document is made of them.

Requests are read by `body.py`, which is stricter and faster than a model; the tests hold both to each other.
Answers may have further fields than are listed here.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_ARMS, MOST_UNITS = 1000, 1000
Name = Annotated[str, Field(min_length=1, max_length=100)]
UnitName = Annotated[str, Field(min_length=1, max_length=200)]
UnitNumber = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Unit = UnitName | UnitNumber | None
Number = Annotated[float, Field(allow_inf_nan=False)]
RoundNumber = Annotated[int, Field(ge=1, lt=2**63)]
Days = Annotated[float, Field(gt=0)] | str
State = Literal["draft", "running", "paused", "finished"]


def request(example: dict[str, Any]) -> ConfigDict:
    """Return the settings of a model of a request: unknown keys are errors."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


def reply(example: dict[str, Any]) -> ConfigDict:
    """Return the settings of a model of an answer: it may grow."""
    return ConfigDict(extra="allow", json_schema_extra={"examples": [example]})


class CarryOver(BaseModel):
    """For how long an effect lingers, in days or words: a window after which it is over, or a half-life."""

    model_config = request({"window": "7 days", "round_length": "1 day"})

    window: Days | None = None
    half_life: Days | None = None
    round_length: Days | None = None


class NewExperiment(BaseModel):
    """An experiment to make. Exactly one of max_delay and carry_over says for how long an effect lingers."""

    model_config = request(
        {"name": "Autumn mailings", "arms": ["letter", "email", "nothing"], "low": 0, "high": 50, "max_delay": 2}
    )

    name: Annotated[str, Field(min_length=1, max_length=200)]
    arms: Annotated[list[Name], Field(min_length=2, max_length=MOST_ARMS, json_schema_extra={"uniqueItems": True})]
    low: Annotated[Number | None, Field(description="The least that one action's total effect can be.")] = 0.0
    high: Annotated[Number | None, Field(description="The most that one action's total effect can be.")] = 1.0
    max_delay: Annotated[int | None, Field(ge=0, le=10_000, description="d, in rounds.")] = None
    carry_over: CarryOver | None = None
    direction: Literal["maximize", "minimize"] | None = "maximize"
    horizon: Annotated[int | None, Field(ge=1, lt=2**63, description="Rounds in all; open-ended if null.")] = None
    units: Annotated[
        Annotated[int, Field(ge=1, le=MOST_UNITS)] | list[Name | UnitNumber] | None,
        Field(description="How many units play in parallel, or their names; one if null."),
    ] = None
    player: Annotated[
        Literal["default", "paper"] | None, Field(description='"paper" needs a horizon.')
    ] = "default"
    tuning: Annotated[
        dict[str, Any] | None,
        Field(description='For "paper": base ("tsallis", "exp3"), form ("printed", "sharp"). Else nothing.'),
    ] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**64, description="Of all draws; drawn if null.")] = None
    draft: Annotated[bool | None, Field(description="Do not start it yet.")] = False
    start_date: Annotated[str | None, Field(description="The date of round 1, as 2026-01-31.")] = None
    round_length: Annotated[Days | None, Field(description="In days, or in words.")] = None


class Experiment(BaseModel):
    """An experiment as people see it: its settings, its state, what it has learned and what is guaranteed."""

    model_config = reply(
        {"id": "pZk2Yt0nQ9vLr8sXw1aBcA", "name": "Autumn mailings", "state": "running",
         "arms": ["letter", "email", "nothing"], "units": ["1"], "direction": "maximize", "low": 0.0, "high": 50.0,
         "max_delay": 2, "horizon": None, "player": "default", "round": 0, "open_round": None}
    )

    id: str
    name: str
    state: State
    arms: list[str]
    units: list[str]
    direction: Literal["maximize", "minimize"]
    low: float
    high: float
    max_delay: int
    horizon: int | None
    player: str
    round: int
    open_round: int | None


class Ask(BaseModel):
    """Whose arm is wanted; without a unit, the first one that has not reported yet. The body may be left out."""

    model_config = request({"unit": "north"})

    unit: Unit = None


class Turn(BaseModel):
    """What to play: the same answer until the round is reported."""

    model_config = reply(
        {"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "round": 17, "arm": "email", "unit": "1", "draw": False, "block": 3,
         "probability": 0.41, "washin": False, "measured": None, "date": "2026-01-17",
         "why": "The arm stays: the block lasts until enough rounds have been measured."}
    )

    experiment: str
    round: RoundNumber
    arm: str
    unit: str
    draw: bool
    block: int
    probability: Annotated[float, Field(ge=0, le=1)]
    washin: bool
    measured: bool | None
    why: str
    date: str | None


class Tell(BaseModel):
    """The total of a round: one number, or null if no report will come."""

    model_config = request({"total": 31.5})

    total: Number | None
    unit: Unit = None


class Report(BaseModel):
    """What became of a reported total: "reported", "missing", or "void" where it lies outside the range."""

    model_config = reply(
        {"experiment": "pZk2Yt0nQ9vLr8sXw1aBcA", "round": 17, "unit": "1", "arm": "email", "total": 31.5,
         "status": "reported", "update": False}
    )

    experiment: str
    round: RoundNumber
    unit: str
    arm: str
    total: float | None
    status: str


class Problem(BaseModel):
    """Why a request was refused (RFC 9457). `code` is for programs, `detail` for people."""

    model_config = reply(
        {"type": "urn:aftereffect:conflict", "title": "The round has another report already", "status": 409,
         "detail": "round 17 was reported as 31.5, but got 30.0; amend corrects it", "code": "conflict"}
    )

    type: str
    title: str
    status: int
    detail: str
    code: str


class PlanQuestion(BaseModel):
    """What to plan for. Arms and units by number or by name; exactly one of max_delay and carry_over."""

    model_config = request({"arms": 3, "carry_over": {"window": "7 days"}, "units": 4})

    arms: Annotated[int, Field(ge=2, le=MOST_ARMS)] | list[Name] | None = None
    n_arms: Annotated[int | None, Field(ge=2, le=MOST_ARMS, description="The same as arms.")] = None
    max_delay: Annotated[int | None, Field(ge=0, le=10_000)] = None
    carry_over: CarryOver | None = None
    horizon: Annotated[int | None, Field(ge=1, lt=2**63)] = None
    units: Annotated[int, Field(ge=1, le=MOST_UNITS)] | list[Name | UnitNumber] | None = None
    round_length: Days | None = None
    direction: Literal["maximize", "minimize"] | None = "maximize"
    low: Number | None = 0.0
    high: Number | None = 1.0
    player: Annotated[
        Literal["default", "paper"] | None, Field(description='"paper" needs a horizon.')
    ] = "default"
    tuning: dict[str, Any] | None = None


class Plan(BaseModel):
    """What a carry-over leads to, before anything starts."""

    model_config = reply(
        {"max_delay": 7, "shortest_block": 8, "mean_block": 28.6, "decisions_per_quarter": 3.2,
         "informative_from": 4600, "sentences": ["An arm stays for a block of at least 8 rounds."]}
    )

    max_delay: int
    shortest_block: int
    mean_block: float
    decisions_per_quarter: float
    informative_from: int | None
    sentences: list[str]


class NewToken(BaseModel):
    """A token to make. Scopes: read; play may ask, tell and amend too; admin all else: experiments, tokens."""

    model_config = request({"name": "till system", "scopes": ["play"]})

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scopes: Annotated[list[Literal["read", "play", "admin"]], Field(min_length=1)]


class Token(BaseModel):
    """A new token. This answer is the only place where it is ever shown."""

    model_config = reply({"name": "till system", "scopes": ["play"], "token": "…"})

    name: str
    scopes: list[str]
    token: str


class Health(BaseModel):
    """The store answers, and takes writes."""

    model_config = reply({"status": "ok"})

    status: Literal["ok"]
