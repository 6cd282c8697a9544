"""Who sees a page and may press a button: scopes, the login cookie, and forms that only own pages may send."""

import re
from collections.abc import Callable
from typing import NamedTuple

from fastapi import Request

from aftereffect.service.api.auth import COOKIE, scopes_of_request
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused

LONGEST_PLACE = 500
_PLACE = re.compile(r"/(?:[A-Za-z0-9_.~%-]+(?:/[A-Za-z0-9_.~%-]+)*/?)?", re.ASCII)


class May(NamedTuple):
    """What the reader of a page may do. leave: there is a login to leave."""

    read: bool
    play: bool
    manage: bool
    leave: bool


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
        raise Refused(
            "forbidden", "a form must be sent from a page of this service, but this one came from elsewhere"
        )


def safe_place(place: str) -> str:
    """Return a path of this service to go on to after a login, "/" for anything else.

    >>> safe_place("/experiments/abc"), safe_place("//elsewhere.example"), safe_place("https://elsewhere.example")
    ('/experiments/abc', '/', '/')
    """
    fits = len(place) <= LONGEST_PLACE and _PLACE.fullmatch(place) is not None
    return place if fits else "/"
