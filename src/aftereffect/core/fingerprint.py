"""Fingerprints of the sources of compiled code, so that cached machine code is never used after they change."""

import functools
import hashlib
import sys
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
CONSTANTS = (bool, int, float, str, bytes, frozenset, type(None), np.generic, np.ndarray)


def outside(params: Any) -> dict[str, str | None]:
    """Return the types of (possibly nested) parameters from outside the package, by name, with their kernels as text.

    The text is None if another process could not import the type by name.
    """
    if not isinstance(params, tuple):
        return {}
    found = dict(_outside_form(type(params)))
    for part in params:
        found |= outside(part)
    return found


@functools.cache
def _outside_form(params: type) -> dict[str, str | None]:
    """Return the kernels of one type of parameters, by its name, as text; nothing for a type of the package."""
    if params is tuple or params.__module__.partition(".")[0] == NAME:
        return {}
    name = f"{params.__module__}.{params.__qualname__}"
    module = sys.modules.get(params.__module__)
    if params.__module__ == "__main__" or getattr(module, params.__name__, None) is not params:
        return {name: None}
    return {name: _text(tuple(part for form in kernel.FORMS.values() for part in form.get(params, ())), set())}


def _text(value: Any, seen: set[Any]) -> str:
    """Return a value as text, a function from outside the package by its code and by everything that it refers to.

    Hashing its source file is not enough: the file may have been edited since the import, and helpers may be in others.
    """
    if isinstance(value, tuple):
        return str([_text(part, seen) for part in value])
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {_text(value.co_consts, seen)}"
    if isinstance(value, FunctionType):
        if value in seen or value.__module__.partition(".")[0] == NAME:
            return value.__qualname__
        seen.add(value)
        names = value.__code__.co_names
        used = [value.__globals__.get(name) for name in names]
        used += [getattr(each, name, None) for each in used if isinstance(each, ModuleType) for name in names]
        used += [cell.cell_contents for cell in value.__closure__ or ()]
        return f"{value.__module__}.{value.__qualname__} {_text((value.__code__, *used), seen)}"
    return repr(value.tolist() if isinstance(value, np.ndarray) else value) if isinstance(value, CONSTANTS) else ""
