"""The form for a new experiment: shown, tried out as a plan, and taken."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from aftereffect.service.config import Config
from aftereffect.service.dashboard import forms
from aftereffect.service.dashboard.guarding import May, check_reading, may, writing
from aftereffect.service.dashboard.rendering import page
from aftereffect.service.dashboard.routing import problem_of, see_other
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.plan import Plan, plan
from aftereffect.service.settings import checked_settings

if TYPE_CHECKING:
    from aftereffect.service.store.store import Store

REMEMBERED = 1_000
Fields = Annotated[dict[str, str], Depends(forms.fields)]


class Once:
    """Remembers which forms were taken, so that one sent twice (a second click, a reload) makes one experiment."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._lock = threading.Lock()
        self._made: OrderedDict[str, str] = OrderedDict()

    def create(self, store: "Store", key: str, settings: Mapping[str, Any]) -> str:
        """Return the id of the experiment that the form with this key made, now or before."""
        with self._lock:
            known = self._made.get(key)
            if known is not None:
                return known
            made: str = store.create(settings)["id"]
            if key:
                self._made[key] = made
                if len(self._made) > REMEMBERED:
                    self._made.popitem(last=False)
            return made


def planned(given: Mapping[str, str]) -> Plan:
    """Return the plan for a form; it need not have a name yet."""
    settings = checked_settings(forms.settings({**given, "name": given.get("name", "").strip() or "A plan"}))
    return plan(settings)


def shown(
    allowed: May, given: Mapping[str, str], found: Plan | None = None, refusal: Refused | None = None
) -> Response:
    """Return the form's page, with what was filled in."""
    kept = {**forms.BLANK, **given}
    kept["once"] = given.get("once") or secrets.token_urlsafe(16)
    problem = None if refusal is None else problem_of(refusal, forms.field_of(refusal))
    more = any(kept[name] != forms.BLANK[name] for name in ("units", "horizon", "start_date", "player", "seed"))
    values = {"kept": {**kept, "more": more}, "plan": found, "problem": problem}
    return page("new.html", status=200 if refusal is None else refusal.status, may=allowed, here="new", **values)


def add_forms(routes: APIRouter, store: "Store", config: Config) -> None:
    """Add the form's routes."""
    once, guard = Once(), [Depends(writing(config, "admin"))]

    @routes.get("/experiments/new")
    def blank(request: Request) -> Response:
        allowed = may(request, config)
        check_reading(allowed)
        if not allowed.manage:
            raise Refused(
                "forbidden", "the token must have the scope 'admin' to create an experiment, but has not"
            )
        return shown(allowed, {})

    @routes.post("/experiments/plan", dependencies=guard)
    def preview(request: Request, given: Fields) -> Response:
        allowed = may(request, config)
        try:
            return shown(allowed, given, planned(given))
        except Refused as refusal:
            return shown(allowed, given, None, refusal)

    @routes.post("/experiments/new", dependencies=guard)
    def create(request: Request, given: Fields) -> Response:
        allowed = may(request, config)
        try:
            made = once.create(store, given.get("once", ""), forms.settings(given))
        except Refused as refusal:
            return shown(allowed, given, None, refusal)
        return see_other(f"/experiments/{made}?done={'drafted' if given.get('draft') else 'created'}")
