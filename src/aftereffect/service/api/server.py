"""`serve(config)` opens the store, serves requests until it is stopped, and closes the store.

On SIGINT or SIGTERM the server accepts no new requests, completes those in progress, and then closes the database.
Every acknowledged write is durable, so a SIGKILL loses only responses that were not sent yet.
"""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from aftereffect.core.errors import InvalidArgument
from aftereffect.service.api.app import create_app
from aftereffect.service.api.telemetry import configure_logging
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.experiment import warm_up
from aftereffect.service.reminders import Reminders
from aftereffect.service.store.store import Store

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
OWN_FILES = 100
"""File descriptors reserved for the database and logs; the rest are for connections."""
_log = logging.getLogger(__name__)


def serve(config: Config, ready: Callable[[str], None]) -> None:
    """Serve until stopped. ready: called once with the address when the service starts.

    Refuses to listen on an address other than loopback with no valid token in the store: the first one cannot be
    created over HTTP.
    """
    if threading.current_thread() is threading.main_thread():
        # Uvicorn raises the signal again after its shutdown; it must end in an exception, so that the store is closed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with contextlib.suppress(KeyboardInterrupt), _listener(config) as listener:
        address = address_of(config, listener)
        warm_up()
        with Store.open(config.store, address=address) as store:
            check_tokens(store, config)
            configure_logging(config.log_level)
            server = _server(store, config)
            with Reminders(store, config):
                # Without this every full garbage collection would go through the compiler's objects, and stop all
                # requests for 0.1 s.
                gc.freeze()
                ready(address)
                server.run(sockets=[listener])


def check_tokens(store: Store, config: Config) -> None:
    """Refuse to start if tokens are required but the store has no valid one."""
    if config.access_required and all(token.revoked_at is not None for token in store.tokens()):
        raise Refused(
            "unauthorized",
            f"the service must have a token before it listens on {config.host!r}, but there is none: create one "
            "with `aftereffect token create NAME --scope admin --store STORE` and start again",
        )


def address_of(config: Config, listener: socket.socket) -> str:
    """Return the URL of the listening service, as seen from this machine."""
    host, port = ANYWHERE.get(config.host, config.host).strip("[]"), listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Refusal(asyncio.Protocol):
    """Closes a connection beyond the limit, so that the database can still open files, and logs it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Answer before the request was read, and close."""
        _log.warning("a connection was refused: too many are open, or send no complete request")
        if isinstance(transport, asyncio.WriteTransport):
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n\r\n")
        transport.close()


def _server(store: Store, config: Config) -> uvicorn.Server:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    most = files - OWN_FILES if files > 2 * OWN_FILES else OWN_FILES

    def protocol(**given: Any) -> asyncio.Protocol:
        if files != resource.RLIM_INFINITY and len(given["server_state"].connections) >= most:
            return _Refusal()
        # httptools is faster, but accepts request headers of any length; h11 closes the connection at 64 KiB.
        return HttpToolsProtocol(**given) if config.on_loopback else H11Protocol(**given)

    kind: Any = protocol
    settings = uvicorn.Config(
        create_app(store, config),
        log_config=None,
        # Uvicorn's access log would contain query strings; the app has its own log and metrics.
        access_log=False,
        lifespan="off",
        http=kind,
        ws="none",
        server_header=False,
        # Any client could forge a proxy's headers.
        proxy_headers=False,
        timeout_graceful_shutdown=config.stop_seconds,
    )
    return uvicorn.Server(settings)


def _listener(config: Config) -> socket.socket:
    host = config.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, config.port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", error)
        raise InvalidArgument(
            f"host and port must be free on this machine, but {host!r}, {config.port} are not: {reason}"
        ) from None
