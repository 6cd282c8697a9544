"""Requests to a server: bearer token, problem+json errors (RFC 9457), and what may be sent again.

A request is repeated only where that cannot change anything twice: when the server refused it for the moment (429,
503), when no connection came about, and, for requests that the service answers alike however often they come (all
but those that make something new), also when the connection broke before the answer.
"""

import ipaddress
import json
import math
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Self

import httpx

from aftereffect.core.checks import choice, integer, real, shown
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.service.errors import CODES, Refused

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
