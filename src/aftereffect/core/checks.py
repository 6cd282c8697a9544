"""Checks of arguments. Each returns the converted value or raises an error that names argument, rule and value."""

import importlib
import math
import operator
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aftereffect.core.errors import InvalidArgument, InvalidTotal, MissingExtra

FloatArray = NDArray[np.float64]


def shown(value: object) -> str:
    """Return the repr of `value` on one line, shortened to at most 80 characters, for use in a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


# A union written in the call would be built anew for every value.
_BOOLS = (bool, np.bool_)
_NOT_REAL = (*_BOOLS, str, bytes, np.complexfloating)
MOST = {"n_arms": 10**7, "max_delay": 10**8}
"""The largest sizes that are accepted: with larger ones the state of a player would not fit into memory."""


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """Return `value` as an int in [low, high]. NumPy integers are accepted; booleans and floats are not."""
    high = MOST.get(name) if high is None else high
    try:
        if isinstance(value, _BOOLS):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} must be an int, but got {shown(value)}") from None
    if low is not None and number < low:
        raise InvalidArgument(f"{name} must be at least {low}, but got {number}")
    if high is not None and number > high:
        raise InvalidArgument(f"{name} must be at most {high}, but got {number}")
    return number


def real(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    infinite: bool = False,
) -> float:
    """Return `value` as a float with low <= value <= high and above < value < below; finite unless `infinite`."""
    try:
        if isinstance(value, _NOT_REAL):
            raise TypeError
        number = float(value)
        if math.isnan(number) or (math.isinf(number) and not infinite):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name} must be a finite number, but got {shown(value)}") from None
    if low is not None and number < low:
        raise InvalidArgument(f"{name} must be at least {low:g}, but got {number!r}")
    if high is not None and number > high:
        raise InvalidArgument(f"{name} must be at most {high:g}, but got {number!r}")
    if above is not None and number <= above:
        raise InvalidArgument(f"{name} must be greater than {above:g}, but got {number!r}")
    if below is not None and number >= below:
        raise InvalidArgument(f"{name} must be less than {below:g}, but got {number!r}")
    return number


def sizes(n_arms: Any, max_delay: Any, horizon: Any) -> tuple[int, int, int]:
    """Return K, d and T, the sizes of a problem (Section 2)."""
    d, T = integer("max_delay", max_delay, low=0), integer("horizon", horizon, low=1)
    return integer("n_arms", n_arms, low=2), d, T


def total(value: Any, *, low: float | None = None, high: float | None = None) -> float:
    """Return a reported total as a finite float in [low, high], or raise `InvalidTotal`."""
    try:
        return real("total", value, low=low, high=high)
    except InvalidArgument as error:
        hint = "; a missing total is None" if isinstance(value, float) and value != value else ""
        raise InvalidTotal(f"{error}{hint}") from None


def choice(name: str, value: Any, options: Collection[str]) -> str:
    """Return `value` if it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise InvalidArgument(f"{name} must be one of {listed}, but got {shown(value)}")
    return value


def as_array(name: str, value: ArrayLike, error: type[InvalidArgument] = InvalidArgument) -> NDArray[Any]:
    """Return `value` as an array; raise an error if its rows differ in length."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        raise error(f"{name} must be an array of numbers, but got {shown(value)}, of rows unequal in length") from None


def array(
    name: str,
    value: ArrayLike,
    *,
    shape: tuple[int | str, ...],
    unit: bool = False,
    single: bool = False,
    error: type[InvalidArgument] = InvalidArgument,
) -> FloatArray:
    """Return `value` as a finite float64 array of the given shape; a string in `shape` allows any length.

    unit: whether all numbers must lie in [0, 1]. single: keep float32 as it is.
    """
    wanted = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    numbers = as_array(name, value, error)
    if numbers.dtype.kind not in "fiu":
        raise error(f"{name} must be an array of numbers of shape {wanted}, but got {shown(value)}")
    if not (single and numbers.dtype == np.float32):
        numbers = numbers.astype(np.float64, copy=False)
    fits = numbers.ndim == len(shape) and all(
        isinstance(n, str) or n == m for n, m in zip(shape, numbers.shape, strict=True)
    )
    if not fits:
        raise error(f"{name} must have shape {wanted}, but got shape {numbers.shape}")
    # Minimum and maximum need no memory, unlike a mask; both are NaN if one number is.
    if numbers.size and not np.isfinite([numbers.min(), numbers.max()]).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(numbers))[0])
        raise error(f"{name} must be finite, but {name}{list(where)} is {float(numbers[where])!r}")
    outside = numbers[(numbers < 0.0) | (numbers > 1.0)] if unit else numbers[:0]
    if outside.size:
        raise error(f"{name} must lie in [0, 1], but got {float(outside.flat[0])!r}")
    return numbers


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return `values` as a read-only C-contiguous array: unchanged if it is one already, else a copy."""
    shared = values.flags.writeable or not values.flags.c_contiguous or not values.flags.owndata
    return owned(values.copy()) if shared else values


def owned(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only, without a copy where possible; no other reference to it may exist."""
    values = np.ascontiguousarray(values)
    if not values.flags.owndata:
        values = values.copy()
    values.flags.writeable = False
    return values


class ReadOnly:
    """An object whose arrays are read-only, as compiled code expects."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the arrays read-only again: pickle does not preserve the flag."""
        for name, value in state.items():
            setattr(self, name, owned(value) if isinstance(value, np.ndarray) else value)


def optional(module: str, what: str, extra: str) -> Any:
    """Return a module of a package that `what` needs and that this extra of the project brings."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingExtra(f"{what} needs {package}: pip install 'aftereffect[{extra}]'") from None
