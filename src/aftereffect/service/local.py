"""The service without a server: the methods of `Client` on a database, and how a store is found and opened.

A store is a path, a database URL or a server's address. Nothing is created unless asked for: `aftereffect ask` in the
wrong folder must say so, not make an empty store. One process writes a SQLite file. If a server has it, `open_local`
answers with a `Client` of that server, whose address is in the lock file; if another command has it, it waits.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from aftereffect.core.checks import integer, shown
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment import commands
from aftereffect.service.messages import AskItem, TellItem
from aftereffect.service.protocol import Service
from aftereffect.service.replies import Json, Overview, Page, Report, Row, Turn, Verdict, read, read_page

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

WAIT = 30.0

Order = tuple[str, commands.Command]


def open_local(store: str, token: str | None = None, wait: float = WAIT, *, plays: bool = True) -> Service:
    """Open a database; where a server has its file, return a client of that server instead.

    `token` is for that server, if it wants one. Another process that has the file is waited for, `wait` seconds.
    `plays`: experiments are going to be played or replayed, so what that takes is loaded first.
    """
    address = _address(store)
    if address is None and plays:
        from aftereffect.service.experiment.experiment import warm_up

        # Not while others wait for the lock: eight commands that compile one after the other take a minute.
        warm_up()
        address = _address(store)
    if address is not None:
        return _client(address, token)
    try:
        return Local.open(store, wait)
    except Refused as refusal:
        # A server may have started while this one waited.
        address = refusal.extra.get("address") if refusal.code == "busy" else None
        if not address:
            raise
        return _client(address, token)


def _address(store: str) -> str | None:
    """Return where the server is that has a store's file, None if none does."""
    from aftereffect.service.store.locking import holder

    file = file_of(store)
    held = None if file is None else holder(file.resolve())
    return held["address"] or None if held is not None else None


def _client(address: str, token: str | None) -> Service:
    from aftereffect.service.client import Client

    return Client(address, token, retries=RETRIES)


class Local:
    """The service in a database of this machine; close it, or use it in a `with` statement."""

    def __init__(self, store: "Store") -> None:
        """Take an open store; closing this closes it."""
        self.store = store

    @classmethod
    def open(cls, store: str, wait: float = WAIT) -> Self:
        """Open a database, made if there is none; refused if another process has its file for too long."""
        from aftereffect.service.store.store import Store

        return cls(Store.open(store, wait=wait))

    def __enter__(self) -> Self:
        """Return the service itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database."""
        self.close()

    def close(self) -> None:
        """Close the database and let go of its lock."""
        self.store.close()

    def create(self, **settings: Any) -> Overview:
        """Make an experiment."""
        return read(Overview, self.store.create(settings))

    def experiment(self, experiment: str) -> Overview:
        """Return one experiment."""
        return read(Overview, self.store.experiment(_id(experiment)))

    def experiments(self, after: str | None = None, limit: int = 100, state: str | None = None) -> Page:
        """Return a page of experiments."""
        return read_page(Overview, self.store.experiments(after=after, limit=limit, state=state))

    def ask(self, experiment: str, unit: str | int | None = None) -> Turn:
        """Open the next round, or return the open one."""
        return read(Turn, self._performed(experiment, _ask({"experiment": experiment, "unit": unit})))

    def tell(self, experiment: str, round: int, total: float | None, unit: str | int | None = None) -> Report:
        """Report the total of a round; None closes it as missing."""
        told = _tell({"experiment": experiment, "round": integer("round", round), "total": total, "unit": unit})
        return read(Report, self._performed(experiment, told))

    def amend(self, experiment: str, round: int, total: float | None, unit: str | int | None = None) -> Report:
        """Correct a total, or bring a late one, while the round's block is open."""
        told = _tell({"experiment": experiment, "round": integer("round", round), "total": total, "unit": unit})
        amended = commands.Amend(told.round, told.total, told.unit)
        return read(Report, self._performed(experiment, amended))

    def start(self, experiment: str) -> Overview:
        """Start a draft."""
        return self._changed(experiment, commands.Start())

    def pause(self, experiment: str) -> Overview:
        """Pause: no round opens until `resume`."""
        return self._changed(experiment, commands.Pause())

    def resume(self, experiment: str) -> Overview:
        """Go on, with max_delay rounds of warm-up."""
        return self._changed(experiment, commands.Resume())

    def finish(self, experiment: str) -> Overview:
        """End it for good and say which arm won."""
        return self._changed(experiment, commands.Finish())

    def away(self, experiment: str, arm: str) -> Overview:
        """Say that an arm cannot be played for now."""
        return self._changed(experiment, commands.Away(arm))

    def back(self, experiment: str, arm: str) -> Overview:
        """Say that an arm can be played again."""
        return self._changed(experiment, commands.Back(arm))

    def rounds(self, experiment: str, after: str | int | None = None, limit: int = 100) -> Page:
        """Return a page of the record, a row for each unit and round."""
        return read_page(Row, self.store.rounds(_id(experiment), None if after is None else str(after), limit))

    def events(self, experiment: str, after: int = 0, limit: int = 100) -> Json:
        """Return a page of the log, as it is stored."""
        return self.store.events(_id(experiment), after, limit)

    def export(self, experiment: str, form: str = "csv") -> bytes:
        """Return the record as a CSV or Parquet file."""
        return self.store.export(_id(experiment), form)

    def verify(self, experiment: str | None = None) -> list[Verdict]:
        """Replay the log of one experiment, or of all, and compare bit for bit with what is stored."""
        return [read(Verdict, found) for found in self.store.verify(None if experiment is None else _id(experiment))]

    def series(self, experiment: str, last: int = 2000) -> Json:
        """Return the columns behind the charts, over the latest `last` rows."""
        return self.store.series(_id(experiment), last)

    def bulk_ask(self, items: Iterable[Mapping[str, Any] | str]) -> list[Turn | Refused]:
        """Ask for many experiments at once: ids, or {"experiment", "unit"}; each is answered on its own."""
        asked = [_order(item, ("experiment",), _ask) for item in items]
        return [each if isinstance(each, Refused) else read(Turn, each) for each in self._performed_many(asked)]

    def bulk_tell(self, items: Iterable[Mapping[str, Any]]) -> list[Report | Refused]:
        """Report many totals at once: {"experiment", "round", "total", "unit"?}; each is answered on its own."""
        told = [_order(item, ("experiment", "round", "total"), _tell) for item in items]
        return [each if isinstance(each, Refused) else read(Report, each) for each in self._performed_many(told)]

    def plan(self, n_arms: int, **question: Any) -> Json:
        """Return what a choice of carry-over leads to, before anything starts."""
        from aftereffect.service.experiment.plan import planned

        return planned({"n_arms": n_arms, **question})

    def create_token(self, name: str, scopes: Sequence[str]) -> Json:
        """Make a token; the answer is the only place where it is ever shown."""
        return {"name": name, "scopes": list(scopes), "token": self.store.create_token(name, scopes)}

    def tokens(self) -> list[Json]:
        """List the tokens: names, scopes, dates, never the tokens themselves."""
        return list(self.store.tokens())

    def revoke_token(self, token_id: str) -> None:
        """Make a token worthless."""
        self.store.revoke_token(_id(token_id))

    def _performed(self, experiment: str, command: commands.Command) -> Json:
        return {"experiment": experiment, **self.store.perform(_id(experiment), command)}

    def _performed_many(self, orders: Sequence[Order | Refused]) -> list[Json | Refused]:
        """Carry out what can be read, in one write, and return everything in its place."""
        sent = [order for order in orders if not isinstance(order, Refused)]
        answers = iter(zip(sent, self.store.perform_many(sent), strict=True))
        found: list[Json | Refused] = []
        for order in orders:
            if isinstance(order, Refused):
                found.append(order)
                continue
            (experiment, _), answer = next(answers)
            found.append(answer if isinstance(answer, Refused) else {"experiment": experiment, **answer})
        return found

    def _changed(self, experiment: str, command: commands.Command) -> Overview:
        self.store.perform(_id(experiment), command)
        return self.experiment(experiment)


def _id(given: Any) -> str:
    """Return an id; what cannot be one is not looked for."""
    if not isinstance(given, str) or not LOOKS_LIKE_AN_ID.fullmatch(given):
        raise Refused("not_found", f"there is nothing with the id {shown(given)}")
    return given


def _order(
    item: Mapping[str, Any] | str, needed: Sequence[str], make: Callable[[Mapping[str, Any]], commands.Command]
) -> Order | Refused:
    """Return what an item of a bulk request means; one that cannot be read must not keep the others."""
    given = {"experiment": item} if isinstance(item, str) else item
    missing = [name for name in needed if name not in given]
    if missing:
        return Refused("invalid", f"an item must have the key {missing[0]!r}, but got {shown(given)}")
    try:
        return _id(given["experiment"]), make(given)
    except Refused as refusal:
        return refusal


def _ask(item: Mapping[str, Any]) -> commands.Ask:
    return commands.Ask(checked(AskItem, item, "an item").unit)


def _tell(item: Mapping[str, Any]) -> commands.Tell:
    told = checked(TellItem, item, "an item")
    return commands.Tell(told.round, told.total, told.unit)


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


def open_service(store: str, token: str | None = None, *, create: bool = False, plays: bool = True) -> Service:
    """Return the service in a store; where a server holds the file, the server is spoken to.

    `token` defaults to AFTEREFFECT_TOKEN. With `create`, a SQLite file that is not there is made. `plays`: experiments
    are going to be played or replayed.
    """
    secret = token if token is not None else os.environ.get("AFTEREFFECT_TOKEN") or None
    if is_server(store):
        from aftereffect.service.client import Client

        return Client(store, secret, retries=RETRIES)
    place = database(store) if create else existing(store)
    return open_local(place, secret, plays=plays)


@contextmanager
def opened(store: str, *, create: bool = False, plays: bool = True) -> Iterator[Service]:
    """Open the service in a store, as `open_service` does, and close it afterwards."""
    service = open_service(store, create=create, plays=plays)
    try:
        yield service
    finally:
        service.close()


LOOKS_LIKE_AN_ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
PAGE = 1000
LISTED = 20


def everything(service: Service) -> Iterator[Overview]:
    """Yield all experiments, page by page."""
    after: str | None = None
    while True:
        page = service.experiments(after=after, limit=PAGE)
        yield from page.items
        after = page.next
        if after is None:
            return


def chosen(service: Service, reference: str | None) -> str:
    """Return the id of the experiment with this id or name; without a reference, of the only one there is.

    An id wins over a name. A name that several bear, or no name where several are, is refused with their ids.
    """
    if reference is None:
        found = list(everything(service))
        if not found:
            raise Refused("not_found", "the store holds no experiment yet; `aftereffect init` makes one")
        if len(found) > 1:
            raise Refused("invalid", f"EXPERIMENT must say which of {len(found)} experiments: {_listed(found)}")
        return found[0].id
    if LOOKS_LIKE_AN_ID.fullmatch(reference):
        try:
            return service.experiment(reference).id
        except Refused as refusal:
            if refusal.status != 404:
                raise
    named = [one for one in everything(service) if one.name == reference]
    if not named:
        raise Refused("not_found", f"EXPERIMENT must be the id or name of an experiment, but got {shown(reference)}")
    if len(named) > 1:
        raise Refused(
            "invalid",
            f"EXPERIMENT must be an id where several experiments are named {reference!r}: {_listed(named)}",
        )
    return named[0].id


def _listed(found: list[Overview]) -> str:
    shown = ", ".join(f"{one.id} ({one.name}, {one.state})" for one in found[:LISTED])
    return shown if len(found) <= LISTED else f"{shown} and {len(found) - LISTED} more"
