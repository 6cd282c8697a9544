"""Error responses: every error is sent as `application/problem+json` (RFC 9457) with a stable `code`.

A `Refused` has these fields already. Errors of the framework (an unknown path or method) are converted to one. Any
other exception is answered with status 500, without internal details.
"""

import json
import re
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from aftereffect.core.errors import AftereffectError
from aftereffect.service.api.telemetry import LOGGER, route_of
from aftereffect.service.errors import Refused

MEDIA_TYPE = "application/problem+json"
# Paths, and the address of a database that cannot be reached, as its driver writes it.
PLACE = re.compile(r"""(?:/[^\s/'":;,]+){2,}|(?<=at )"[^"]*"(?: \([^)]*\))?, port \d+|(?<=host )'[^']*'""")


def refusal(error: Exception) -> Refused:
    """Return an exception as the `Refused` to send to the client.

    >>> refusal(AftereffectError("total must be a finite number, but got 'x'")).code
    'invalid'
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, AftereffectError):
        return Refused("invalid", str(error))
    if isinstance(error, HTTPException):
        detail = "there is nothing at this address" if error.status_code == 404 else error.detail
        return Refused({404: "not_found", 405: "not_allowed"}.get(error.status_code, "bad_request"), detail)
    if isinstance(error, RequestValidationError):
        return Refused("invalid", "the address must be that of a page, but one of its parameters is invalid")
    return Refused("internal", "an unexpected error occurred; it was logged, and the request was not acknowledged")


def problem_of(refused: Refused) -> dict[str, Any]:
    """Return the fields of a problem document; in the detail of a server error, places are replaced by "…"."""
    return refused.problem() | ({"detail": PLACE.sub("…", refused.detail)} if refused.status >= 500 else {})


def response(error: Exception) -> Response:
    """Return the response to a request that ended in an error."""
    refused = refusal(error)
    problem = problem_of(refused)
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="aftereffect"'
    if refused.status in (429, 503):
        headers["Retry-After"] = str(max(1, int(problem.get("retry_after", 1))))
    # ASCII only: a detail may quote client input, which may not be encodable as UTF-8.
    return Response(json.dumps(problem, default=str).encode(), refused.status, headers, MEDIA_TYPE)


async def handle(request: Request, error: Exception) -> Response:
    """Return the response for an exception raised by a route, and log it if needed."""
    refused = refusal(error)
    facts: dict[str, Any] = {"route": route_of(request.scope), "detail": str(error)}
    if refused.status >= 500:
        LOGGER.error("refused", extra={"facts": facts})
    if _by_person(request, error):
        shown: Response = request.app.state.problem_page(request, refused)
        return shown
    answer = response(error)
    if answer.status_code == 401:
        LOGGER.warning("unauthorized", extra={"facts": facts | {"client": request.client and request.client.host}})
    elif answer.status_code == 405:
        # The framework lists the methods of one route, but a path may have several routes.
        methods = {name.upper() for name in request.app.openapi()["paths"].get(facts["route"], ())}
        if "GET" in methods:
            methods.add("HEAD")
        answer.headers["Allow"] = ", ".join(sorted(methods)) or answer.headers["Allow"]
    return answer


def _by_person(request: Request, error: Exception) -> bool:
    """Return whether a person looks at a page, and not a program at the REST API."""
    if not isinstance(error, HTTPException):
        # The routes of pages are not part of the API's description.
        return not getattr(request.scope.get("route"), "include_in_schema", True)
    # Somebody has typed a wrong address, or followed an old link.
    page = request.method == "GET" and not request.url.path.startswith("/v1/")
    return error.status_code == 404 and page and "text/html" in request.headers.get("accept", "")


def add_handlers(app: FastAPI) -> None:
    """Register `handle` for all expected exceptions; the middleware handles the others."""
    for kind in (AftereffectError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, handle)
