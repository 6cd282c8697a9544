"""The settings of an experiment, with all their rules.

`Design` has the settings that a plan depends on; `ExperimentSettings` adds the others. A duration is a number of days
or words like "7 days" or "36 hours". In requests, null stands for the default.
"""

import datetime
import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from aftereffect.carryover.delay import choose_delay
from aftereffect.core import effects
from aftereffect.core.checks import shown
from aftereffect.service.errors import Corrupt, FieldError, Refused, checked

if TYPE_CHECKING:
    from aftereffect.service.messages import Overview

MOST_ARMS = MOST_UNITS = 1_000
MOST_PRIOR, WARM_UPDATES = 1_000, 10
"""The largest number of updates that a prior may be worth, and that of another experiment unless another is asked for.

Ten updates cost at most ten blocks with the worst of the arms measured instead of the best, if all of it is wrong: less
than a tenth of what the worst case allows after a hundred updates with two arms, if the means differ by half the range.
"""
MOST_DELAY = 10_000
MOST_LAG, USUAL_LAG = 60, 14
"""The longest lag that a model looks for, and the one unless another is given; in rounds."""
MOST_MODEL_ARMS, MOST_MODEL_TOTALS, MOST_MODEL_ROUNDS = 20, 50_000, 200_000
"""Maximum of arms, of totals, and of rounds × arms² in a model of all totals, which is then made in seconds."""
MOST_CELLS = 100_000
"""Maximum of units × (max_delay + 1); the totals of the open block, a few times as many, are kept in memory."""
LARGEST = 2**63 - 1
NARROWEST, WIDEST = 1e-303, 1e100
"""The smallest and the largest range of effects, and the largest total: fractions of the range must not underflow, nor
sums of squares overflow, as JSON has no infinity."""
SHORTEST, LONGEST = 1e-9, 36_525.0
"""Durations, in days: from a tenth of a millisecond to a century."""
DAYS = {
    **{"second": 1 / 86_400, "minute": 1 / 1_440, "hour": 1 / 24, "day": 1.0, "week": 7.0},
    **{"month": 365.25 / 12, "quarter": 365.25 / 4, "year": 365.25},
}

_DURATION = re.compile(r"(?:(\d{1,9}(?:\.\d{1,9})?|an?)\s*)?([a-z]+?)s?", re.IGNORECASE | re.ASCII)


def printable(text: str) -> str:
    """Refuse a name that is blank or contains control characters, line separators or lone surrogates."""
    if not text.strip() or (
        not text.isprintable() and any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text)
    ):
        raise ValueError(f"must not be blank or contain control characters or lone surrogates, but got {shown(text)}")
    return text


def trimmed(text: str) -> str:
    """Refuse a name that begins or ends with a space, which nobody sees and files of totals do not keep."""
    if text != text.strip():
        raise ValueError(f"must not begin or end with a space, but got {shown(text)}")
    return text


def distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a list that contains a name twice."""
    if len({*names}) < len(names):
        raise ValueError(f"must be distinct, but got {shown(Counter(names).most_common(1)[0][0])} twice")
    return names


def days(value: Any) -> float:
    """Return a duration in days, from a tenth of a millisecond to a century.

    >>> days("2 weeks"), days("36 hours"), days(7), days("a day")
    (14.0, 1.5, 7.0, 1.0)
    """
    length = value
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip()) if len(value) <= 100 else None
        unit = match.group(2).lower() if match else ""
        if match is None or unit not in DAYS:
            raise ValueError(
                f"must be a number of days or words like '7 days' ({', '.join(DAYS)}), but got {shown(value)}"
            )
        number = match.group(1)
        length = DAYS[unit] * (1.0 if number is None or number[0] in "aA" else float(number))
    if isinstance(length, bool) or not isinstance(length, int | float) or not SHORTEST <= length <= LONGEST:
        raise ValueError(f"must be at least {SHORTEST:g} and at most {LONGEST:g} days, but got {shown(value)}")
    return float(length)


def duration(length: float) -> str:
    """Return a number of days as text.

    >>> duration(14.0), duration(1.0), duration(0.25), duration(10.0)
    ('2 weeks', '1 day', '6 hours', '10 days')
    """
    for unit in ("week", "day", "hour", "minute"):
        count = length / DAYS[unit]
        if count >= 1.0 and math.isclose(count, round(count), rel_tol=1e-9):
            return f"{round(count)} {unit}" + ("" if round(count) == 1 else "s")
    return f"{length:.3g} days"


def _is_duration(value: Any) -> Any:
    days(value)
    return value


def _calendar_date(text: str) -> str:
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").date().isoformat()
    except ValueError:
        raise ValueError(f"must be a date like 2026-01-31, but got {shown(text)}") from None


def unit_name(value: Any) -> Any:
    """Return an integer as the name of a unit, other values unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _count(least: int, most: int) -> BeforeValidator:
    """Accept a number n in place of the names "1" to "n"."""

    def named(value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        if not least <= value <= most:
            raise ValueError(f"must be at {f'least {least}' if value < least else f'most {most}'}, but got {value}")
        return tuple(str(i + 1) for i in range(value))

    return BeforeValidator(named, json_schema_input_type=Annotated[int, Field(ge=least, le=most)] | tuple[Name, ...])


def nullable(schema: dict[str, Any]) -> None:
    """Allow null in a JSON schema for every field with a default."""
    for name, field in schema["properties"].items():
        if name not in schema.get("required", ()) and {"type": "null"} not in field.get("anyOf", ()):
            described = {key: field.pop(key) for key in ("title", "description", "default") if key in field}
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}], **described}


Text = Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(printable)]
Name = Annotated[
    str, Field(strict=True, min_length=1, max_length=100), AfterValidator(printable), AfterValidator(trimmed)
]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Date = Annotated[str, Field(strict=True), AfterValidator(_calendar_date)]
Duration = Annotated[
    int | float | str,
    BeforeValidator(_is_duration, json_schema_input_type=Annotated[float, Field(ge=SHORTEST, le=LONGEST)] | str),
]
Arms = Annotated[
    tuple[Name, ...],
    Field(min_length=2, max_length=MOST_ARMS, json_schema_extra={"uniqueItems": True}),
    AfterValidator(distinct),
]
Player = Literal["advised", "model", "paper"]
Units = Annotated[
    tuple[Annotated[Name, BeforeValidator(unit_name, json_schema_input_type=Name | int)], ...],
    Field(min_length=1, max_length=MOST_UNITS),
    _count(1, MOST_UNITS),
    AfterValidator(distinct),
]


class Part(BaseModel):
    """A part of the settings whose fields are all optional."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def given(self) -> dict[str, Any]:
        """Return the fields that were given."""
        return self.model_dump(exclude_none=True)


class CarryOver(Part, json_schema_extra={"examples": [{"window": "7 days"}]}):
    """How long an effect lasts: a window after which it is over, or a half-life."""

    window: Duration | None = None
    """No effect lasts longer than this: "7 days", "2 weeks"."""
    half_life: Duration | None = None
    """Half of an effect has arrived after this long, half of the rest after the same time again: "3 days". The
    carry-over is the one with the best guarantee; effects that arrive later are part of the guarantee."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.window is None) == (self.half_life is None):
            raise ValueError(f"must have exactly one of window and half_life, but got {shown(self.given())}")
        return self

    def rounds(self, round_length: float, design: Mapping[str, Any]) -> int:
        """Return max_delay for rounds of this many days. design: the arms, the range, the direction and the horizon.

        A window of w days extends ⌈w/r⌉ rounds of r days beyond the round of the action, whenever in that round the
        action was. With a half-life, effects fade from the beginning of the action's round, and max_delay is that of
        `choose_delay`: what arrives later is part of the guarantee.

        >>> CarryOver(window="9 weeks").rounds(7.0, {})
        9
        """
        if self.half_life is None:
            # Tolerate rounding errors: 7 days in rounds of 1/7 week are 7 rounds, not 8.
            return math.ceil(days(self.window) / round_length - 1e-9)
        # Only the signs of the range matter; an invalid range is refused later.
        ends = {"low": -float(design["low"] < 0.0), "high": float(design["high"] > 0.0 or design["low"] >= 0.0)}
        # At the ends of this range, max_delay is 0, and more than MOST_DELAY.
        rounds = min(max(days(self.half_life) / round_length, 1e-3), 2.0 * MOST_DELAY)
        return _chosen(rounds, len(design["arms"]), design["horizon"], design["direction"], **ends)


@functools.lru_cache(maxsize=1024)
def _chosen(half_life: float, n_arms: int, horizon: int | None, direction: str, low: float, high: float) -> int:
    given: dict[str, Any] = {"n_arms": n_arms, "horizon": horizon, "direction": direction, "low": low, "high": high}
    return choose_delay(half_life=half_life, **given).max_delay


class PriorMeans(Part):
    """What is known about the arms before round 1: the mean effect of an action of each arm, and what that is worth.

    updates: as many updates as this is worth; the guarantee includes what it costs if it is wrong, at most that many
    blocks with the worst of these arms instead of the best. experiment: the id of the experiment that measured it.
    """

    means: dict[Name, Number]
    updates: float = Field(strict=True, ge=0.0, le=MOST_PRIOR, allow_inf_nan=False)
    experiment: Text | None = None


class WarmStart(Part):
    """Begin with what an experiment has measured. updates: what that is worth, by default as many updates as it made,
    but at most 10.
    """

    experiment: str = Field(strict=True, min_length=1, max_length=100, description="The id of an experiment.")
    updates: float | None = Field(None, strict=True, ge=0.0, le=MOST_PRIOR, allow_inf_nan=False)


class Design(BaseModel):
    """The settings that determine the course of an experiment.

    How long do effects last? Give max_delay or carry_over, from which it is computed, and high; or neither, if you do
    not know: then the player is "model". arms, units: names. round_length: in days. max_delay: in rounds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", json_schema_extra=nullable, use_attribute_docstrings=True)

    arms: Arms
    low: Number = 0.0
    """The smallest effect of one action, over any consecutive rounds."""
    high: Number | None = None
    """The largest effect of one action, over any consecutive rounds; only for a guarantee."""
    out_of_range: Literal["void", "clip"] = "void"
    """A total that the range makes impossible is recorded; for learning it is dropped (void), because it may be a
    typing error, or counted as the nearest possible one (clip), which avoids a bias."""
    direction: Literal["maximize", "minimize"] = "maximize"
    """maximize or minimize; by default maximize."""
    carry_over: CarryOver | None = None
    round_length: Annotated[float, BeforeValidator(days, json_schema_input_type=Duration)] = 1.0
    """How long a round is: "1 day", "1 week"; by default a day."""
    horizon: int | None = Field(None, strict=True, ge=1, le=LARGEST)
    """Rounds; by default open-ended."""
    units: Units = ("1",)
    """How many units play in parallel, or their names; as text, separated by commas."""
    player: Player = Field("advised", json_schema_extra={"default": None})
    """"advised" has a guarantee; "model" needs to know neither how long effects last nor their range, and is used if
    max_delay and carry_over are omitted; "paper" needs a horizon."""
    max_lag: int | None = Field(None, strict=True, ge=1, le=MOST_LAG)
    """For "model": the longest lag it looks for, in rounds."""
    max_delay: int = Field(0, strict=True, ge=0, le=MOST_DELAY, json_schema_extra={"default": None})
    """d: how many rounds after its own an effect can still arrive."""
    prior: PriorMeans | None = None
    """What is known about the arms before round 1."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        known = {key: value for key, value in given.items() if value is not None}
        player = "advised" if known.keys() & {"max_delay", "carry_over"} else "model"
        # The validator below computes max_delay; it runs only if the field is present.
        return {"max_delay": None, "player": player, **known}

    @field_validator("max_delay", mode="before", json_schema_input_type=Annotated[int, Field(ge=0, le=MOST_DELAY)])
    @classmethod
    def _in_rounds(cls, value: Any, info: ValidationInfo) -> Any:
        words = info.data.get("carry_over")
        if info.data.get("player") == "model":
            # A stored one has the 0 returned here.
            if words is not None or value not in (None, 0):
                raise ValueError(f"and carry_over must be omitted for player 'model', but got {shown(words or value)}")
            return 0
        if words is None or "round_length" not in info.data:
            if value is None and "player" in info.data:
                who = info.data["player"]
                raise ValueError(f"or carry_over must be given for player {who!r}, but both are missing")
            return 0 if value is None else value
        if value is not None:
            raise ValueError(f"must be omitted if carry_over (a window or half-life) is given, but got {shown(value)}")
        # If one of the others is invalid, that is what is reported.
        others = {"arms", "low", "high", "direction", "horizon"} <= info.data.keys()
        return words.rounds(info.data["round_length"], info.data) if others and info.data["high"] is not None else 0

    @property
    def late_share(self) -> float:
        """The share of an effect with a half-life that arrives more than max_delay rounds after the action."""
        half_life = None if self.carry_over is None else self.carry_over.half_life
        return 0.0 if half_life is None else 2.0 ** (-(self.max_delay + 1) * self.round_length / days(half_life))

    @property
    def limits(self) -> tuple[float, float]:
        """The smallest and the largest possible total: one effect of each of the latest max_delay + 1 actions."""
        if self.high is None:
            return -WIDEST, WIDEST
        lo, hi = self.span
        return (self.max_delay + 1) * lo, (self.max_delay + 1) * hi

    @property
    def span(self) -> tuple[float, float]:
        """The range of every part of one action's effect, which a guarantee needs."""
        if self.high is None:
            raise RuntimeError("there is no range of effects")
        return min(self.low, 0.0), max(self.high, 0.0)

    @property
    def longest_lag(self) -> int:
        """The longest lag that a model of all totals looks for, in rounds."""
        return self.max_lag or min(max(USUAL_LAG, 2 * self.max_delay + 1), MOST_LAG)

    @property
    def season(self) -> int | None:
        """The period of the totals that a model assumes: a week, if rounds are days."""
        return 7 if self.round_length == 1.0 else None

    @property
    def last_round(self) -> int | None:
        """The round after which the experiment is finished; None if it goes on until somebody finishes it."""
        return self.model_rounds if self.player == "model" and self.horizon is None else self.horizon

    @functools.cached_property
    def advised(self) -> bool:
        """Whether a model of all totals advises the player: not of too many arms, or of effects that last too long."""
        return self.player == "advised" and self.model_rounds > 0 and self.max_delay <= MOST_LAG

    @functools.cached_property
    def heard_limits(self) -> tuple[float, float]:
        """`limits`, wider by what sums of floats are rounded."""
        if self.high is None:
            return self.limits
        return effects.stretch_bounds(effects.effects(self.direction, self.low, self.high), self.max_delay, 1)

    def heard(self, total: float | None) -> float | None:
        """Return a total as a model hears it; None if it is missing, or out of range and void."""
        if total is None:
            return None
        least, most = self.heard_limits
        if self.out_of_range == "void" and not least <= total <= most:
            return None
        return min(max(total, least), most)

    @functools.cached_property
    def model_rounds(self) -> int:
        """The maximum of rounds in a model of all totals; 0 if there is none with so many arms."""
        K = len(self.arms)
        return 0 if K > MOST_MODEL_ARMS else min(MOST_MODEL_TOTALS // len(self.units), MOST_MODEL_ROUNDS // K**2)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.player == "model":
            self._check_model()
            return self
        if self.max_lag is not None:
            raise FieldError("max_lag", f"must be omitted unless player is 'model', but got {self.max_lag}")
        if self.high is None:
            raise FieldError("high", f"must be given for player {self.player!r}, but is missing")
        if not self.low < self.high:
            raise FieldError("low", f"must be less than high, but got low={self.low!r} and high={self.high!r}")
        lo, hi = self.span
        if hi - lo > WIDEST or hi - lo < NARROWEST:
            rule = f"most {WIDEST:g}" if hi - lo > WIDEST else f"least {NARROWEST:g}"
            raise FieldError("high", f"- low must be at {rule}, but got {hi - lo!r}")
        if len(self.units) * (self.max_delay + 1) > MOST_CELLS:
            cells = f"{len(self.units)} * {self.max_delay + 1}"
            raise FieldError("units", f"times (max_delay + 1) must be at most {MOST_CELLS}, but got {cells}")
        if self.player == "paper" and self.horizon is None:
            raise FieldError("horizon", "must be given for player 'paper', whose rates depend on it, but got None")
        if self.prior is not None:
            self._check_prior(self.prior, lo, hi)
        return self

    def _check_model(self) -> None:
        for name in ("low", "high", "prior"):
            if getattr(self, name) != type(self).model_fields[name].default:
                got = shown(getattr(self, name))
                rule = "must be omitted for player 'model', which is that of settings without max_delay and carry_over"
                raise FieldError(name, f"{rule}, but got {got}")
        if not self.model_rounds:
            raise FieldError("arms", f"must be at most {MOST_MODEL_ARMS} for player 'model', but got {len(self.arms)}")
        if self.horizon is not None and self.horizon > self.model_rounds:
            rule = f"must be at most {self.model_rounds:,} for player 'model' with so many arms and units"
            raise FieldError("horizon", f"{rule}, but got {self.horizon}")

    def _check_prior(self, prior: PriorMeans, lo: float, hi: float) -> None:
        if self.player == "paper":
            raise FieldError("prior", "must be omitted with player 'paper', which cannot use it, but it is given")
        if prior.means.keys() != {*self.arms}:
            got = shown(list(prior.means))
            raise FieldError("prior", f"must have a mean for each of {shown(list(self.arms))}, but got {got}")
        for mean in prior.means.values():
            if not lo <= mean <= hi:
                rule = f"least {lo:g}" if mean < lo else f"most {hi:g}"
                raise FieldError("prior", f"must be at {rule}, but got {mean!r}")


class PlanQuestion(Design):
    """The design to plan for; arms: their names or their number."""

    arms: Annotated[Arms, _count(2, MOST_ARMS)]
    # A plan does not depend on the unit of the totals.
    high: Number = 1.0
    """The largest effect of one action, over any consecutive rounds."""
    gap: Number | None = Field(None, gt=0.0)
    """A guess: how much more an action of the best arm brings than one of the next; by default a tenth of the range."""
    noise: Number | None = Field(None, ge=0.0)
    """A guess: the standard deviation of a total if the arm never changes; by default a tenth of the range."""


def _with_example(schema: dict[str, Any]) -> None:
    nullable(schema)
    schema["examples"] = [{"name": "Autumn mailings", "arms": ["letter", "email"], "high": 50, "max_delay": 2}]


class ExperimentSettings(Design, json_schema_extra=_with_example):
    """The settings of an experiment."""

    name: Text
    """Its name."""
    seed: int | None = Field(None, strict=True, ge=0, le=2**64 - 1)
    """The random seed; by default drawn."""
    draft: bool = Field(False, strict=True)
    """Do not start it yet."""
    measure: Name | None = None
    """What a total counts, such as "orders" or "EUR"."""
    start_date: Date | None = None
    """The date of round 1, such as 2026-01-31."""
    warm_start: WarmStart | None = None
    """Begin with what another experiment has measured."""

    @model_validator(mode="after")
    def _one_beginning(self) -> Self:
        if self.warm_start is not None and (self.prior is not None or self.player == "paper"):
            rule = "must be omitted with a prior and with player 'paper'"
            raise FieldError("warm_start", f"{rule}, but got {shown(self.warm_start.given())}")
        return self

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON; `from_json` reads them back."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_json(cls, fields: Any) -> Self:
        """Return the settings that `to_json` wrote, with the max_delay stored; raise Corrupt for anything else."""
        words = fields.get("carry_over") if isinstance(fields, Mapping) else None
        try:
            if words is None:
                return checked(cls, fields, "settings")
            found = checked(cls, {**fields, "carry_over": None}, "settings")
            return found.model_copy(update={"carry_over": checked(CarryOver, words, "carry_over")})
        except Refused as error:
            raise Corrupt(f"stored settings must be valid, but {error}") from None

    def seeded(self, seed: int) -> Self:
        """Return the settings with this seed, unless they have one."""
        return self if self.seed is not None else self.model_copy(update={"seed": seed})


def checked_settings(given: Any) -> ExperimentSettings:
    """Return validated settings, or refuse with argument, rule and value.

    >>> checked_settings({"name": "Mail", "arms": ["A", "B"], "high": 50, "max_delay": 3}).direction
    'maximize'
    """
    return checked(ExperimentSettings, given, "settings")


def corrected(known: "Overview", changes: Mapping[str, Any]) -> ExperimentSettings:
    """Return the settings of an experiment with some of them changed.

    The seed stays the same. Unless a name is given, the new one is that of the old experiment and "(corrected)".
    """
    changes = {name: value for name, value in changes.items() if value is not None}
    if not changes:
        raise Refused("invalid", "a setting to correct must be given, such as high, but none is")
    dropped = {*(["prior"] if "arms" in changes else []), *_replaced(known, changes)}
    return checked_settings(_kept(known, dropped, "corrected", "the rounds are inherited", changes) | changes)


def _kept(
    known: "Overview", dropped: Collection[str], how: str, begins: str, changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of an experiment but those dropped, with the name of its successor, or refuse a warm start.

    begins: how the successor begins.
    """
    if "warm_start" in changes:
        detail = f"warm_start must be omitted, because {begins}, but it is given"
        raise Refused("invalid", detail, field="warm_start")
    kept = known.model_dump(include=ExperimentSettings.model_fields.keys() - {*dropped})
    return kept | {"name": f"{known.name.removesuffix(f' ({how})')[:180]} ({how})"}


def _replaced(known: "Overview", changes: Mapping[str, Any]) -> set[str]:
    """Return the settings on how long effects last that changes replace, or that follow from others."""
    lengths, was = {"max_delay", "carry_over"}, known.player == "model"
    models = changes.get("player", "model" if was and not lengths & changes.keys() else None) == "model"
    if was != models:
        return lengths | {"player", "max_lag", "low", "high", "out_of_range", "prior"}
    if lengths & changes.keys():
        return lengths
    return {"max_delay"} if was or known.carry_over is not None else set()


def continued(
    known: "Overview", add: Sequence[str], retire: Sequence[str], changes: Mapping[str, Any]
) -> ExperimentSettings:
    """Return the settings of an experiment that goes on from this one with other arms, or with another player.

    Its rounds are numbered from 1 again, and its horizon is what is left. The seed is new.
    """
    if known.state == "draft":
        raise Refused("wrong_state", "the experiment must have begun to be continued, but it is a draft", state="draft")
    if not add and not retire and not {"max_delay", "carry_over", "player"} & changes.keys():
        rule = "add or retire must name an arm, or max_delay, carry_over or player be given"
        raise Refused("invalid", f"{rule}, but nothing is to change", field="add")
    dropped = {"seed", "prior", "arms", "start_date", "horizon", *_replaced(known, changes)}
    kept = _kept(known, dropped, "continued", "it is this experiment", changes)
    arms = {*known.arms}
    wrong = {"retire must be arms of the experiment": {*retire} - arms, "add must be new arms": {*add} & arms}
    for rule, names in wrong.items():
        if names:
            raise Refused("invalid", f"{rule}, but got {shown(min(names))}", field=rule.split()[0])
    if known.horizon is not None and known.horizon > known.round:
        kept["horizon"] = known.horizon - known.round
    if known.start_date is not None and known.due is not None:
        kept["start_date"] = known.due.date
    kept |= {"arms": [arm for arm in known.arms if arm not in retire] + list(add)}
    return checked_settings({**kept, "warm_start": {"experiment": known.id}, **changes})


def warmed(
    settings: ExperimentSettings, source: str, known: Mapping[str, float], rounds: int, *, required: bool
) -> ExperimentSettings:
    """Return settings with `prior` in place of `warm_start`: what an experiment has shown.

    known: the whole effects of its arms that were played, relative to their mean. rounds: in how many. An arm that is
    not among them gets the best of them, so that it is tried. The prior counts by the differences of its means
    alone: they are moved to the middle of the range. The player "model" needs no prior: it remembers the rounds.
    required: refuse if nothing is known; otherwise there is no prior then.
    """
    found = {arm: known[arm] for arm in settings.arms if arm in known}
    if not found and required:
        rule = "warm_start must be an experiment that has played one of the arms and has a model"
        raise Refused("invalid", f"{rule}, but got {shown(source)}, which has not", field="warm_start")
    if not found or settings.player == "model":
        return settings.model_copy(update={"warm_start": None})
    best = (max if settings.direction == "maximize" else min)(found.values())
    lo, hi = settings.span
    worth = None if settings.warm_start is None else settings.warm_start.updates
    prior = PriorMeans(
        means={arm: min(max((lo + hi) / 2.0 + found.get(arm, best), lo), hi) for arm in settings.arms},
        updates=float(min(rounds // (3 * settings.max_delay + 3), WARM_UPDATES)) if worth is None else float(worth),
        experiment=source,
    )
    return settings.model_copy(update={"prior": prior, "warm_start": None})
