"""Compiling kernels: the only file that imports numba, and it is imported when a kernel is first needed.

numba's disk cache does not notice an edit in another file that a cached function calls. So the cache folder
is named by a fingerprint of the package's sources and of any kernels from outside the package that a function
is compiled for, along with numba's version and the CPU (`fingerprint.py`). A changed source means another
folder, never an old cache. Where nothing is writable, or a kernel cannot be found again by name (a
notebook's), functions are compiled anew in each process.

Set AFTEREFFECT_CACHE_DIR to choose where the cache lives.
"""

import functools
import hashlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
from numba.extending import overload

from aftereffect.core import fingerprint, kernel

# Divisions follow IEEE 754 (1/0 is infinite): a check on each would cost more than the division. Kernels
# allocate nothing, so arrays need no reference counts: those cost a tenth of the engine's time.
OPTIONS = {"error_model": "numpy", "_nrt": False}
# Left to itself the compiler's inlining depends on what the process has compiled before.
INLINED = {**OPTIONS, "forceinline": True}
_lock = threading.Lock()
_registered: set[Callable[..., Any]] = set()
_dispatchers: dict[tuple[Callable[..., Any], frozenset[str | None]], Callable[..., Any]] = {}
_entries: dict[Hashable, Callable[..., Any]] = {}


def _dispatch(generic: Callable[..., Any], table: dict[type, Any], name: str) -> None:
    """Let compiled code call `generic` and reach the function `name` of the kernel its parameters' type stands for."""

    def select(params: Any, *rest: Any) -> Callable[..., Any] | None:
        found = table.get(getattr(params, "instance_class", type(None)))
        return None if found is None else getattr(found, name)

    overload(generic, jit_options=INLINED, strict=False, target="generic")(select)


_dispatch(kernel.bandit_start, kernel.BANDITS, "start")
_dispatch(kernel.bandit_draw, kernel.BANDITS, "draw")
_dispatch(kernel.bandit_update, kernel.BANDITS, "update")
_dispatch(kernel.bandit_update_many, kernel.BANDITS, "update_many")
_dispatch(kernel.bandit_update_sum, kernel.BANDITS, "update_sum")
_dispatch(kernel.bandit_update_many_sums, kernel.BANDITS, "update_many_sums")
_dispatch(kernel.bandit_probabilities, kernel.BANDITS, "probabilities")
_dispatch(kernel.spread, kernel.LOSSES, "spread")
_dispatch(kernel.player_begin, kernel.PLAYERS, "begin")
_dispatch(kernel.player_ask, kernel.PLAYERS, "ask")
_dispatch(kernel.player_tell, kernel.PLAYERS, "tell")
_dispatch(kernel.block_quiet, kernel.BLOCKS, "quiet")
_dispatch(kernel.block_loss, kernel.BLOCKS, "loss")
_dispatch(kernel.block_learn, kernel.BLOCKS, "learn")
_dispatch(kernel.labelled_begin, kernel.LABELLED, "begin")
_dispatch(kernel.labelled_ask, kernel.LABELLED, "ask")
_dispatch(kernel.labelled_tell_one, kernel.LABELLED, "tell_one")


@functools.cache
def package_key() -> str:
    """Return a hash of the package's sources, the versions of numba and Python, and the CPU."""
    cpu = llvmlite.binding.get_host_cpu_name() + llvmlite.binding.get_host_cpu_features().flatten()
    text = f"{fingerprint.AT_IMPORT} {numba.__version__} {sys.version} {cpu}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder under which compiled code is kept."""
    chosen = os.environ.get("AFTEREFFECT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aftereffect"


def cache_directory(outside: frozenset[str | None]) -> Path | None:
    """Return the writable folder for code compiled from the package and these outside kernels, or None."""
    # Sources edited since they were imported are not what would be compiled now.
    if None in outside or fingerprint.package_sources() != fingerprint.AT_IMPORT:
        return None
    digest = hashlib.sha256("\0".join([package_key(), *sorted(text or "" for text in outside)]).encode())
    folder = cache_root() / (digest.hexdigest()[:16] if outside else package_key())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


def _register(plain: Callable[..., Any]) -> None:
    """Let compiled code call a plain helper function."""

    def select(*arguments: Any) -> Callable[..., Any]:
        return plain

    overload(plain, jit_options=INLINED, strict=False, target="generic")(select)
    _registered.add(plain)


def register_helpers() -> None:
    """Make every function marked as a helper known to the compiler, also for other targets than this CPU."""
    for plain in kernel.HELPERS:
        if plain not in _registered:
            _register(plain)


def _decorate(function: Callable[..., Any], outside: frozenset[str | None]) -> Callable[..., Any]:
    folder = cache_directory(outside)
    if folder is None:
        return numba.njit(function, nogil=True, **OPTIONS)
    # numba reads its cache folder when it decorates; put the user's own setting back afterwards.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        return numba.njit(function, nogil=True, cache=True, **OPTIONS)
    finally:
        numba.config.CACHE_DIR = before


def compiled(function: Callable[..., Any], *params: Any) -> Callable[..., Any]:
    """Return `function` compiled, with the GIL released, and cached on disk for the kernels of `params`."""
    outside = fingerprint.outside(params)
    # Registering and decorating change what numba keeps for the whole process.
    with _lock:
        register_helpers()
        known = _dispatchers.get((function, outside))
        if known is None:
            known = _dispatchers[function, outside] = _decorate(function, outside)
    return known


def entry(function: Callable[..., Any], params: tuple[Any, ...], *arguments: Any) -> Callable[..., Any]:
    """Return the machine code of `function` for the types of (params, *arguments), without numba's dispatch on types.

    It is four times faster to call, and must be called with exactly those types: for objects that own their arrays.
    It is looked up by the kinds of the values, because numba takes long to type them, and a server restores thousands
    of players.
    """
    key = (function, *(_kind(value) for value in (params, *arguments)))
    known = _entries.get(key)
    if known is None:
        dispatcher: Any = compiled(function, params)
        signature = tuple(numba.typeof(value) for value in (params, *arguments))
        dispatcher.compile(signature)
        known = _entries[key] = dispatcher.overloads[signature].entry_point
    return known


def _kind(value: Any) -> Any:
    """Return what numba's type of a value depends on."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    if isinstance(value, tuple):
        return (type(value), *(_kind(part) for part in value))
    if isinstance(value, int):
        return type(value), -(2**63) <= value < 2**63
    return type(value)
