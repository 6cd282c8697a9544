"""One HTTP/1.1 connection over asyncio streams, made for faults: an answer came whole, or it is `Lost`.

A general client retries, pools and hides; here every request goes out exactly once, and what the caller
knows afterwards is exact: the status and the body, or that nothing is known of what the server did.
"""

import asyncio
import json
from typing import Any, NamedTuple


class Lost(Exception):
    """The connection ended, or time ran out, before a whole answer was there."""


class Answer(NamedTuple):
    """status: the HTTP status. body: the JSON value of the body, or its text where it is none."""

    status: int
    body: Any

    @property
    def code(self) -> str:
        """The problem's code, empty if this is no problem."""
        return str(self.body.get("code", "")) if isinstance(self.body, dict) else ""


class Connection:
    """A keep-alive connection to this machine; opened by the first call, and again after a loss."""

    def __init__(self, port: int, patience: float = 30.0) -> None:
        """Talk to a port; an answer that takes longer than patience (seconds) is lost."""
        self.port = port
        self.patience = patience
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, path: str, body: Any = None, key: str = "") -> Answer:
        """Send one request, once, with an idempotency key if one is given; return its answer, or raise Lost."""
        payload = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\n"
        )
        head += f"Idempotency-Key: {key}\r\n\r\n" if key else "\r\n"
        try:
            async with asyncio.timeout(self.patience):
                return await self._exchange(head.encode() + payload)
        except (OSError, EOFError, TimeoutError, ValueError, IndexError) as reason:
            self.close()
            raise Lost(f"{method} {path}: {reason!r}") from reason

    async def _exchange(self, request: bytes) -> Answer:
        if self._writer is None or self._reader is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        self._writer.write(request)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        # asyncio.IncompleteReadError is an EOFError: a body cut short is no answer.
        content = await self._reader.readexactly(int(headers["content-length"]))
        if headers.get("connection", "").lower() == "close":
            self.close()
        value: Any = content.decode()
        if "json" in headers.get("content-type", ""):
            value = json.loads(content)
        return Answer(int(lines[0].split()[1]), value)

    def close(self) -> None:
        """Drop the connection."""
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


async def fetch(port: int, path: str, patience: float = 30.0) -> Answer:
    """GET a path over a connection of its own."""
    connection = Connection(port, patience)
    try:
        return await connection.call("GET", path)
    finally:
        connection.close()


async def pages(port: int, path: str, cursor: Any = 0) -> list[dict[str, Any]]:
    """GET every page of a list, by its cursor, from this one on."""
    connection = Connection(port)
    items: list[dict[str, Any]] = []
    try:
        while cursor is not None:
            answer = await connection.call("GET", f"{path}?after={cursor}&limit=1000")
            if answer.status != 200:
                raise RuntimeError(f"GET {path}?after={cursor} must be 200, but got {answer}")
            items += answer.body["items"]
            cursor = answer.body["next"]
        return items
    finally:
        connection.close()
