"""One write an answer: its head waits for its body, so that both are sent by one call and arrive as one packet.

Uvicorn writes the head of an answer, then its body, and each is a call to the system and a wake-up of the client. Here
the head is held back until the next write of the same turn of the event loop, or the end of the turn if there is none.
"""

import asyncio
from collections.abc import Iterable
from typing import Any


class Gathering:
    """A transport around another one; all but writing and closing is the other's."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Hold nothing back yet."""
        self._transport, self._loop = transport, loop
        self._head: bytes | None = None

    def __getattr__(self, name: str) -> Any:
        """Return what the other transport has by that name."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send what was held back and this, or hold this back if it is a head."""
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.writelines((head, data))
        elif data.startswith(b"HTTP/1.1 "):
            self._head = data
            # An answer without a body, or whose body takes time: the head goes at the end of this turn.
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(data)

    def writelines(self, lines: Iterable[bytes]) -> None:
        """Send several parts."""
        self.write(b"".join(lines))

    def close(self) -> None:
        """Send what was held back, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self._transport.write(head)
