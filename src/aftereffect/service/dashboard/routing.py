"""How a page's refusals reach a person: a page in words, or the login form; never a bare error."""

import urllib.parse
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from aftereffect.service.dashboard.guarding import LoginNeeded, May, safe_place
from aftereffect.service.dashboard.rendering import HEADERS, page
from aftereffect.service.errors import Refused

NOTHING = May(read=False, play=False, manage=False, leave=False)


def problem_of(refusal: Refused, field: str = "") -> dict[str, Any]:
    """Return a refusal as the templates show it. field: the form's field it is about."""
    return {
        "title": "That cannot be taken as it is" if refusal.code == "invalid" else refusal.title,
        "detail": sentence(refusal.detail),
        "field": field,
        "status": refusal.status,
    }


def sentence(words: str) -> str:
    """Return words as a sentence.

    >>> sentence("total must be finite")
    'Total must be finite.'
    """
    first = words[:1].upper() + words[1:]
    return first if first.endswith((".", "!", "?")) else first + "."


def see_other(place: str) -> RedirectResponse:
    """Return the answer to a form that was taken: go there, and a reload sends nothing again."""
    return RedirectResponse(place, status_code=303, headers=HEADERS)


def login_first(request: Request) -> RedirectResponse:
    """Send the reader to the login form, and back afterwards."""
    wanted = safe_place(request.url.path) if request.method == "GET" else "/"
    return see_other("/login?" + urllib.parse.urlencode({"next": wanted}))


class PageRoute(APIRoute):
    """A route whose refusals are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route's handler."""
        inner = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await inner(request)
            except LoginNeeded:
                return login_first(request)
            except Refused as refusal:
                found = refusal
            except RequestValidationError:
                found = Refused("invalid", "the address must name a page, but one of its parts is no number")
            return page("problem.html", status=found.status, problem=problem_of(found), may=NOTHING, here="")

        return answer
