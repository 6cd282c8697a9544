"""Fingerprints of the sources of compiled code, so that cached machine code is never used after they change."""

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from aftereffect.core import kernel

PACKAGE = Path(__file__).resolve().parent.parent
NAME = __name__.partition(".")[0]
KERNEL_LAYERS = ("core", "bandits", "losses", "lags", "players", "engines")


def package_sources() -> str:
    """Return a hash of the current contents of the source files that can contain kernels; empty if there are none."""
    digest = hashlib.sha256()
    paths = sorted(path for layer in KERNEL_LAYERS for path in (PACKAGE / layer).rglob("*.py"))
    for path in paths:
        digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest() if paths else ""


AT_IMPORT = package_sources()


def outside(params: Any) -> frozenset[str | None]:
    """Return, as text, the kernels from outside the package that the (possibly nested) parameters refer to."""
    if not isinstance(params, tuple):
        return frozenset()
    return _outside_form(type(params)).union(*(outside(part) for part in params))


def outside_names(params: Any) -> list[str]:
    """Return the names of the types from outside the package in the (possibly nested) parameters."""
    if not isinstance(params, tuple):
        return []
    named = [f"{type(params).__module__}.{type(params).__qualname__}"] if _outside_form(type(params)) else []
    return [*named, *(name for part in params for name in outside_names(part))]


@functools.cache
def _outside_form(params: type) -> frozenset[str | None]:
    """Return the kernel of one type of parameters as text; None if another process could not import it by name."""
    if params is tuple or params.__module__.partition(".")[0] == NAME:
        return frozenset()
    module = sys.modules.get(params.__module__)
    if params.__module__ == "__main__" or getattr(module, params.__name__, None) is not params:
        return frozenset([None])
    forms = kernel.FORMS.values()
    functions = [function for form in forms for function in form.get(params, ()) if callable(function)]
    seen: set[Any] = set()
    return frozenset([f"{params.__module__}.{params.__qualname__}", *(_text(function, seen) for function in functions)])


def _text(function: Callable[..., Any], seen: set[Any]) -> str:
    """Return a loaded function as text, with everything from outside the package that it refers to.

    Hashing its source file is not enough: the file may have been edited since the import, and helpers may be in others.
    """
    seen.add(function)
    names = function.__code__.co_names
    found = [f"{function.__module__}.{function.__qualname__} {_constants(function.__code__)}"]
    values = [function.__globals__.get(name) for name in names]
    values += [getattr(value, name, None) for value in values if isinstance(value, ModuleType) for name in names]
    values += [cell.cell_contents for cell in function.__closure__ or ()]
    for value in values:
        if isinstance(value, FunctionType):
            if value.__module__.partition(".")[0] != NAME and value not in seen:
                found.append(_text(value, seen))
        elif isinstance(value, bool | int | float | str | tuple | np.generic | np.ndarray):
            found.append(repr(value.tolist() if isinstance(value, np.ndarray) else value))
    return "\n".join(found)


def _constants(value: Any) -> str:
    """Return constants as text; nested functions by their code, because their repr holds a memory address."""
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {[_constants(part) for part in value.co_consts]}"
    return repr(value)
