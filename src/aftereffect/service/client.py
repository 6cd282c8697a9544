"""`aftereffect.Client`: the decision service from Python, by the address of its server.

    with aftereffect.Client("http://127.0.0.1:8000") as client:
        experiment = client.create(name="mailings", arms=["letter", "email"], max_delay=2, high=50.0)
        turn = client.ask(experiment.id)                        # turn.arm is what to do today
        client.tell(experiment.id, turn.round, total=31.5)      # when the figure is there

What the server refuses is a `ProblemError` (RFC 9457). `local.Local` has the same methods on a file without a server.

A request is repeated only where that cannot change anything twice: when the server refused it for the moment (429,
503), when no connection came about, and, for requests that the service answers alike however often they come (all
but those that make something new), also when the connection broke before the answer.
"""

import ipaddress
import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote

import httpx

from aftereffect.core.checks import choice, integer, real, shown
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.service.errors import CODES, Refused
from aftereffect.service.replies import Json, Overview, Page, Report, Row, Turn, Verdict, read, read_page

__all__ = ["Client", "ProblemError"]


LONGEST_WAIT = 10.0


class ProblemError(Refused):
    """What a server refused, or that it could not be reached: `.status`, `.code`, `.detail`, `.problem()`."""

    def __init__(self, status: int, code: str, detail: str, **extra: Any) -> None:
        """Take the parts of a problem document; a newer server may use codes that are not in the table."""
        AftereffectError.__init__(self, detail)
        self.code, self.status, self.detail, self.extra = code, status, detail, extra
        self.title = CODES[code][1] if code in CODES else _phrase(status)

    @classmethod
    def of(cls, status: int, body: Any) -> Self:
        """Return the error that a problem document describes; `status` serves where it does not say."""
        known = dict(body) if isinstance(body, Mapping) else {}
        code, detail = known.pop("code", None), known.pop("detail", None)
        told = known.pop("status", None)
        known.pop("type", None)
        title = known.pop("title", None)
        words = detail or title or f"the server answered with status {status}"
        return cls(told if isinstance(told, int) else status, str(code or f"status_{status}"), str(words), **known)


class Wire:
    """One connection pool to one server."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 5,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Connect to nothing yet; `transport` and `sleep` are there for tests."""
        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, TypeError):
            raise InvalidArgument(f"url must be the address of a server, but got {shown(url)}") from None
        choice("url's scheme", address.scheme, ("http", "https"))
        if not address.host:
            raise InvalidArgument(f"url must name a host, but got {shown(url)}")
        if address.userinfo:
            raise InvalidArgument("url must not hold a user or password; give a token instead")
        self.retries = integer("retries", retries, low=0)
        self._sleep = sleep
        headers = {"Accept": "application/json"}
        if token is not None:
            if not token.isascii() or not token.isprintable() or " " in token:
                raise InvalidArgument("token must be one word of visible ASCII characters")
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(
            base_url=str(address).rstrip("/"),
            headers=headers,
            timeout=real("timeout", timeout, above=0.0),
            transport=transport,
            # A proxy for the world outside would break, or read, what is said to a server on this machine.
            trust_env=not _on_loopback(address.host),
        )
        self.url = str(address).rstrip("/")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def json(self, method: str, path: str, body: Any = None, *, again: bool = False, **query: Any) -> Any:
        """Return the JSON answer to a request."""
        answer = self.send(method, path, body, again=again, **query)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise ProblemError(
                502, "unreadable", f"{self.url} must answer in JSON, but answered {shown(answer.text)}"
            ) from None

    def send(self, method: str, path: str, body: Any = None, *, again: bool = False, **query: Any) -> httpx.Response:
        """Return the answer to a request, repeated where it may be; anything but success is a `ProblemError`."""
        content = None if body is None else _encoded(body)
        headers = {} if content is None else {"Content-Type": "application/json"}
        asked = {name: value for name, value in query.items() if value is not None}
        for attempt in range(self.retries + 1):
            last = attempt == self.retries
            try:
                answer = self._http.request(method, path, content=content, params=asked, headers=headers)
            except httpx.InvalidURL as error:
                raise InvalidArgument(f"a request must fit into an address, but {error}: {shown(path)}") from None
            except httpx.TransportError as error:
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if last or not (again or unsent):
                    raise ProblemError(
                        503, "unreachable", f"{self.url} must be a running server, but: {_told(error)}"
                    ) from None
                self._sleep(_pause(attempt, None))
                continue
            # A 503 may stand for a commit whose answer was lost: only what may be sent twice is sent again.
            if (answer.status_code == 429 or (answer.status_code == 503 and again)) and not last:
                self._sleep(_pause(attempt, answer.headers.get("Retry-After")))
                continue
            if not answer.is_success:
                raise ProblemError.of(answer.status_code, _problem(answer))
            return answer
        raise AssertionError("the last attempt returns or raises")


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


def _on_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"Status {status}"


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        raise InvalidArgument(f"what is sent must hold finite numbers only, but got {shown(body)}") from None
    except TypeError:
        raise InvalidArgument(f"what is sent must be plain JSON, but got {shown(body)}") from None


def _problem(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _told(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__


def _pause(attempt: int, wanted: str | None) -> float:
    """Return how long to wait: what the server asked for, else 0.1 s, doubled each time, up to a limit."""
    try:
        seconds = float(wanted) if wanted is not None else 0.1 * 2.0**attempt
    except ValueError:
        seconds = math.nan
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else 0.1 * 2.0**attempt
