"""`aftereffect.Client`: the decision service from Python, by the address of its server.

    with aftereffect.Client("http://127.0.0.1:8000") as client:
        experiment = client.create(name="mailings", arms=["letter", "email"], max_delay=2, high=50.0)
        turn = client.ask(experiment.id)                        # turn.arm is what to do today
        client.tell(experiment.id, turn.round, total=31.5)      # when the figure is there

Names, not indices; every method is named after what the service does and answers with a dataclass of `replies.py`.
What the server refuses is a `ProblemError`. `local.Local` has the same methods on a file without a server.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

from aftereffect.core.checks import integer
from aftereffect.service.replies import Json, Overview, Page, Report, Row, Turn, Verdict, read, read_page
from aftereffect.service.wire import ProblemError, Wire

__all__ = ["Client", "ProblemError"]


class Client:
    """The service behind an address. Thread-safe; close it, or use it in a `with` statement."""

    def __init__(self, url: str, token: str | None = None, **options: Any) -> None:
        """Take the server's address and, where it wants one, a token; `options` are those of `wire.Wire`."""
        self._wire = Wire(url, token, **options)

    def __repr__(self) -> str:
        """Show the address, never the token."""
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    @property
    def url(self) -> str:
        """The server's address."""
        return self._wire.url

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def create(self, **settings: Any) -> Overview:
        """Make an experiment: name, arms, low, high, max_delay or carry_over, and what else docs/service.md lists."""
        return read(Overview, self._wire.json("POST", "/v1/experiments", settings))

    def experiment(self, experiment: str) -> Overview:
        """Return one experiment."""
        return read(Overview, self._wire.json("GET", _path(experiment), again=True))

    def experiments(self, after: str | None = None, limit: int = 100, state: str | None = None) -> Page:
        """Return a page of experiments."""
        found = self._wire.json("GET", "/v1/experiments", again=True, after=after, limit=limit, state=state)
        return read_page(Overview, found)

    def ask(self, experiment: str, unit: str | int | None = None) -> Turn:
        """Open the next round, or return the open one: what to play, and why."""
        return read(Turn, self._wire.json("POST", _path(experiment, "ask"), _with_unit({}, unit), again=True))

    def tell(self, experiment: str, round: int, total: float | None, unit: str | int | None = None) -> Report:
        """Report the total of a round; None closes it as missing. The same total again is accepted again."""
        where = _path(experiment, "rounds", str(integer("round", round)))
        return read(Report, self._wire.json("PUT", where, _with_unit({"total": total}, unit), again=True))

    def amend(self, experiment: str, round: int, total: float | None, unit: str | int | None = None) -> Report:
        """Correct a total, or bring a late one, while the round's block is open."""
        where = _path(experiment, "rounds", str(integer("round", round)), "amend")
        return read(Report, self._wire.json("POST", where, _with_unit({"total": total}, unit), again=True))

    def start(self, experiment: str) -> Overview:
        """Start a draft."""
        return self._changed(experiment, "start")

    def pause(self, experiment: str) -> Overview:
        """Pause: no round opens until `resume`."""
        return self._changed(experiment, "pause")

    def resume(self, experiment: str) -> Overview:
        """Go on, with max_delay rounds of warm-up."""
        return self._changed(experiment, "resume")

    def finish(self, experiment: str) -> Overview:
        """End it for good and say which arm won."""
        return self._changed(experiment, "finish")

    def away(self, experiment: str, arm: str) -> Overview:
        """Say that an arm cannot be played for now; the guarantee is void from then on."""
        return self._changed(experiment, "arms", arm, "away")

    def back(self, experiment: str, arm: str) -> Overview:
        """Say that an arm can be played again."""
        return self._changed(experiment, "arms", arm, "back")

    def rounds(self, experiment: str, after: str | int | None = None, limit: int = 100) -> Page:
        """Return a page of the record, a row for each unit and round."""
        found = self._wire.json("GET", _path(experiment, "rounds"), again=True, after=after, limit=limit)
        return read_page(Row, found)

    def events(self, experiment: str, after: int = 0, limit: int = 100) -> Json:
        """Return a page of the log, as it is stored."""
        found: Json = self._wire.json("GET", _path(experiment, "events"), again=True, after=after, limit=limit)
        return found

    def export(self, experiment: str, form: str = "csv") -> bytes:
        """Return the record as a CSV or Parquet file."""
        return self._wire.send("GET", _path(experiment, "export"), again=True, format=form).content

    def verify(self, experiment: str | None = None) -> list[Verdict]:
        """Replay the log of one experiment, or of all, and compare bit for bit with what is stored."""
        if experiment is not None:
            return [read(Verdict, self._wire.json("GET", _path(experiment, "verify"), again=True))]
        found: list[Verdict] = []
        after: str | None = None
        while True:
            page = read_page(Verdict, self._wire.json("GET", "/v1/verify", again=True, after=after))
            found += page.items
            after = page.next
            if after is None:
                return found

    def series(self, experiment: str, last: int = 2000) -> Json:
        """Return the columns behind the charts, over the latest `last` rows."""
        found: Json = self._wire.json("GET", _path(experiment, "series"), again=True, last=last)
        return found

    def bulk_ask(self, items: Iterable[Mapping[str, Any] | str]) -> list[Turn | ProblemError]:
        """Ask for many experiments at once: ids, or {"experiment", "unit"}; each is answered on its own."""
        asked = [{"experiment": item} if isinstance(item, str) else dict(item) for item in items]
        found = self._wire.json("POST", "/v1/bulk/ask", {"items": asked}, again=True)
        return [each if isinstance(each, ProblemError) else read(Turn, each) for each in _each(found)]

    def bulk_tell(self, items: Iterable[Mapping[str, Any]]) -> list[Report | ProblemError]:
        """Report many totals at once: {"experiment", "round", "total", "unit"?}; each is answered on its own."""
        found = self._wire.json("POST", "/v1/bulk/tell", {"items": [dict(item) for item in items]}, again=True)
        return [each if isinstance(each, ProblemError) else read(Report, each) for each in _each(found)]

    def plan(self, n_arms: int, **question: Any) -> Json:
        """Return what a choice of carry-over leads to, before anything starts."""
        found: Json = self._wire.json("POST", "/v1/plan", {**question, "n_arms": n_arms}, again=True)
        return found

    def create_token(self, name: str, scopes: Sequence[str]) -> Json:
        """Make a token; the answer is the only place where it is ever shown."""
        found: Json = self._wire.json("POST", "/v1/tokens", {"name": name, "scopes": list(scopes)})
        return found

    def tokens(self) -> list[Json]:
        """List the tokens: names, scopes, dates, never the tokens themselves."""
        found = self._wire.json("GET", "/v1/tokens", again=True)
        return list(found["items"] if isinstance(found, Mapping) else found)

    def revoke_token(self, token_id: str) -> None:
        """Make a token worthless."""
        self._wire.json("DELETE", f"/v1/tokens/{_segment(token_id)}")

    def _changed(self, experiment: str, *parts: str) -> Overview:
        return read(Overview, self._wire.json("POST", _path(experiment, *parts), again=True))


def _path(experiment: str, *parts: str) -> str:
    return "/".join(["/v1/experiments", *(_segment(part) for part in (experiment, *parts))])


def _segment(part: str) -> str:
    """Return one segment of a path; dots alone would mean another path."""
    # Half a character, as a command line may hold, is nobody's name, but it is no reason to fall over.
    quoted = quote(str(part), safe="", errors="surrogatepass")
    return quoted if part.strip(".") else quoted.replace(".", "%2E")


def _with_unit(body: dict[str, Any], unit: str | int | None) -> dict[str, Any]:
    return body if unit is None else {**body, "unit": str(unit)}


def _each(found: Any) -> list[Any]:
    """Return the items of a bulk answer, those refused as errors."""
    items = found["items"] if isinstance(found, Mapping) else found
    return [ProblemError.of(500, item["error"]) if "error" in item else item for item in items]
