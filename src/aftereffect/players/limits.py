"""The arguments common to all players: direction, range of effects, seed, and what to do with totals out of range."""

import math
from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, NamedTuple, TypedDict, TypeVar, get_args

from aftereffect.core import effects, kernel
from aftereffect.core.kernel import FED, FloatState, WordState, helper

OUT_OF_RANGE = ("raise", "void", "clip")
RAISE, VOID, CLIP = 0, 1, 2


class Range(TypedDict, total=False):
    """The arguments common to all players.

    direction, low, high: "minimize" losses or "maximize" rewards; bounds on the whole effect of one action, by default
        0 and 1. With lo = min(low, 0) and hi = max(high, 0), every contiguous part of one action's effect must lie in
        [lo, hi].
    seed: the seed of the random streams; None takes one from the operating system.
    """

    direction: str
    low: float
    high: float
    seed: int | None


class Common(Range, total=False):
    """The arguments common to all players under anonymous feedback.

    out_of_range: what to do with a total that is impossible for this range: "raise" an error and change nothing (the
        default), treat it as missing ("void"), or "clip" it. The possible totals are (d+1)·[lo, hi] if the player is
        given max_delay, else t·[lo, hi] in round t.
    """

    out_of_range: str


USUAL: dict[str, Any] = {"direction": "minimize", "low": 0.0, "high": 1.0, "out_of_range": "raise", "seed": None}
"""The defaults of these arguments, in the order in which they are shown."""
Function = TypeVar("Function", bound=Callable[..., Any])


def spelled_out(function: Function) -> Function:
    """Let `help` and `inspect` show the arguments that a function takes as `**common: Unpack[...]` one by one."""
    shown = signature(function)
    *own, last = shown.parameters.values()
    kind = get_args(last.annotation)[0] if last.kind is Parameter.VAR_KEYWORD and get_args(last.annotation) else None
    if kind in (Range, Common):
        common = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=usual, annotation=kind.__annotations__[name])
            for name, usual in USUAL.items()
            if name in kind.__annotations__
        ]
        vars(function)["__signature__"] = shown.replace(parameters=[*own, *common])
    return function


class Limits(NamedTuple):
    """The range of possible totals, in kernel form.

    least, most: the bounds; if `growing`, they are multiplied by t in round t.
    policy: what to do with totals outside, an index into OUT_OF_RANGE.
    """

    span: effects.Effects
    least: float
    most: float
    growing: bool
    policy: int


def limits_of(span: effects.Effects, parts: int | None, out_of_range: str) -> Limits:
    """Return the limits of a total to which `parts` actions contribute; None: as many as rounds so far."""
    bounds = effects.stretch_bounds(span, 0 if parts is None else parts - 1, 1)
    return Limits(span, *bounds, parts is None, OUT_OF_RANGE.index(out_of_range))


REFUSED = math.inf


@helper
def usable_total(limits: Limits, t: float, total: float) -> float:
    """Return the total of round t as it will be used: NaN if it is missing or void, REFUSED if an error is due."""
    least, most = limits.least, limits.most
    if limits.growing:
        least, most = t * least, t * most
    if total < least or total > most:
        if limits.policy == RAISE:
            return REFUSED
        return min(max(total, least), most) if limits.policy == CLIP else math.nan
    return total


@helper
def tell_total(params: Any, n_arms: int, state: FloatState, rng: WordState, arm: int, total: float, t: int) -> int:
    """Clear the fed loss, and tell a player the total of round t as it will be used; a negative number if refused."""
    state[FED] = math.nan
    used = usable_total(params.limits, t, total)
    if used == REFUSED:
        return -1
    return kernel.player_tell(params, n_arms, state, rng, arm, used)


def total_rule(span: effects.Effects, parts: int | None, t: int) -> str:
    """Return the rule for a total of round t to which `parts` actions contribute (None: t), for error messages."""
    n = t if parts is None else parts
    why = f"the {t} actions so far" if parts is None else f"max_delay + 1 = {n}"
    one = f"the range of one action's effect (low={span.lo:g}, high={span.hi:g})"
    return f"total must lie in [{n * span.lo:g}, {n * span.hi:g}], {one} times {why}"
