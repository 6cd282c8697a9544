"""Answers as JSON: written by the fast writer, and by Python's own where that one knows no way."""

import json
from typing import Any

import orjson
from starlette.responses import Response

_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def encoded(value: Any) -> bytes:
    """Return the JSON text of a value.

    >>> encoded({"arm": "Zürich", "total": 0.1}).decode()
    '{"arm":"Zürich","total":0.1}'
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        # A number of another library, say; or a text that no UTF-8 has, which goes as an escape.
        return _ENCODER.encode(value).encode()


class Json(Response):
    """A JSON text that is ready, with the headers it needs: nearly every answer, so nothing is looked up for it."""

    def __init__(self, content: bytes, status: int = 200) -> None:
        """Make the answer."""
        self.status_code, self.body, self.background = status, content, None
        length = str(len(content)).encode()
        self.raw_headers = [(b"content-length", length), (b"content-type", b"application/json")]
