"""The service without a server: `Local` has the methods of `Client` on a database; `open_service` opens either.

A store is named by a path, a database URL or a server's address. A file is created only on request: `aftereffect ask`
in the wrong folder must fail, not create an empty store. One process at a time writes a SQLite file. If a server has
locked it, the server is used (its address is in a file beside the database); if another command has, this one waits.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aftereffect.core.checks import shown
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.commands import KINDS, Amend, Ask, Command, Note, Tell
from aftereffect.service.messages import ACTIVE, AskItem, Continuation, NewReminder, Reports, TellItem, is_id
from aftereffect.service.messages import Accept as AcceptBody
from aftereffect.service.messages import Amend as AmendBody
from aftereffect.service.messages import Note as NoteBody
from aftereffect.service.protocol import Service
from aftereffect.service.settings import days
from aftereffect.service.totals import reports

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

SQLITE = "sqlite:///"
WAIT = 30.0
"""Seconds to wait for another process that has locked the file."""
RETRIES, TIMEOUT = 2, 10.0
"""For commands sent to a server; shorter than those of `Client`, because a person waits."""


class Local(Service):
    """The service on a database; close it, or use it in a `with` statement."""

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

    def _call(self, operation: str, *path: Any, body: Any = None, again: bool = True, **query: Any) -> Any:
        store, id = self.store, _id(path[0]) if path else ""
        match operation:
            case "ask" | "tell" | "amend":
                item = {key: value for key, value in body.items() if key not in ("ahead", "next")}
                item |= {"experiment": id} | ({"round": path[1]} if operation != "ask" else {})
                where, command = _order(operation, item)
                if isinstance(command, Tell):
                    command = command._replace(ahead=body.get("ahead", True))
                answer = {"experiment": id, **store.perform(where, command)}
                if body.get("next") and answer["state"] in ACTIVE and answer["open_round"] != path[1]:
                    answer["next"] = {"experiment": id, **store.perform(id, Ask())}
                return answer
            case "note":
                note = checked(NoteBody, body)
                return {"experiment": id, **store.perform(id, Note(path[1], note.note, note.unit))}
            case "remind" | "forget_reminder" | "reminder":
                if operation != "reminder":
                    new = None if body is None else checked(NewReminder, body)
                    store.remind(id, None if new is None else new.webhook, 0.0 if new is None else days(new.after))
                return {"experiment": id, **next(iter(store.reminders(id)), {})}
            case "compare":
                return {"items": store.compare(query["ids"].split(","))}
            case "reports":
                return store.perform(id, reports(checked(Reports, body)))
            case "start" | "pause" | "resume" | "finish" | "away" | "back":
                store.perform(id, KINDS[operation](*path[1:]))
                return store.experiment(id)
            case "bulk_ask" | "bulk_tell":
                return {"items": self._perform_many(operation.removeprefix("bulk_"), body["items"])}
            case "create":
                return store.create(body)
            case "correct":
                return store.correct(id, body)
            case "continue_with":
                arms = checked(Continuation, body)
                return store.continue_with(id, arms.add, arms.retire, arms.model_extra or {})
            case "accept":
                return store.accept(id, checked(AcceptBody, body).max_delay)
            case "experiments":
                return store.experiments(**query)
            case "experiment" | "rounds" | "events" | "series" | "carryover":
                return getattr(store, operation)(id, **query)
            case "export":
                return b"".join(store.export(id, query["format"]))
            case "verify":
                return store.verify(id)[0]
            case "verify_all":
                return {"items": store.verify()}
            case "plan":
                from aftereffect.service.experiment.plan import planned

                return planned(body)
            case "create_token":
                return {**body, "token": store.create_token(**body)}
            case "tokens":
                return {"items": store.tokens()}
            case "revoke_token":
                return store.revoke_token(id)
        raise AssertionError(f"there is no operation {operation!r}")

    def _perform_many(self, verb: str, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Carry out the valid items as one job, and return answers and errors in the order of the items."""
        orders: list[tuple[str, Command] | Refused] = []
        for item in items:
            try:
                orders.append(_order(verb, item))
            except Refused as refusal:
                orders.append(refusal)
        answers = iter(self.store.perform_many([each for each in orders if not isinstance(each, Refused)]))
        found = []
        for each in orders:
            id, answer = (None, each) if isinstance(each, Refused) else (each[0], next(answers))
            found.append({"experiment": id, **({"error": answer.problem()} if isinstance(answer, Refused) else answer)})
        return found


def _id(given: Any) -> str:
    """Return an id, or refuse what does not have the form of one."""
    if not is_id(given):
        raise Refused("not_found", f"there is nothing with the id {shown(given)}")
    return str(given)


def _order(verb: str, item: Mapping[str, Any]) -> tuple[str, Command]:
    """Return the experiment and the command of a request item."""
    if verb == "ask":
        ask = checked(AskItem, item, "an item")
        return _id(ask.experiment), Ask(ask.unit)
    told = {key: value for key, value in item.items() if key != "was"}
    tell = checked(TellItem, told, "an item")
    if verb == "tell":
        return _id(tell.experiment), Tell(tell.round, tell.total, tell.unit)
    was = checked(AmendBody, {"total": None, "was": item["was"]}).was if "was" in item else ...
    return _id(tell.experiment), Amend(tell.round, tell.total, tell.unit, was)


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


@contextmanager
def open_service(store: str, *, create: bool = False) -> Iterator[Service]:
    """Open the service of a store and close it afterwards; the token for a server is read from AFTEREFFECT_TOKEN.

    create: create a SQLite file if it does not exist. plays: experiments will be played or replayed.
    """
    token = os.environ.get("AFTEREFFECT_TOKEN") or None
    if is_server(store):
        service = _client(store, token)
    else:
        service = open_local(database(store) if create else existing(store), token)
    with service:
        yield service
