"""Sign-in, and who may see and do what."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Request, Response

from aftereffect.service.api.auth import COOKIE, LONGEST_TOKEN, scopes_of_request
from aftereffect.service.config import Config
from aftereffect.service.dashboard import forms
from aftereffect.service.dashboard.views import page, problem_of, see_other
from aftereffect.service.errors import Refused

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

LONGEST_PLACE = 500
_PLACE = re.compile(r"/(?:[A-Za-z0-9_.~%-]+(?:/[A-Za-z0-9_.~%-]+)*/?)?", re.ASCII)


class May(NamedTuple):
    """What the reader of a page may do. leave: there is a login to leave."""

    read: bool
    play: bool
    manage: bool
    leave: bool


NOTHING = May(read=False, play=False, manage=False, leave=False)


class LoginNeeded(Exception):
    """The reader must log in first."""


def may(request: Request, config: Config) -> May:
    """Return what a request's sender may do."""
    scopes = scopes_of_request(request)
    leave = config.access_required and COOKIE in request.cookies
    return May("read" in scopes, "play" in scopes, "admin" in scopes, leave)


def check_reading(allowed: May) -> None:
    """Ask for a login where one is needed."""
    if not allowed.read:
        raise LoginNeeded


def check_writing(request: Request, allowed: May, scope: str) -> None:
    """Refuse a form that another site sent, or whose sender may not do what it asks.

    A browser says with every form where it comes from, in Sec-Fetch-Site or in Origin. A request with neither is not
    a browser's, and programs have the REST interface.
    """
    check_own_page(request)
    check_reading(allowed)
    if not {"play": allowed.play, "admin": allowed.manage}[scope]:
        raise Refused("forbidden", f"the token must have the scope {scope!r}, but has not")


def writing(config: Config, scope: str) -> Callable[[Request], None]:
    """Return the check of a route that takes forms; as its first dependency it runs before the form is read."""

    def check(request: Request) -> None:
        check_writing(request, may(request, config), scope)

    return check


def check_own_page(request: Request) -> None:
    """Refuse a form that did not come from a page of this service."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if site is not None:
        own = site in ("same-origin", "none")
    else:
        own = origin is not None and origin.partition("://")[2].lower() == request.headers.get("host", "").lower()
    if not own:
        raise Refused("forbidden", "a form must be sent from a page of this service, but this one came from elsewhere")


def safe_place(place: str) -> str:
    """Return a path of this service to go on to after a login, "/" for anything else.

    >>> safe_place("/experiments/abc"), safe_place("//elsewhere.example"), safe_place("https://elsewhere.example")
    ('/experiments/abc', '/', '/')
    """
    fits = len(place) <= LONGEST_PLACE and _PLACE.fullmatch(place) is not None
    return place if fits else "/"


Fields = Annotated[dict[str, str], Depends(forms.fields)]
DAYS_14 = 14 * 86_400


def add_login(routes: APIRouter, store: "Store", config: Config) -> None:
    """Add the login's routes."""

    @routes.get("/login")
    def form(request: Request, next: Annotated[str, Query(max_length=LONGEST_PLACE)] = "/") -> Response:
        if may(request, config).read:
            return see_other(safe_place(next))
        return page("login.html", may=NOTHING, here="login", next=safe_place(next), problem=None)

    @routes.post("/login", dependencies=[Depends(check_own_page)])
    def login(request: Request, given: Fields) -> Response:
        token, place = given.get("token", "").strip(), safe_place(given.get("next", "/"))
        fits = 0 < len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable()
        if not fits or store.scopes_of(token) is None:
            refusal = Refused("unauthorized", "the token must be valid, but is unknown or revoked")
            problem = problem_of(refusal, "token")
            return page("login.html", status=401, may=NOTHING, here="login", next=place, problem=problem)
        answer = see_other(place)
        # Behind something that speaks TLS the request itself is plain; the browser still says how it got here.
        secure = "https" in (request.url.scheme, request.headers.get("origin", "").partition("://")[0].lower())
        answer.set_cookie(COOKIE, token, max_age=DAYS_14, httponly=True, samesite="strict", secure=secure, path="/")
        return answer

    @routes.post("/logout")
    def logout(request: Request) -> Response:
        check_own_page(request)
        answer = see_other("/login")
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer
