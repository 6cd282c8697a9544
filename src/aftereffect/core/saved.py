"""Saved states: plain JSON types with a kind, a version and a digest.

A state is `{"kind": ..., "version": 2, ...fields..., "digest": sha256 of all the rest}`. One that is saved as a part of
another may have no digest. Doubles are written as the shortest text that reads back to the same double, so no precision
is lost; 64-bit integers are written as hexadecimal text, because many JSON readers keep only 53 bits.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftereffect.core.checks import shown
from aftereffect.core.errors import InvalidState

VERSION = 2
_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    """Return the canonical JSON text of a value: sorted keys, no spaces.

    >>> canonical({"name": "split", "gap": 0.2})
    '{"gap":0.2,"name":"split"}'
    """
    return _encoder.encode(value)


def digest(fields: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the fields' canonical JSON text, in hexadecimal.

    A state among the fields that has a digest counts with that digest, which is checked when that state is read.
    """
    inner = {name: value["digest"] for name, value in fields.items() if isinstance(value, dict) and "digest" in value}
    return hashlib.sha256(canonical({**fields, **inner}).encode()).hexdigest()


def seal(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return `fields` as a state of this kind, with version and digest."""
    state = {"kind": kind, "version": VERSION, **fields}
    return {**state, "digest": digest(state)}


def kind_of(state: object) -> str:
    """Return the kind of a state; raise `InvalidState` if it has none."""
    if not isinstance(state, Mapping):
        raise InvalidState(f"state must be a dict made by state(), but got {shown(state)}")
    kind = state.get("kind")
    if not isinstance(kind, str):
        raise InvalidState(f"state must have a field 'kind' with a name, but got {shown(kind)}")
    return kind


def unseal(state: Mapping[str, Any], kind: str, names: Iterable[str]) -> dict[str, Any]:
    """Return a state of this kind without its digest, after checking version, completeness and the digest, if any.

    A state without a digest is accepted, as a part of another one: `restore` refuses it unless told otherwise.
    """
    if kind_of(state) != kind:
        raise InvalidState(f"state must be of kind {kind!r}, but got {shown(state['kind'])}")
    version = state.get("version")
    if version != VERSION or isinstance(version, bool):
        raise InvalidState(f"state must have version {VERSION}, the only one supported, but got {shown(version)}")
    wanted = {"kind", "version", *names}
    rest = {**state}
    sealed = rest.pop("digest", None)
    if rest.keys() != wanted:
        if missing := sorted(wanted - rest.keys()):
            raise InvalidState(f"state of kind {kind!r} must have the field {missing[0]!r}, but it is missing")
        unknown = min(str(name) for name in rest.keys() - wanted)
        raise InvalidState(f"state of kind {kind!r} must not have the field {unknown!r}, but it is present")
    try:
        found = digest(rest) if "digest" in state else None
    except (TypeError, ValueError):
        raise InvalidState(f"state must hold plain JSON types only, but got {shown(state)}") from None
    if sealed != found:
        raise InvalidState(f"digest must match the fields (an altered state?), but got {shown(sealed)}")
    return rest


def words_to_hex(words: NDArray[np.uint64]) -> list[str]:
    """Return 64-bit words as hexadecimal text."""
    return [f"{word:016x}" for word in words.tolist()]


def hex_to_words(name: str, texts: object, count: int) -> NDArray[np.uint64]:
    """Return the `count` 64-bit words that `words_to_hex` wrote."""
    try:
        if not isinstance(texts, list) or len(texts) != count:
            raise TypeError
        return np.array([int(text, 16) for text in texts], dtype=np.uint64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidState(f"{name} must be a list of {count} hexadecimal words, but got {shown(texts)}") from None


def numbers(name: str, values: object, count: int) -> NDArray[np.float64]:
    """Return a list of `count` numbers as an array."""
    if not isinstance(values, list) or len(values) != count or not {*map(type, values)} <= {int, float}:
        raise InvalidState(f"{name} must be a list of {count} numbers, but got {shown(values)}")
    return np.array(values, dtype=np.float64)


def whole_number(name: str, text: Any) -> int:
    """Return a whole number of any size from its hexadecimal text."""
    try:
        return int(text, 16)
    except (TypeError, ValueError):
        raise InvalidState(f"{name} must be a whole number in hexadecimal, but got {shown(text)}") from None
