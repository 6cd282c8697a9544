"""The service without a server: `Local` has the methods of `Client` on a database; `open_service` opens either.

A store is named by a path, a database URL or a server's address. A file is created only on request: `aftereffect ask`
in the wrong folder must fail, not create an empty store. One process at a time writes a SQLite file. If a server has
locked it, the server is used (its address is in a file beside the database); if another command has, this one waits.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused
from aftereffect.service.operations import Operation
from aftereffect.service.protocol import Service

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

SQLITE = "sqlite:///"
WAIT = 30.0
"""Seconds to wait for another process that has locked the file."""
RETRIES, TIMEOUT = 2, 10.0
"""For commands sent to a server; shorter than those of `Client`, because a person waits."""


class Local(Service):
    """The service on a database; close it, or use it in a `with` statement.

    >>> import tempfile
    >>> home = tempfile.TemporaryDirectory()
    >>> with Local.open(f"sqlite:///{home.name}/store.db") as service:
    ...     letters = service.create(name="letters", arms=["short", "long"], low=0, high=100, max_delay=0, seed=1)
    ...     turn = service.ask(letters.id)
    ...     told = service.tell(letters.id, turn.round, 42.0)
    >>> turn.arm in letters.arms, told.status
    (True, 'reported')
    >>> home.cleanup()
    """

    def __init__(self, store: "Store") -> None:
        self.store = store

    @classmethod
    def open(cls, store: str, wait: float = WAIT) -> Self:
        """Open a database, creating it if needed; refuse if another process locks its file for over `wait` seconds."""
        from aftereffect.service.store.store import Store

        return cls(Store.open(store, wait=wait))

    def close(self) -> None:
        """Close the database and release its lock."""
        self.store.close()

    def _answer(self, operation: Operation[Any], path: Mapping[str, Any], body: Any, query: Mapping[str, Any]) -> Any:
        given = operation.given(path, query)
        if operation.body is not None:
            given["body"] = operation.read({} if body is None and operation.optional else body)
        found = operation.run(self.store, **given)
        return b"".join(found) if operation.reply is bytes else found


def is_server(store: str) -> bool:
    """Return whether a store is the address of a server.

    >>> is_server("http://127.0.0.1:8000"), is_server("shop.db")
    (True, False)
    """
    return store.lower().startswith(("http://", "https://"))


def database(store: str) -> str:
    """Return a store that is a database (a path or a URL); refuse the address of a server."""
    if not store.strip() or "\0" in store:
        raise Refused("invalid", f"store must be a path, a database URL or a server's address, but got {shown(store)}")
    if is_server(store):
        raise Refused("invalid", f"store must be the database itself for this, not a server, but got {shown(store)}")
    return store


def file_of(store: str) -> Path | None:
    """Return the file of a SQLite database, None for other databases.

    >>> file_of("sqlite:////srv/shop.db"), file_of("postgresql://localhost/shop")
    (PosixPath('/srv/shop.db'), None)
    """
    path = store.removeprefix(SQLITE)
    return None if "://" in path else Path(path)


def existing(store: str) -> str:
    """Return a database; refuse a SQLite file that does not exist."""
    file = file_of(database(store))
    if file is None or file.exists():
        return store
    raise Refused("not_found", f"store must exist, but there is no file {str(file)!r}; `aftereffect init` creates one")


def open_local(store: str, token: str | None = None, wait: float = WAIT) -> Service:
    """Open a database, or return a client of the server that has locked its file. token: for that server."""
    address = _address(store)
    try:
        return Local.open(store, wait) if address is None else _client(address, token)
    except Refused as refusal:
        # A server may have started during the wait.
        address = refusal.extra.get("address") if refusal.code == "busy" else None
        if not address:
            raise
        return _client(address, token)


def _address(store: str) -> str | None:
    """Return the address of the server that has locked a store's file, None if there is none."""
    from aftereffect.service.store.sqlite_file import holder

    file = file_of(store)
    held = None if file is None else holder(file.resolve())
    return held["address"] or None if held is not None else None


def _client(address: str, token: str | None) -> Service:
    from aftereffect.service.client import Client

    return Client(address, token, retries=RETRIES, timeout=TIMEOUT)


def open_service(store: str, *, create: bool = False) -> Service:
    """Open the service of a store; the token for a server is read from AFTEREFFECT_TOKEN.

    create: create a SQLite file if it does not exist.
    """
    token = os.environ.get("AFTEREFFECT_TOKEN") or None
    if is_server(store):
        return _client(store, token)
    return open_local(database(store) if create else existing(store), token)
