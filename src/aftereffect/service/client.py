"""`aftereffect.Client`: the decision service from Python, through a server.

    with aftereffect.Client("http://127.0.0.1:8000") as client:
        experiment = client.create(name="mailings", arms=["letter", "email"], max_delay=2, high=50.0)
        turn = client.ask(experiment.id)                        # turn.arm is the arm to play today
        client.tell(experiment.id, turn.round, total=31.5)      # when the total is known

A refused request raises `Refused`, as with `Local`, which has the same methods on a file without a server.

A request is repeated if the server answers 429 or 503, or if the connection is lost before the answer. That is safe:
what creates something is sent with an idempotency key, an amend names the total it corrects, and all other operations
may be repeated.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import httpx

from aftereffect.core.checks import choice, integer, real, shown
from aftereffect.core.errors import InvalidArgument
from aftereffect.service.errors import Refused
from aftereffect.service.operations import KEY, Operation
from aftereffect.service.protocol import Service, is_loopback

LONGEST_WAIT = 10.0
PATIENCE = 600.0
"""Timeout in seconds for exports, verifications and estimates, whose time grows with the log."""


class Client(Service):
    """A client of a server. Thread-safe; close it, or use it in a `with` statement.

    token: for servers that require one. timeout: seconds per attempt. transport, sleep: for tests.

    >>> with Client("http://127.0.0.1:8000") as client:          # doctest: +SKIP
    ...     made = client.create(name="mailings", arms=["letter", "email"])
    ...     turn = client.ask(made.id)
    ...     client.tell(made.id, turn.round, 42.0)
    """

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
        try:
            address = httpx.URL(url)
        except (httpx.InvalidURL, TypeError):
            raise InvalidArgument(f"url must be the address of a server, but got {shown(url)}") from None
        choice("url's scheme", address.scheme, ("http", "https"))
        if not address.host:
            raise InvalidArgument(f"url must name a host, but got {shown(url)}")
        if address.userinfo:
            raise InvalidArgument("url must not contain a user name or password; use a token instead")
        headers = {"Accept": "application/json"}
        if token is not None:
            if not token.isascii() or not token.isprintable() or " " in token:
                raise InvalidArgument("token must be one word of visible ASCII characters")
            headers["Authorization"] = f"Bearer {token}"
        self.url = str(address).rstrip("/")
        self.retries = integer("retries", retries, low=0)
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=real("timeout", timeout, above=0.0),
            transport=transport,
            # Requests to a server on this machine must not go through a proxy.
            trust_env=not is_loopback(address.host),
        )

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _answer(self, operation: Operation[Any], path: Mapping[str, Any], body: Any, query: Mapping[str, Any]) -> Any:
        headers = {KEY: secrets.token_urlsafe(32)} if "key" in operation.parameters else {}
        try:
            request = self._http.build_request(
                operation.method,
                operation.path.replace(":path", "").format(**{name: _segment(str(path[name])) for name in path}),
                json=body,
                headers=headers,
                params=query,
                timeout=PATIENCE if operation.pool == "long_reads" else httpx.USE_CLIENT_DEFAULT,
            )
        except httpx.InvalidURL as error:
            detail = f"a request must fit into an address, but {error}: {shown(dict(path))}"
            raise Refused("invalid", detail) from None
        except (ValueError, TypeError):
            # If a rule of the operation says which argument it is, it is refused as without a server.
            operation.read(body)
            rule = "a request must be JSON with finite numbers only, and without lone surrogates"
            raise Refused("invalid", f"{rule}, but got {shown(body or dict(query))}") from None
        answer = self._send(request)
        if operation.reply is bytes or not answer.content:
            return answer.content
        found = _document(answer)
        if found is None:
            told = shown(answer.text)
            raise Refused("unreadable", f"{self.url} must answer in JSON, but answered {told}")
        return found

    def _send(self, request: httpx.Request) -> httpx.Response:
        """Send a request, again if need be, and return the answer; raise `Refused` on failure."""
        for attempt in range(self.retries + 1):
            wait = ""
            try:
                answer = self._http.send(request)
                if answer.is_success:
                    return answer
                repeat = answer.status_code in (429, 503)
                wait = answer.headers.get("Retry-After", "")
                problem = Refused.from_problem(answer.status_code, _document(answer))
            except httpx.TransportError as error:
                repeat = True
                told = str(error) or type(error).__name__
                problem = Refused("unreachable", f"{self.url} must be a running server, but: {told}")
            if not repeat or attempt == self.retries:
                break
            self._sleep(_pause(attempt, wait))
        raise problem from None


def _segment(part: str) -> str:
    """Return one segment of a path, quoted; "." and ".." would otherwise change the path."""
    # An argument of a command may contain lone surrogates; the server refuses them.
    quoted = quote(part, safe="", errors="surrogatepass")
    return quoted if part.strip(".") else quoted.replace(".", "%2E")


def _document(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _pause(attempt: int, wanted: str) -> float:
    """Return the seconds to wait: Retry-After if given, else 0.1 s doubled with each attempt; at most LONGEST_WAIT."""
    return min(float(wanted) if wanted.isdecimal() else 0.1 * 2.0**attempt, LONGEST_WAIT)
