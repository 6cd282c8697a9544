"""From what a person calls a store to the service in it: a path, a database URL, or a server's address.

Nothing is created unless asked for: `aftereffect ask` in the wrong folder must say so, not make an empty store.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused
from aftereffect.service.protocol import Service

DEFAULT_STORE = "aftereffect.db"
SQLITE = "sqlite:///"
# A person at a terminal would rather know after a second than wait.
RETRIES = 3


def is_server(store: str) -> bool:
    """Say whether a store is the address of a server.

    >>> is_server("http://127.0.0.1:8000"), is_server("shop.db")
    (True, False)
    """
    return store.lower().startswith(("http://", "https://"))


def database(store: str) -> str:
    """Return a store that must be a database itself: a path or a URL, not a server."""
    if not store.strip() or "\0" in store:
        raise Refused("invalid", f"store must be a path, a database URL or a server's address, but got {shown(store)}")
    if is_server(store):
        raise Refused("invalid", f"store must be the database itself for this, not a server, but got {shown(store)}")
    return store


def file_of(store: str) -> Path | None:
    """Return the SQLite file behind a database, None for databases that are no file.

    >>> file_of("sqlite:////srv/shop.db"), file_of("postgresql://localhost/shop")
    (PosixPath('/srv/shop.db'), None)
    """
    if store.startswith(SQLITE):
        return Path(store.removeprefix(SQLITE))
    return None if "://" in store else Path(store)


def existing(store: str) -> str:
    """Return a database, refused if it would have to be made first."""
    file = file_of(database(store))
    if file is not None and not file.exists():
        raise Refused(
            "not_found", f"store must exist, but there is no file {str(file)!r}; `aftereffect init` makes one"
        )
    return store


def open_service(
    store: str, token: str | None = None, *, create: bool = False, plays: bool = True
) -> Service:
    """Return the service in a store; where a server holds the file, the server is spoken to.

    `token` defaults to AFTEREFFECT_TOKEN. With `create`, a SQLite file that is not there is made. `plays`: experiments
    are going to be played or replayed.
    """
    secret = token if token is not None else os.environ.get("AFTEREFFECT_TOKEN") or None
    if is_server(store):
        from aftereffect.service.client import Client

        return Client(store, secret, retries=RETRIES)
    place = database(store) if create else existing(store)
    from aftereffect.service.local import open_local

    return open_local(place, secret, plays=plays)


@contextmanager
def opened(store: str, *, create: bool = False, plays: bool = True) -> Iterator[Service]:
    """Open the service in a store, as `open_service` does, and close it afterwards."""
    service = open_service(store, create=create, plays=plays)
    try:
        yield service
    finally:
        service.close()
