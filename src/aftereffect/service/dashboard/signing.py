"""Logging in: the token goes into a cookie that scripts cannot read and other sites cannot send."""

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from aftereffect.service.api.auth import COOKIE, LONGEST_TOKEN
from aftereffect.service.config import Config
from aftereffect.service.dashboard import forms
from aftereffect.service.dashboard.guarding import LONGEST_PLACE, check_own_page, may, safe_place
from aftereffect.service.dashboard.rendering import page
from aftereffect.service.dashboard.routing import NOTHING, problem_of, see_other
from aftereffect.service.errors import Refused

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

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
        answer.set_cookie(
            COOKIE, token, max_age=DAYS_14, httponly=True, samesite="strict", secure=secure, path="/"
        )
        return answer

    @routes.post("/logout")
    def logout(request: Request) -> Response:
        check_own_page(request)
        answer = see_other("/login")
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return answer
