"""The settings of an experiment, and every rule about them in one place."""

import dataclasses
import datetime
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Self

from aftereffect.core import checks, effects
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.service.errors import Corrupt, Refused

DAYS = {
    "second": 1 / 86_400,
    "minute": 1 / 1_440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "month": 365.25 / 12,
    "quarter": 365.25 / 4,
    "year": 365.25,
}
LONGEST = 36_525.0
"""A century, in days."""
LEFT_OVER = 0.05
"""The share of an effect with a half-life that may still come after max_delay rounds."""
MOST_ROUNDS = 10_000

LONGEST_WORDS = 100
_WORDS = re.compile(r"(?:(\d{1,9}(?:\.\d{1,9})?|an?)\s*)?([a-z]+?)s?", re.IGNORECASE | re.ASCII)


def days(name: str, value: Any) -> float:
    """Return a length of time in days, more than 0 and at most a century.

    >>> days("window", "2 weeks"), days("window", "36 hours"), days("window", 7), days("window", "a day")
    (14.0, 1.5, 7.0, 1.0)
    """
    if not isinstance(value, str):
        return checks.real(name, value, above=0.0, high=LONGEST)
    match = _WORDS.fullmatch(value.strip()) if len(value) <= LONGEST_WORDS else None
    unit = match.group(2).lower() if match else ""
    if match is None or unit not in DAYS:
        raise InvalidArgument(
            f"{name} must be a number of days or words like '7 days' ({', '.join(DAYS)}), but got {checks.shown(value)}"
        )
    number = match.group(1)
    count = 1.0 if number is None or number[0] in "aA" else float(number)
    return checks.real(name, count * DAYS[unit], above=0.0, high=LONGEST)


def said(length: float) -> str:
    """Return a number of days in words.

    >>> said(14.0), said(1.0), said(0.25), said(10.0)
    ('2 weeks', '1 day', '6 hours', '10 days')
    """
    for unit in ("week", "day", "hour", "minute"):
        count = length / DAYS[unit]
        if count >= 1.0 and math.isclose(count, round(count), rel_tol=1e-9):
            return f"{round(count)} {unit}" + ("" if round(count) == 1 else "s")
    return f"{length:.3g} days"


def rounds_of_carry_over(*, window: Any = None, half_life: Any = None, round_days: Any = 1.0) -> int:
    """Return d for a carry-over given as a window or as a half-life, in days or in words.

    A window of w days reaches ⌈w/r⌉ rounds of r days past its own, whenever in its round the action was. With a
    half-life h the share 2^(−dr/h) of an effect comes later than d rounds on; d is the least that leaves 5% or less.
    What comes later breaks the assumption of the guarantee by that much.

    >>> rounds_of_carry_over(window="7 days"), rounds_of_carry_over(window="9 weeks", round_days=7)
    (7, 9)
    >>> rounds_of_carry_over(half_life="2 days")
    9
    """
    if (window is None) == (half_life is None):
        raise InvalidArgument(
            f"carry_over must have exactly one of window and half_life, but got window={checks.shown(window)} and "
            f"half_life={checks.shown(half_life)}"
        )
    length = days("round_length", round_days)
    halvings = math.log2(1.0 / LEFT_OVER)
    reach = days("half_life", half_life) * halvings if window is None else days("window", window)
    # Seven days in rounds of a seventh of a week are 7 rounds, whatever the last bit says.
    rounds = math.ceil(reach / length - 1e-9)
    if rounds > MOST_ROUNDS:
        raise InvalidArgument(f"carry_over must reach at most {MOST_ROUNDS} rounds, but got {rounds}")
    return rounds


PLAYERS = ("default", "paper")
"""What they stand for is said in `learners.py`."""
MOST_ARMS, MOST_UNITS = 1_000, 1_000
MOST_CELLS = 100_000
"""units × (max_delay + 1): the totals of the open block, a few times as many, are kept in memory."""
LARGEST = 2**63 - 1
TUNING: dict[str, dict[str, tuple[str, ...]]] = {
    "default": {},
    "paper": {"base": ("tsallis", "exp3"), "form": ("printed", "sharp")},
}
"""What can be set about each player: the default one has nothing to tune, the paper's is CompositeLossWrapper.tuned."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """What an experiment is. Made by `checked_settings`; arms and units by name, round_length in days.

    carry_over: the words max_delay was derived from, None if it was given in rounds.
    """

    name: str
    arms: tuple[str, ...]
    low: float
    high: float
    max_delay: int
    carry_over: dict[str, Any] | None
    direction: str
    horizon: int | None
    units: tuple[str, ...]
    player: str
    tuning: dict[str, Any]
    seed: int | None
    draft: bool
    start_date: str | None
    round_length: float

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON; `from_json` reads them back."""
        fields = {field: getattr(self, field) for field in FIELDS}
        return {**fields, "arms": list(self.arms), "units": list(self.units), "tuning": dict(self.tuning)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote; anything else was not written by it."""
        try:
            if not isinstance(fields, Mapping) or set(fields) != set(FIELDS):
                raise InvalidArgument(f"settings must have the fields {FIELDS}, but got {checks.shown(fields)}")
            given = {name: value for name, value in fields.items() if name != "carry_over"}
            read = checked_settings(given)
        except AftereffectError as error:
            raise Corrupt(f"settings must be what to_json wrote, but {error}") from None
        words = fields["carry_over"]
        kept = {f: getattr(read, f) for f in FIELDS}
        return cls(**{**kept, "carry_over": None if words is None else dict(words)})

    def seeded(self, seed: int) -> Self:
        """Return the settings with this seed, unless they have one."""
        return self if self.seed is not None else dataclasses.replace(self, seed=seed)


FIELDS = tuple(field.name for field in dataclasses.fields(ExperimentSettings))


def checked_settings(given: Mapping[str, Any]) -> ExperimentSettings:
    """Return the settings that a mapping from outside means, or refuse with argument, rule and value.

    >>> checked_settings({"name": "Mail", "arms": ["A", "B"], "max_delay": 3}).direction
    'maximize'
    """
    try:
        return _checked(given)
    except Refused:
        raise
    except AftereffectError as error:
        raise Refused("invalid", str(error)) from None


def _checked(given: Mapping[str, Any]) -> ExperimentSettings:
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"settings must be a mapping, but got {checks.shown(given)}")
    unknown = sorted(str(key) for key in given if key not in FIELDS)
    if unknown:
        raise InvalidArgument(f"settings have no {checks.shown(unknown[0])}; they have {', '.join(FIELDS)}")
    for required in ("name", "arms"):
        if given.get(required) is None:
            raise InvalidArgument(f"{required} must be given, but it is missing")
    name = text("name", given["name"], longest=200)
    arms = names("arms", given["arms"], least=2, most=MOST_ARMS)
    direction = checks.choice("direction", _or(given.get("direction"), "maximize"), ("maximize", "minimize"))
    low, high = number("low", _or(given.get("low"), 0.0)), number("high", _or(given.get("high"), 1.0))
    effects.effects(direction, low, high)
    max_delay, carry_over, round_length = _carry_over(given)
    units = _units(given.get("units"))
    if len(units) * (max_delay + 1) > MOST_CELLS:
        raise InvalidArgument(
            f"units times (max_delay + 1) must be at most {MOST_CELLS}, but got {len(units)} * {max_delay + 1}"
        )
    horizon = given.get("horizon")
    if horizon is not None:
        horizon = checks.integer("horizon", horizon, low=1, high=LARGEST)
    player = checks.choice("player", _or(given.get("player"), "default"), PLAYERS)
    if player == "paper" and horizon is None:
        raise InvalidArgument("horizon must be given for player 'paper', whose rates depend on it, but got None")
    seed = given.get("seed")
    if seed is not None:
        seed = checks.integer("seed", seed, low=0, high=2**64 - 1)
    draft = _or(given.get("draft"), False)
    if not isinstance(draft, bool):
        raise InvalidArgument(f"draft must be true or false, but got {checks.shown(draft)}")
    return ExperimentSettings(
        name=name,
        arms=arms,
        low=low,
        high=high,
        max_delay=max_delay,
        carry_over=carry_over,
        direction=direction,
        horizon=horizon,
        units=units,
        player=player,
        tuning=_tuning(player, given.get("tuning")),
        seed=seed,
        draft=draft,
        start_date=_date(given.get("start_date")),
        round_length=round_length,
    )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def text(name: str, value: Any, *, longest: int) -> str:
    """Return a name people see: 1 to `longest` characters, no control characters, not blank."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} must be text, but got {checks.shown(value)}")
    if not 1 <= len(value) <= longest:
        raise InvalidArgument(f"{name} must have 1 to {longest} characters, but got {len(value)}")
    # Surrogates cannot be written as UTF-8; control characters break lines, logs and terminals.
    if not value.strip() or any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in value):
        raise InvalidArgument(
            f"{name} must not be blank or hold control characters or lone surrogates, but got {checks.shown(value)}"
        )
    return value


def number(name: str, value: Any) -> float:
    """Return a finite float; an int must fit in 63 bits, a bool or text is no number."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST:
        raise InvalidArgument(f"{name} must lie within ±(2**63 - 1), but got {checks.shown(value)}")
    if not isinstance(value, int | float):
        raise InvalidArgument(f"{name} must be a finite number, but got {checks.shown(value)}")
    return checks.real(name, value)


def names(name: str, value: Any, *, least: int, most: int) -> tuple[str, ...]:
    """Return a list of distinct names of at most 100 characters."""
    if not isinstance(value, list | tuple):
        raise InvalidArgument(f"{name} must be a list of names, but got {checks.shown(value)}")
    if not least <= len(value) <= most:
        raise InvalidArgument(f"{name} must have {least} to {most} names, but got {len(value)}")
    found = tuple(text(f"{name}[{i}]", item, longest=100) for i, item in enumerate(value))
    seen: set[str] = set()
    for item in found:
        if item in seen:
            raise InvalidArgument(f"{name} must be distinct, but got {checks.shown(item)} twice")
        seen.add(item)
    return found


def _units(value: Any) -> tuple[str, ...]:
    if value is None:
        return ("1",)
    if isinstance(value, list | tuple):
        return names("units", value, least=1, most=MOST_UNITS)
    return tuple(str(i + 1) for i in range(checks.integer("units", value, low=1, high=MOST_UNITS)))


def _carry_over(given: Mapping[str, Any]) -> tuple[int, dict[str, Any] | None, float]:
    max_delay, words, length = given.get("max_delay"), given.get("carry_over"), given.get("round_length")
    if (max_delay is None) == (words is None):
        raise InvalidArgument(
            f"exactly one of max_delay and carry_over must be given, but got max_delay={checks.shown(max_delay)} and "
            f"carry_over={checks.shown(words)}"
        )
    if words is None:
        rounds = checks.integer("max_delay", max_delay, low=0, high=MOST_ROUNDS)
        return rounds, None, days("round_length", _or(length, 1.0))
    if not isinstance(words, Mapping):
        raise InvalidArgument(f"carry_over must be a mapping, but got {checks.shown(words)}")
    unknown = sorted(str(key) for key in words if key not in ("window", "half_life", "round_length"))
    if unknown:
        raise InvalidArgument(
            f"carry_over may have window or half_life, and round_length, but got {checks.shown(unknown[0])}"
        )
    inner = words.get("round_length")
    outer_days = days("round_length", _or(_or(length, inner), 1.0))
    if inner is not None and days("carry_over.round_length", inner) != outer_days:
        raise InvalidArgument(
            f"round_length must be the same in carry_over, but got {checks.shown(length)} and {checks.shown(inner)}"
        )
    window, half_life = words.get("window"), words.get("half_life")
    rounds = rounds_of_carry_over(window=window, half_life=half_life, round_days=outer_days)
    return rounds, {key: value for key, value in words.items() if value is not None}, outer_days


def _tuning(player: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidArgument(f"tuning must be a mapping, but got {checks.shown(value)}")
    known = TUNING[player]
    unknown = sorted(str(key) for key in value if key not in known)
    if unknown:
        may = f"may have {', '.join(known)}" if known else "must be empty, since there is nothing to tune,"
        raise InvalidArgument(f"tuning {may} for player {player!r}, but got {checks.shown(unknown[0])}")
    return {key: checks.choice(f"tuning.{key}", item, known[key]) for key, item in value.items()}


def _date(value: Any) -> str | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str) or len(value) != 10:
            raise ValueError
        return datetime.date.fromisoformat(value).isoformat()
    except ValueError:
        raise InvalidArgument(f"start_date must be a date like 2026-01-31, but got {checks.shown(value)}") from None
