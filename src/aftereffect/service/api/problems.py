"""Errors as answers: every refusal and failure leaves as `application/problem+json` (RFC 9457), with a stable `code`.

What the domain refuses is a `Refused` and carries its own fields. What only exists in HTTP (a method a path does not
have, a body that is not JSON) is a `Rejected`. Anything else is a fault of the service: status 500, and the answer says
nothing about its inside.
"""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from aftereffect.core.errors import AftereffectError
from aftereffect.service.errors import Refused

MEDIA_TYPE = "application/problem+json"

# The titles of what only exists in HTTP; the domain's codes bring their own.
TITLES = {
    "bad_request": (400, "The request cannot be read"),
    "not_found": (404, "There is nothing here"),
    "not_allowed": (405, "This path has no such method"),
    "timeout": (408, "The body took too long"),
    "unsupported": (415, "The body is not JSON"),
    "internal": (500, "The service failed"),
}
CODE_OF_STATUS = {status: code for code, (status, _) in TITLES.items()}


class Rejected(Exception):
    """A request that HTTP itself has a word for; `code` is one of `TITLES`."""

    def __init__(self, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        """Keep what the answer will say."""
        super().__init__(detail)
        self.code, self.detail, self.headers = code, detail, dict(headers or {})
        self.status, self.title = TITLES[code]

    def problem(self) -> dict[str, Any]:
        """Return the fields of the answer."""
        return fields(self.code, self.title, self.status, self.detail)


def fields(code: str, title: str, status: int, detail: str) -> dict[str, Any]:
    """Return the fields of a problem."""
    return {"type": f"urn:aftereffect:{code}", "title": title, "status": status, "detail": detail, "code": code}


def problem_of(error: Exception) -> dict[str, Any]:
    """Return the fields that tell a client about an error.

    >>> problem_of(AftereffectError("total must be a finite number, but got 'x'"))["code"]
    'invalid'
    """
    if isinstance(error, Refused | Rejected):
        return dict(error.problem())
    if isinstance(error, AftereffectError):
        return dict(Refused("invalid", str(error)).problem())
    return Rejected("internal", "something went wrong here; it was logged, and nothing was acknowledged").problem()


def answer(error: Exception) -> Response:
    """Return the response that tells a client about an error."""
    problem = problem_of(error)
    headers = dict(error.headers) if isinstance(error, Rejected) else {}
    status = int(problem["status"])
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="aftereffect"'
    if status in (429, 503):
        headers["Retry-After"] = str(max(1, int(problem.get("retry_after", 1))))
    # ASCII only: a detail may quote what a client sent, and that need not be encodable.
    content = json.dumps(problem, ensure_ascii=True, default=str).encode()
    return Response(content, status, headers, MEDIA_TYPE)


def answer_status(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response for a status that the web framework decided on."""
    code = CODE_OF_STATUS.get(status)
    if code is not None:
        return answer(Rejected(code, detail, headers))
    problem = fields(f"http_{status}", detail, status, detail)
    return Response(json.dumps(problem).encode(), status, dict(headers or {}), MEDIA_TYPE)
