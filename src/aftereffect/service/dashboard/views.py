"""The contents of the pages: data from the store, formatted and rendered by the templates.

Templates escape all values, and a page may load only this server's own style sheets and scripts.
"""

import gzip
import hashlib
import importlib.util
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from aftereffect.core.text import amount, counted
from aftereffect.service import words
from aftereffect.service.api import problems
from aftereffect.service.errors import Refused, checked
from aftereffect.service.messages import MOST_SERIES, Fields, Overview
from aftereffect.service.settings import Design, duration
from aftereffect.service.store.store import Store

# No inline scripts or styles are allowed; the charts' script sets styles through the DOM, which the policy permits.
# `no-referrer` would make browsers send "Origin: null" with forms of our own pages.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
}
"""Headers of pages that override `api.app.SECURITY_HEADERS`."""
TABLE_ROWS, MOST_ROWS = 30, 1000
CHART_ROUNDS = 2000
COLOURS = 8
"""The number of arms with their own colour; the others are grey."""
Text = Annotated[str, Query(max_length=200)]
Number = Annotated[int | None, Query(ge=1, le=2**53)]


def colour_of(arms: Sequence[str], arm: str | None) -> int:
    """Return the index of an arm's colour."""
    return min(arms.index(arm), COLOURS) if arm in arms else COLOURS


def rounded(value: float | None) -> str:
    """Return a number with three significant digits, or more if its integer part has more.

    >>> rounded(3.14159), rounded(12345.6), rounded(0.000012345), rounded(None), rounded(2.0)
    ('3.14', '12,346', '0.0000123', 'none', '2')
    """
    if value is None:
        return "none"
    return f"{value:,.0f}" if 100.0 <= abs(value) < 1e15 else amount(value, digits=3)


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(412.4), signed(-0.05), signed(0.0)
    ('+412', '−0.05', '0')
    """
    return ("+" if value > 0 else "−" if value < 0 else "") + rounded(abs(value))


def width(share: float) -> str:
    """Return a share, clipped to [0, 1], as a CSS width.

    >>> width(0.5), width(2.0)
    ('50.00%', '100.00%')
    """
    return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"


@cache
def asset(name: str) -> bytes:
    """Return the bytes of a file in `static/`, or of plotly's script from the plotly package."""
    if name == "plotly.min.js":
        # Located without importing plotly, which is slow.
        found = importlib.util.find_spec("plotly")
        if found is None or found.origin is None:
            raise FileNotFoundError("plotly.min.js must be in the plotly package, but plotly is not installed")
        return (Path(found.origin).parent / "package_data" / name).read_bytes()
    return (files("aftereffect.service.dashboard") / "static" / name).read_bytes()


@cache
def packed_asset(name: str) -> bytes:
    """Return a file's bytes compressed by gzip, cached; plotly's script shrinks from 4.8 MB to about a third."""
    return gzip.compress(asset(name), 6, mtime=0)


@cache
def asset_url(name: str) -> str:
    """Return a file's URL; it contains a digest, so that browsers may cache the file indefinitely."""
    return f"/static/{name}?{hashlib.sha256(asset(name)).hexdigest()[:12]}"


@cache
def plotly_styles() -> tuple[str, ...]:
    """Return the ids of the style elements that plotly's script adds to a page unless they are present.

    These styles are for maps, which are not used here. Pages contain empty elements with these ids, so that the script
    adds no inline styles, which the content security policy forbids.
    """
    found = re.findall(rb'getElementById\("([0-9a-f]{64})"\)', asset("plotly.min.js"))
    return tuple(sorted({name.decode() for name in found}))


@cache
def environment() -> Environment:
    """Return the template environment; an undefined name in a template is an error."""
    found = Environment(
        loader=PackageLoader("aftereffect.service.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {each.__name__: each for each in (rounded, words.exact, signed, width, counted, duration)}
    found.filters |= {"percent": words.probability, "chance": words.chance}
    found.globals.update(asset=asset_url, plotly_styles=plotly_styles, colour_of=colour_of)
    found.globals.update(chart_rounds=CHART_ROUNDS, chart_rows=MOST_SERIES)
    return found


def page(template: str, may: Any, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a rendered page with the headers of pages. may: the user's permissions."""
    body = environment().get_template(template).render(may=may, **values)
    return HTMLResponse(body, status_code=status, headers=HEADERS)


def problem_of(refusal: Refused, field: str = "") -> Fields:
    """Return a refusal as shown by the templates. field: that of the form it is about, if its name is another one.

    >>> problem_of(Refused("invalid", "total must be finite"))["detail"]
    'Total must be finite.'
    >>> problem_of(Refused("busy", "cannot write to /srv/data/store.db"))["detail"]
    'Cannot write to ….'
    """
    found = problems.problem_of(refusal)
    detail = found["detail"][:1].upper() + found["detail"][1:]
    named = {"field": field or refusal.field, "fields": found.get("fields", [field or refusal.field])}
    title = "This was not accepted" if refusal.code == "invalid" else refusal.title
    return {**found, **named, "title": title, "detail": detail if detail.endswith((".", "!", "?")) else f"{detail}."}


def path_of(experiment_id: str) -> str:
    """Return the path of an experiment's page."""
    return f"/experiments/{urllib.parse.quote(experiment_id, safe='')}"


@dataclass(frozen=True)
class Shown:
    """What the address of an experiment's page asks for.

    unit: of the timeline and the totals. before: the rounds before this one in the table. correct: the round to be
    corrected. done: the key of a message. told: the round that was just reported; since: the first of several.
    """

    unit: Text = ""
    before: Number = None
    correct: Number = None
    done: Text = ""
    told: Number = None
    since: Number = None


PLAIN = Shown()


def experiment_page(
    store: Store,
    experiment_id: str,
    may: Any,
    shown: Shown = PLAIN,
    *,
    refusal: Refused | None = None,
    kept: Mapping[str, str] = MappingProxyType({}),
) -> HTMLResponse:
    """Return an experiment's page. refusal, kept: the error of a form, and the values entered."""
    view, learned = store.experiment(experiment_id), store.learned(experiment_id)
    reported = None if shown.told is None else report_words(store, view, shown.since or shown.told, shown.told)
    unit = shown.unit if shown.unit in view.units else view.units[0]
    problem = None if refusal is None else problem_of(refusal)
    rows, newer, older = table(store, view, shown.before)
    it = {
        **dict(view),
        "path": path_of(view.id),
        "unit": unit,
        "open": open_rows(store, view),
        "waiting": words.waiting(view, store.now()),
    }
    return page(
        "experiment.html",
        may,
        status=200 if refusal is None else refusal.status,
        it=it,
        here="experiment",
        rows=rows,
        newer=newer,
        older=older,
        learned=learned,
        known=words.known(learned, view.direction, view.max_delay, view.measure) if learned.leader else [],
        negligible=words.negligible(learned),
        # In the opening the model itself chooses the arms.
        agreement=words.agreement(learned, view.probabilities, view.player) if view.block else None,
        reminder=next(iter(store.reminders(experiment_id)), None),
        webhooks=store.webhooks,
        correct=1 if problem and problem["field"] in ("round", "corrected") else shown.correct,
        old=old_row(store, view, shown.correct, unit),
        done=shown.done,
        reported=reported,
        problem=problem,
        kept=kept,
    )


def open_rows(store: Store, view: Overview) -> list[Fields]:
    """Return the rows of the open round, one per unit."""
    return [] if view.open_round is None else _between(store, view, view.open_round, view.round)


def old_row(store: Store, view: Overview, number: int | None, unit: str) -> Fields | None:
    """Return the row that is to be corrected; None if there is none."""
    found = [] if number is None else _between(store, view, number, number)
    return next((row for row in found if row["unit"] == unit), None)


def table(store: Store, view: Overview, before: int | None) -> tuple[list[Fields], int | None, int | None]:
    """Return the rounds before `before` (by default the latest), newest first, and `before` of the pages next to it.

    The second value is for the newer page, the third for the older one; None if there is no such page.
    """
    step = max(1, TABLE_ROWS // len(view.units))
    end = view.round if before is None else min(before - 1, view.round)
    start = max(1, end - step + 1)
    # Sorted by round only: the units of a round keep their order.
    rows = sorted(_between(store, view, start, end), key=lambda row: -row["round"])
    newer = min(end + step, view.round) + 1 if end < view.round else None
    return rows, newer, start if start > 1 else None


def _between(store: Store, view: Overview, first: int, last: int) -> list[Fields]:
    """Return the rows of the rounds from `first` to `last`."""
    limit = min(MOST_ROWS, (last - first + 1) * len(view.units))
    return list(store.rounds(view.id, after=first - 1, limit=limit)["items"]) if limit > 0 else []


def report_words(store: Store, view: Overview, first: int, last: int) -> tuple[str, bool]:
    """Return how the reports of some rounds were recorded, the next arm, and whether a total is out of range."""
    told = [row for row in _between(store, view, first, last) if row["status"] != "open"]
    outside = [row for row in told if row["status"] in ("void", "clipped")]
    for row in outside:
        row["warning"] = words.out_of_range(row, design_of(view))
    several = len(view.units) > 1
    lines = words.recorded(told, several) if told else []
    if view.open_round is not None and view.open_round > last and not several:
        lines += map(words.play, open_rows(store, view))
    return " ".join(lines), bool(outside)


def design_of(view: Overview) -> Design:
    """Return the settings that the range of a total depends on."""
    return checked(Design, {name: getattr(view, name) for name in ("arms", "low", "high", "max_delay", "out_of_range")})
