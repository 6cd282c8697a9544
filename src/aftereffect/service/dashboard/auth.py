"""Sign-in to the dashboard, and the permissions of its users.

The token is kept in a cookie that is hidden from scripts (HttpOnly) and not sent from other sites (SameSite). Forms are
accepted only from this service's own pages. An error is shown as a page, or leads to the sign-in form.
"""

import re
import urllib.parse
from collections.abc import Callable
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from aftereffect.service.api.auth import COOKIE, scopes_of_request
from aftereffect.service.dashboard.forms import SignInFields, address
from aftereffect.service.dashboard.views import HEADERS, page, problem_of
from aftereffect.service.errors import Refused
from aftereffect.service.store.store import Store

LONGEST_PATH = 500
FORTNIGHT = 14 * 86_400
_PATH = re.compile(r"/(?:[A-Za-z0-9_.~%-]+(?:/[A-Za-z0-9_.~%-]+)*/?)?", re.ASCII)


class May(NamedTuple):
    """The scopes of a user. sign_out: signed in with a token."""

    read: bool = False
    play: bool = False
    admin: bool = False
    sign_out: bool = False


def problem_page(request: Request, refusal: Refused) -> Response:
    """Return the page on a refusal; somebody who must sign in first is sent to that form."""
    if refusal.status == 401:
        wanted = safe_path(request.url.path) if request.method == "GET" else "/"
        return see_other("/login?" + urllib.parse.urlencode({"next": wanted}))
    return page("problem.html", May(), status=refusal.status, problem=problem_of(refusal), here="")


router = APIRouter(include_in_schema=False)


def store_of(request: Request) -> Store:
    """Return the store of the app."""
    store: Store = request.app.state.store
    return store


def may(request: Request) -> May:
    """Return the permissions of a request."""
    scopes = scopes_of_request(request)
    signed_in = request.app.state.auth.required and COOKIE in request.cookies
    return May("read" in scopes, "play" in scopes, "admin" in scopes, signed_in)


def check_browser(request: Request) -> None:
    """Refuse a form that was not sent by a browser; programs use the REST API.

    With every form a browser sends the header Sec-Fetch-Site or Origin. Forms from other sites have been refused before
    (`api.auth.Auth.check_site`).
    """
    if "sec-fetch-site" not in request.headers and "origin" not in request.headers:
        raise Refused("forbidden", "a form must be sent by a browser from a page of this service, but this one was not")


def with_scope(scope: str, *, form: bool = True) -> Callable[..., May]:
    """Return the dependency for forms, or for pages, that require this scope."""

    def check(request: Request, allowed: Annotated[May, Depends(may)]) -> May:
        if form:
            check_browser(request)
        if not allowed.read:
            raise Refused("unauthorized", "a token must be signed in with to read this page, but none was")
        if not getattr(allowed, scope):
            raise Refused("forbidden", f"the token must have the scope {scope!r}, but does not")
        return allowed

    return check


# In a handler's parameters these come before the form, so that permissions are checked before the form is read.
Open = Annotated[Store, Depends(store_of)]
Anyone = Annotated[May, Depends(may)]
Reader = Annotated[May, Depends(with_scope("read", form=False))]
Manager = Annotated[May, Depends(with_scope("admin"))]
ManagerOfPage = Annotated[May, Depends(with_scope("admin", form=False))]


def safe_path(path: str) -> str:
    """Return a path to redirect to after signing in; "/" if it is not a path of this service.

    >>> safe_path("/experiments/abc"), safe_path("//elsewhere.example"), safe_path("https://elsewhere.example")
    ('/experiments/abc', '/', '/')
    """
    return path if len(path) <= LONGEST_PATH and _PATH.fullmatch(path) else "/"


def see_other(path: str) -> RedirectResponse:
    """Return a redirect (303) after a form, so that a reload does not send the form again."""
    return RedirectResponse(path, status_code=303, headers=HEADERS)


@router.get("/login")
def sign_in_form(allowed: Anyone, next: Annotated[str, Query(max_length=LONGEST_PATH)] = "/") -> Response:
    """Show the sign-in form, or redirect if the user is signed in."""
    if allowed.read:
        return see_other(safe_path(next))
    return page("login.html", May(), here="login", next=safe_path(next), problem=None)


@router.post("/login", dependencies=[Depends(check_browser)])
def sign_in(request: Request, store: Open, given: SignInFields) -> Response:
    """Sign in with a token: check it and set the cookie."""
    token, path = given.get("token", "").strip(), safe_path(given.get("next", "/"))
    if store.scopes_of(token) is None:
        refusal = Refused("unauthorized", "the token must be valid, but it is unknown or revoked", field="token")
        request.app.state.sign_ins.log(address(request), refusal.detail)
        return page("login.html", May(), status=401, here="login", next=path, problem=problem_of(refusal))
    answer = see_other(path)
    # Behind a proxy that terminates TLS the request arrives by HTTP, but the browser's Origin header has https.
    secure = "https" in (request.url.scheme, request.headers.get("origin", "").partition("://")[0].lower())
    answer.set_cookie(COOKIE, token, max_age=FORTNIGHT, httponly=True, samesite="strict", secure=secure, path="/")
    return answer


@router.post("/logout", dependencies=[Depends(check_browser)])
def sign_out() -> Response:
    """Sign out: delete the cookie."""
    answer = see_other("/login")
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
