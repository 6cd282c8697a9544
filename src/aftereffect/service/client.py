"""`aftereffect.Client`: the decision service from Python, through a server.

    with aftereffect.Client("http://127.0.0.1:8000") as client:
        experiment = client.create(name="mailings", arms=["letter", "email"], max_delay=2, high=50.0)
        turn = client.ask(experiment.id)                        # turn.arm is the arm to play today
        client.tell(experiment.id, turn.round, total=31.5)      # when the total is known

A refused request raises `ProblemError` (RFC 9457). `Local` has the same methods on a file without a server.

A request is retried only if it cannot take effect twice: when no connection was made or the server answered 429, and,
if the request is idempotent, also after a 503 or a connection lost before the answer. An amend is idempotent if it
names the total it corrects.
"""

import json
import math
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx

from aftereffect.core.checks import choice, integer, real, shown
from aftereffect.core.errors import InvalidArgument
from aftereffect.service.protocol import ProblemError, Service, is_loopback

__all__ = ["Client", "ProblemError"]

LONGEST_WAIT = 10.0
PATIENCE = 600.0
"""Timeout in seconds for exports, verifications and estimates, whose time grows with the log."""
SLOW = ("export", "verify", "verify_all", "carryover", "accept")
REQUESTS = {
    "create": "POST /v1/experiments",
    "correct": "POST /v1/experiments/{}/correct",
    "continue_with": "POST /v1/experiments/{}/continue",
    "experiments": "GET /v1/experiments",
    "compare": "GET /v1/compare",
    "note": "PUT /v1/experiments/{}/rounds/{}/note",
    "reminder": "GET /v1/experiments/{}/reminder",
    "remind": "PUT /v1/experiments/{}/reminder",
    "forget_reminder": "DELETE /v1/experiments/{}/reminder",
    "experiment": "GET /v1/experiments/{}",
    "ask": "POST /v1/experiments/{}/ask",
    "tell": "PUT /v1/experiments/{}/rounds/{}",
    "amend": "POST /v1/experiments/{}/rounds/{}/amend",
    "reports": "POST /v1/experiments/{}/reports",
    **{verb: f"POST /v1/experiments/{{}}/{verb}" for verb in ("start", "accept", "pause", "resume", "finish")},
    **{verb: f"POST /v1/experiments/{{}}/arms/{{}}/{verb}" for verb in ("away", "back")},
    **{word: f"GET /v1/experiments/{{}}/{word}" for word in ("rounds", "events", "series", "export", "verify")},
    "carryover": "GET /v1/experiments/{}/carryover",
    "verify_all": "GET /v1/verify",
    "bulk_ask": "POST /v1/bulk/ask",
    "bulk_tell": "POST /v1/bulk/tell",
    "plan": "POST /v1/plan",
    "create_token": "POST /v1/tokens",
    "tokens": "GET /v1/tokens",
    "revoke_token": "DELETE /v1/tokens/{}",
}


class Client(Service):
    """A client of a server. Thread-safe; close it, or use it in a `with` statement.

    token: for servers that require one. timeout: seconds per attempt. transport, sleep: for tests.
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

    def _call(self, operation: str, *path: Any, body: Any = None, again: bool = True, **query: Any) -> Any:
        method, _, template = REQUESTS[operation].partition(" ")
        try:
            request = self._http.build_request(
                method,
                template.format(*(_segment(str(part)) for part in path)),
                content=None if body is None else _encoded(body),
                headers={} if body is None else {"Content-Type": "application/json"},
                params={name: value for name, value in query.items() if value is not None},
                timeout=PATIENCE if operation in SLOW else httpx.USE_CLIENT_DEFAULT,
            )
        except httpx.InvalidURL as error:
            raise InvalidArgument(f"a request must fit into an address, but {error}: {shown(path)}") from None
        answer = self._send(request, again)
        if operation == "export" or not answer.content:
            return answer.content
        found = _document(answer)
        if found is None:
            told = shown(answer.text)
            raise ProblemError(502, "unreadable", f"{self.url} must answer in JSON, but answered {told}")
        return found

    def _send(self, request: httpx.Request, again: bool) -> httpx.Response:
        """Send a request, with retries where they are safe, and return the answer; raise `ProblemError` on failure."""
        for attempt in range(self.retries + 1):
            wait = None
            try:
                answer = self._http.send(request)
                if answer.is_success:
                    return answer
                # After a 503 the change may have been committed.
                repeat = answer.status_code == 429 or (answer.status_code == 503 and again)
                wait = answer.headers.get("Retry-After")
                problem = ProblemError.of(answer.status_code, _document(answer))
            except httpx.TransportError as error:
                repeat = again or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                told = str(error) or type(error).__name__
                problem = ProblemError(503, "unreachable", f"{self.url} must be a running server, but: {told}")
            if not repeat or attempt == self.retries:
                break
            self._sleep(_pause(attempt, wait))
        raise problem from None


def _segment(part: str) -> str:
    """Return one segment of a path, quoted; "." and ".." would otherwise change the path."""
    # An argument of a command may contain lone surrogates; the server refuses them.
    quoted = quote(part, safe="", errors="surrogatepass")
    return quoted if part.strip(".") else quoted.replace(".", "%2E")


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError):
        raise InvalidArgument(f"a request must be JSON with finite numbers only, but got {shown(body)}") from None


def _document(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _pause(attempt: int, wanted: str | None) -> float:
    """Return the seconds to wait: Retry-After if given, else 0.1 s doubled with each attempt; at most LONGEST_WAIT."""
    try:
        seconds = math.nan if wanted is None else float(wanted)
    except ValueError:
        seconds = math.nan
    return min(max(seconds if math.isfinite(seconds) else 0.1 * 2.0**attempt, 0.0), LONGEST_WAIT)
