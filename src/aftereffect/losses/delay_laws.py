"""Laws of random delays, in whole rounds.

    ("fixed", n)                       always n
    ("uniform", a, b)                  a, a + 1, ..., b, equally likely; "uniform" alone: 0..max_delay
    ("exponential", mean)              rounded to the nearest whole number
    ("poisson", mean)
    ("half_normal", mean, variance)    mean + σ(|Z| - √(2/π)), rounded: its mean is `mean`, σ² = `variance`
    ("positive_normal", mean, variance)    |N(mean, variance)|, rounded

Z is standard normal. A delay greater than `max_delay` is replaced by `max_delay`, so that no effect is lost.

Pike-Burke et al. (2018) use delays N₊(μ, σ²) of mean μ. The variance that fits their curves of ODAAF-V is that of
a half-normal law, σ²(1 - 2/π); "half_normal" has this mean and variance. "positive_normal" is the literal reading
of the symbol. The paper does not say which of the two was used.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument


class Law(NamedTuple):
    """The names of a law's parameters, in order, and the function (random, shape, *parameters) that draws delays."""

    fields: tuple[str, ...]
    draw: Callable[..., NDArray[Any]]


def draw_half_normal(random: Generator, shape: tuple[int, int], mean: float, variance: float) -> NDArray[Any]:
    """Return delays with this mean and this variance."""
    return mean + math.sqrt(variance) * (np.abs(random.standard_normal(size=shape)) - math.sqrt(2.0 / math.pi))


LAWS = {
    "fixed": Law(("delay",), lambda random, shape, delay: np.full(shape, delay)),
    "uniform": Law(("least", "greatest"), lambda random, shape, a, b: random.integers(int(a), int(b) + 1, size=shape)),
    "exponential": Law(("mean",), lambda random, shape, mean: random.exponential(mean, size=shape)),
    "poisson": Law(("mean",), lambda random, shape, mean: random.poisson(mean, size=shape)),
    "half_normal": Law(("mean", "variance"), draw_half_normal),
    "positive_normal": Law(
        ("mean", "variance"), lambda random, shape, mean, v: np.abs(random.normal(mean, math.sqrt(v), size=shape))
    ),
}


def checked_law(law: Any, max_delay: int | None) -> tuple[str, tuple[float, ...]]:
    """Return a law's name and parameters; "uniform" without parameters means uniform on 0..max_delay.

    >>> checked_law("uniform", 9)
    ('uniform', (0.0, 9.0))
    """
    parts = law if isinstance(law, tuple | list) and law else (law,)
    name = checks.choice("law", parts[0], LAWS)
    fields = LAWS[name].fields
    if name == "uniform" and len(parts) == 1:
        if max_delay is None:
            raise InvalidArgument("max_delay must be given for the law 'uniform' without parameters, but got None")
        parts = (name, 0, max_delay)
    if len(parts) != 1 + len(fields):
        wanted = f"({name!r}, {', '.join(fields)})"
        raise InvalidArgument(f"law must have the form {wanted}, but got {checks.shown(law)}")
    named = zip((f"law's {field}" for field in fields), parts[1:], strict=True)
    if name in ("fixed", "uniform"):
        most = np.iinfo(np.int32).max
        numbers = tuple(float(checks.integer(field, value, low=0, high=most)) for field, value in named)
    else:
        numbers = tuple(checks.real(field, value, low=0.0, high=1e18) for field, value in named)
    if name == "uniform" and numbers[0] > numbers[1]:
        raise InvalidArgument(f"law's least must be at most its greatest, but got {checks.shown(law)}")
    if name == "half_normal" and numbers[0] < math.sqrt(2.0 * numbers[1] / math.pi):
        raise InvalidArgument(f"law's mean must be at least √(2·variance/π), but got {checks.shown(law)}")
    return name, numbers


def largest_delay(law: Any, max_delay: int | None) -> int:
    """Return `max_delay`, or, if it is None, the greatest delay of the law, which must then be bounded."""
    if max_delay is not None:
        return checks.integer("max_delay", max_delay, low=0, high=np.iinfo(np.int32).max)
    name, numbers = checked_law(law, None)
    if name not in ("fixed", "uniform"):
        raise InvalidArgument(f"max_delay must be given for the unbounded law {name!r}, but got None")
    return checks.integer("law's greatest", int(numbers[-1]), high=np.iinfo(np.int32).max)


def draw_delays(law: Any, max_delay: int, shape: tuple[int, int], random: Generator) -> NDArray[np.int32]:
    """Return random delays of this shape, rounded to whole rounds and capped at `max_delay`."""
    name, numbers = checked_law(law, max_delay)
    drawn: NDArray[Any] = LAWS[name].draw(random, shape, *numbers)
    return np.asarray(np.minimum(np.rint(drawn), max_delay), dtype=np.int32)
