"""The head of a request, bounded in bytes and in time: whoever never ends one is cut off.

The limits on bodies, rates and requests at one time begin where a request's head ends. Before that a connection could
hold memory and a place for as long as it liked. Between requests uvicorn's own timeout closes what is idle.
"""

import asyncio
from asyncio import TimerHandle
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aftereffect.service.api.gathering import Gathering


class BoundedHeads(HttpToolsProtocol):
    """Uvicorn's HTTP/1.1, closing connections whose head is too long or takes too long.

    most_bytes: of a head that is not complete; what the same read brought before it counts too, at most 256 KiB.
    most_seconds: from the connection, or from the first byte of a later head, to its end.
    """

    most_bytes = 512 * 1024
    most_seconds = 30.0

    def __init__(self, *given: Any, **named: Any) -> None:
        """Expect a head."""
        super().__init__(*given, **named)
        self._timer: TimerHandle | None = None
        self._size = 0
        # In a head or before one, not in a body; and whether what was just read ended with a whole message.
        self._outside, self._ended = True, False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock."""
        # Uvicorn asks for a narrower type than asyncio's protocols name; uvloop's transports are not subclasses of it.
        gathering = Gathering(cast(asyncio.Transport, transport), self.loop)
        super().connection_made(cast(asyncio.Transport, gathering))
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, and count what belongs to a head that is not complete."""
        self._ended = False
        super().data_received(data)
        if not self._outside or self._ended or self.transport.is_closing():
            return
        # Also for line ends before a head, which the parser skips: they end uvicorn's timeout for idle connections.
        self._watch()
        self._size += len(data)
        if self._size > self.most_bytes:
            self._cut_off()

    def on_message_begin(self) -> None:
        """A head begins, perhaps right after a message that was whole."""
        self._ended = False
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is over; what follows is a body."""
        self._unwatch()
        self._outside, self._size = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is over; what follows is another head."""
        self._outside = self._ended = True
        super().on_message_complete()

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.most_seconds, self._cut_off)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self._unwatch()
        self.transport.close()
