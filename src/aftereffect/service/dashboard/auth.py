"""Sign-in, and what the reader of a page may do.

The token goes into a cookie that scripts cannot read and other sites cannot send. A form is taken from this service's
own pages only. A refusal is a page in words, or the sign-in form; never a bare error.
"""

import re
import urllib.parse
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from aftereffect.service.api.auth import COOKIE, LONGEST_TOKEN, scopes_of_request
from aftereffect.service.dashboard.forms import Fields
from aftereffect.service.dashboard.views import HEADERS, page, problem_of
from aftereffect.service.errors import Refused
from aftereffect.service.store.store import Store

LONGEST_PATH = 500
FORTNIGHT = 14 * 86_400
_PATH = re.compile(r"/(?:[A-Za-z0-9_.~%-]+(?:/[A-Za-z0-9_.~%-]+)*/?)?", re.ASCII)


class May(NamedTuple):
    """What the reader of a page may do. sign_out: signed in with a token."""

    read: bool = False
    play: bool = False
    manage: bool = False
    sign_out: bool = False


class SignInNeeded(Exception):
    """The reader must sign in first."""


class PageRoute(APIRoute):
    """A route whose refusals are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route's handler."""
        inner = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await inner(request)
            except SignInNeeded:
                wanted = safe_path(request.url.path) if request.method == "GET" else "/"
                return see_other("/login?" + urllib.parse.urlencode({"next": wanted}))
            except Refused as refusal:
                found = refusal
            except RequestValidationError:
                found = Refused("invalid", "the address must be that of a page, but one of its parameters is not valid")
            return page("problem.html", May(), status=found.status, problem=problem_of(found), here="")

        return answer


router = APIRouter(route_class=PageRoute, include_in_schema=False)


def store_of(request: Request) -> Store:
    """Return the store of the app."""
    store: Store = request.app.state.store
    return store


def may(request: Request) -> May:
    """Return what a request's sender may do."""
    scopes = scopes_of_request(request)
    signed_in = request.app.state.config.access_required and COOKIE in request.cookies
    return May("read" in scopes, "play" in scopes, "admin" in scopes, signed_in)


def reader(allowed: Annotated[May, Depends(may)]) -> May:
    """Ask for a sign-in where one is needed."""
    if not allowed.read:
        raise SignInNeeded
    return allowed


def check_browser(request: Request) -> None:
    """Refuse a form that no browser sent: programs have the REST interface.

    A browser says with every form where it comes from, in Sec-Fetch-Site or in Origin; one from another site has been
    refused before (`api.auth.Auth.check_site`).
    """
    if "sec-fetch-site" not in request.headers and "origin" not in request.headers:
        raise Refused("forbidden", "a form must be sent from a page of this service, but this one came from elsewhere")


def sender(scope: str) -> Callable[..., May]:
    """Return the dependency of a form that needs this scope."""

    def check(request: Request, allowed: Annotated[May, Depends(may)]) -> May:
        check_browser(request)
        reader(allowed)
        if not {"play": allowed.play, "admin": allowed.manage}[scope]:
            raise Refused("forbidden", f"the token must have the scope {scope!r}, but has not")
        return allowed

    return check


player, manager = sender("play"), sender("admin")

# A dependency on one of these comes before the form in a handler's parameters, so that it is checked first.
Open = Annotated[Store, Depends(store_of)]
Anyone = Annotated[May, Depends(may)]
Reader = Annotated[May, Depends(reader)]
Manager = Annotated[May, Depends(manager)]


def safe_path(path: str) -> str:
    """Return a path of this service to go on to after signing in, "/" for anything else.

    >>> safe_path("/experiments/abc"), safe_path("//elsewhere.example"), safe_path("https://elsewhere.example")
    ('/experiments/abc', '/', '/')
    """
    return path if len(path) <= LONGEST_PATH and _PATH.fullmatch(path) else "/"


def see_other(path: str) -> RedirectResponse:
    """Return the answer to a form that was taken: go there, and a reload sends nothing again."""
    return RedirectResponse(path, status_code=303, headers=HEADERS)


@router.get("/login")
def sign_in_form(allowed: Anyone, next: Annotated[str, Query(max_length=LONGEST_PATH)] = "/") -> Response:
    """Show the form; who is signed in goes on."""
    if allowed.read:
        return see_other(safe_path(next))
    return page("login.html", May(), here="login", next=safe_path(next), problem=None)


@router.post("/login", dependencies=[Depends(check_browser)])
def sign_in(request: Request, store: Open, given: Fields) -> Response:
    """Take a token."""
    token, path = given.get("token", "").strip(), safe_path(given.get("next", "/"))
    fits = 0 < len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable()
    if not fits or store.scopes_of(token) is None:
        problem = problem_of(Refused("unauthorized", "the token must be valid, but is unknown or revoked"), "token")
        return page("login.html", May(), status=401, here="login", next=path, problem=problem)
    answer = see_other(path)
    # Behind a proxy that terminates TLS the request itself is plain; the browser still says how it got here.
    secure = "https" in (request.url.scheme, request.headers.get("origin", "").partition("://")[0].lower())
    answer.set_cookie(COOKIE, token, max_age=FORTNIGHT, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@router.post("/logout", dependencies=[Depends(check_browser)])
def sign_out() -> Response:
    """Forget the token."""
    answer = see_other("/login")
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
