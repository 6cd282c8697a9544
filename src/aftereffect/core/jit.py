"""Compilation of kernels. This is the only module that imports numba; it is imported when a kernel is first needed.

numba's disk cache does not notice an edit in another file that a cached function calls. The cache folder is
therefore named by a fingerprint of the package's sources, of any kernels from outside the package that a function
is compiled for, of numba's version and of the CPU (`fingerprint.py`): a changed source means a new folder. If no
folder is writable, the sources are not there, or a kernel cannot be imported by name (one defined in a notebook, say),
functions are compiled again in each process.

Set AFTEREFFECT_CACHE_DIR to choose where the cache is stored.
"""

import hashlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba.core.errors import NumbaError
from numba.extending import overload

from aftereffect.core import fingerprint, kernel
from aftereffect.core.errors import InvalidArgument

# Divisions follow IEEE 754 (1/0 is infinite): checking each divisor would cost more than the division. Kernels
# allocate nothing, so arrays need no reference counts, which would cost a tenth of the engine's time.
OPTIONS = {"error_model": "numpy", "_nrt": False}
# Without this option, what the compiler inlines depends on what the process has compiled before.
INLINED = {**OPTIONS, "forceinline": True}
ON_CPU = {**OPTIONS, "nogil": True}
# In an error of numba: a reason and, at the same indentation, the line of source that it belongs to.
PLACE = r"""(?:During: [^\n]* at |File ")([^"\n]+?\.py)(?: \(|", line )(\d+)"""
REASON = rf"(?=step: [^\n]*\n( *)(\S[^\n]*)\n(?:\1[^\n]*\n|\s*\n)*?\1{PLACE})"
_lock = threading.Lock()
_registered: set[Callable[..., Any]] = set()
_dispatchers: dict[Hashable, Callable[..., Any]] = {}
_entries: dict[Hashable, Callable[..., Any]] = {}


def cache_directory(outside: Mapping[str, str | None]) -> Path | None:
    """Return the writable folder for code compiled from the package and these outside kernels, or None."""
    # Do not cache if the source files have been edited since they were imported, or if there are none.
    if None in outside.values() or not fingerprint.AT_IMPORT or fingerprint.package_sources() != fingerprint.AT_IMPORT:
        return None
    cpu = llvmlite.binding.get_host_cpu_name() + llvmlite.binding.get_host_cpu_features().flatten()
    key = [fingerprint.AT_IMPORT, numba.__version__, sys.version, cpu, *map(str, sorted(outside.items()))]
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "aftereffect")
    name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("AFTEREFFECT_CACHE_DIR") or usual, name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


def _register(plain: Callable[..., Any]) -> None:
    """Make a plain helper callable from compiled code, or a function of `kernel` that calls one by type."""
    table, name = kernel.GENERIC.get(plain, ({}, ""))

    def select(*arguments: Any) -> Callable[..., Any] | None:
        if not name:
            return plain
        found = table.get(getattr(arguments[0], "instance_class", type(None)))
        return None if found is None else getattr(found, name)

    options = OPTIONS if plain in kernel.ROUTINES else INLINED
    overload(plain, jit_options=options, strict=False, target="generic")(select)
    _registered.add(plain)


@contextmanager
def explained(params: Any) -> Iterator[None]:
    """Turn an error of numba in a kernel from outside the package into one that names its parameters and function."""
    try:
        yield
    except NumbaError as error:
        # The innermost of numba's reasons that belongs to a line of the user's, not of numba or of this package.
        library = f"{fingerprint.PACKAGE}{os.sep}", f"{Path(numba.__file__).parent}{os.sep}"
        places = [at for at in re.finditer(REASON, str(error)) if not str(Path(at[3]).resolve()).startswith(library)]
        why = f"{places[-1][3]}, line {places[-1][4]}, is not: {places[-1][2]}" if places else f"it is not: {error}"
        why = why.replace("NRT required but not enabled", "a kernel must not create arrays, lists or dicts")
        names = " and ".join(fingerprint.outside(params)) or type(params).__name__
        raise InvalidArgument(f"the kernel of {names} must be compilable, but {why}") from error


def compiled(
    function: Callable[..., Any],
    *params: Any,
    decorator: Callable[..., Any] = numba.njit,
    options: Mapping[str, Any] = ON_CPU,
) -> Any:
    """Return `function` compiled, with the GIL released, and cached on disk for the kernels of `params`.

    decorator, options: numba's, for another target than the CPU.
    """
    outside = fingerprint.outside(params)
    # Registering and decorating change numba's process-wide state.
    with _lock:
        for plain in (*kernel.GENERIC, *kernel.HELPERS, *kernel.ROUTINES):
            if plain not in _registered:
                _register(plain)
        key = function, frozenset(outside.items())
        known = _dispatchers.get(key)
        if known is None:
            folder = cache_directory(outside)
            # numba reads its cache folder at decoration time; restore the user's own setting afterwards.
            before = numba.config.CACHE_DIR
            numba.config.CACHE_DIR = before if folder is None else str(folder)
            try:
                known = decorator(function, cache=folder is not None, **options)
            finally:
                numba.config.CACHE_DIR = before
            _dispatchers[key] = known
    return known


def entry(function: Callable[..., Any], params: tuple[Any, ...], *arguments: Any) -> Callable[..., Any]:
    """Return the machine code of `function` for the types of (params, *arguments), without numba's dispatch on types.

    A function of `kernel` stands for that of the kernel registered for `params`. Machine code is four times faster to
    call, but must be called with exactly those types; only for objects that own their arrays. Known entries are looked
    up by the kinds of the values, because numba's typing is slow and a server may restore thousands of players.
    """
    key = (function, *(_kind(value) for value in (params, *arguments)))
    known = _entries.get(key)
    if known is None:
        if function in kernel.GENERIC:
            table, name = kernel.GENERIC[function]
            function = getattr(table[type(params)], name)
        dispatcher = compiled(function, params)
        signature = tuple(numba.typeof(value) for value in (params, *arguments))
        with explained(params):
            dispatcher.compile(signature)
        known = _entries[key] = dispatcher.overloads[signature].entry_point
    return known


def _kind(value: Any) -> Any:
    """Return a key that determines numba's type of a value."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    if isinstance(value, tuple):
        return (type(value), *(_kind(part) for part in value))
    if isinstance(value, int):
        return type(value), -(2**63) <= value < 2**63
    return type(value)
