"""Idempotency keys: a request that is repeated with its key is answered as it was the first time, by any server.

The answer is stored in the transaction that carries out the request. Of key and request only hashes are stored. A
request that was refused has changed nothing, so its key is not stored.
"""

import datetime
import hashlib
from typing import Any

import orjson
from sqlalchemy import Connection, delete, insert, select

from aftereffect.service.errors import Refused
from aftereffect.service.messages import Fields
from aftereffect.service.store import schema

KEPT_DAYS = 30
"""How long an answer is kept for a repeated request."""
_keys = schema.keys.c


def hashed(key: str, *request: Any) -> tuple[str, str]:
    """Return the hashes of a key and of a request: the name of the operation and all that was given."""
    text = orjson.dumps(request, default=list, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(key.encode()).hexdigest(), hashlib.sha256(text).hexdigest()


def known(connection: Connection, key: str, request: str) -> Fields | None:
    """Return what was answered to a request, None if it is new; refuse a key that came with another request."""
    found = connection.execute(select(_keys.request, _keys.answer).where(_keys.key == key)).one_or_none()
    if found is None:
        return None
    if found.request != request:
        raise Refused("conflict", "Idempotency-Key must be new for a new request, but came with another one before")
    answer: Fields = orjson.loads(found.answer)
    return answer


def keep(connection: Connection, key: str, request: str, answer: Fields, at: str) -> None:
    """Store the answer to a request, and delete those that are too old."""
    oldest = datetime.datetime.fromisoformat(at) - datetime.timedelta(days=KEPT_DAYS)
    connection.execute(delete(schema.keys).where(_keys.at < oldest.isoformat()))
    text = orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS).decode()
    connection.execute(insert(schema.keys).values(key=key, request=request, answer=text, at=at))
