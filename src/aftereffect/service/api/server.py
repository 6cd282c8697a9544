"""`serve(config)`: opens the store, answers requests until told to stop, and closes the store.

A stop (SIGINT, SIGTERM) takes no new requests, finishes those in work, and only then lets go of the database. Whatever
was acknowledged is durable anyway; a kill loses nothing but answers on their way.
"""

import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn

from aftereffect.core.errors import InvalidArgument
from aftereffect.service.api.app import create_app
from aftereffect.service.api.telemetry import configure_logging
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.experiment import warm_up
from aftereffect.service.store.store import Store

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
OWN_FILES = 100
"""Descriptors that are kept for the database, logs and the like; the rest are for connections."""


def announce(address: str) -> None:
    """Say where the service is, at once, also where it goes to a file."""
    print(f"Aftereffect is at {address}", flush=True)


def serve(config: Config, ready: Callable[[str], None] = announce) -> None:
    """Serve until stopped; `ready` is told, once, where the service is.

    Refuses to listen elsewhere than on loopback without tokens: with access="off", and as long as there is no token
    (nobody could do anything, and the first one cannot be made by request).
    """
    check_reach(config)
    if threading.current_thread() is threading.main_thread():
        # Uvicorn, when it has stopped, sends the signal again: it must end in an exception, to close the store.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with _listener(config) as listener:
        address = address_of(config, listener)
        warm_up()
        store = Store.open(config.store, address=address)
        try:
            check_tokens(store, config)
            configure_logging(config.log_level)
            server = _server(store, config)
            ready(address)
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass
        finally:
            store.close()


def check_reach(config: Config) -> None:
    """Refuse to be reached from elsewhere with access off."""
    if config.access == "off" and not config.on_loopback:
        raise InvalidArgument(
            f"access must not be 'off' unless host is a loopback address like 127.0.0.1, but got host {config.host!r}"
        )
    if config.store.lower().startswith(("http://", "https://")):
        raise InvalidArgument("store must be a database to serve from, but got the address of a server")


def check_tokens(store: Store, config: Config) -> None:
    """Refuse to ask for tokens when there is none, and say how to make the first."""
    valid = [token for token in store.tokens() if token.get("revoked_at") is None]
    if config.access_required and not valid:
        raise Refused(
            "unauthorized",
            f"the service must have a token before it listens on {config.host!r}, but there is none: make the first "
            "with `aftereffect token create NAME --scope admin --store STORE` and start again",
        )


def address_of(config: Config, listener: socket.socket) -> str:
    """Return the address under which this machine reaches a listening service."""
    host, port = ANYWHERE.get(config.host, config.host).strip("[]"), listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _server(store: Store, config: Config) -> uvicorn.Server:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    settings = uvicorn.Config(
        create_app(store, config),
        log_config=None,
        # Uvicorn's own lines would hold queries; the app logs and counts requests.
        access_log=False,
        lifespan="off",
        # The faster parser takes heads of any length; h11 closes the connection at 64 KiB.
        http="httptools" if config.on_loopback else "h11",
        ws="none",
        server_header=False,
        # A proxy's headers could be anybody's.
        proxy_headers=False,
        # Beyond it requests are answered with 503, and logged, instead of connections reset without a word.
        limit_concurrency=None if files == resource.RLIM_INFINITY else max(files - OWN_FILES, OWN_FILES),
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
