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
from typing import Annotated, Any, get_args

from fastapi import Query
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from aftereffect.core.text import amount, counted
from aftereffect.service import words
from aftereffect.service.api import problems
from aftereffect.service.errors import Corrupt, Refused, checked
from aftereffect.service.messages import MOST_SERIES, Fields, Overview, State
from aftereffect.service.settings import Design
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
LIST_LENGTH, TABLE_ROWS, MOST_ROWS = 100, 30, 1000
CHART_ROUNDS = 2000
COLOURS = 8
"""The number of arms with their own colour; the others are grey."""
MOST_WARNINGS = 3
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


def exact(value: float | None) -> str:
    """Return a reported number with all its digits.

    >>> exact(8421.0), exact(0.1), exact(-1234567.25), exact(1e22)
    ('8,421', '0.1', '-1,234,567.25', '1e+22')
    """
    return "" if value is None else f"{float(value):,}".removesuffix(".0")


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
    for each in (rounded, exact, signed, width, counted):
        found.filters[each.__name__] = each
    found.filters |= {"percent": words.probability, "chance": words.chance}
    found.globals.update(asset=asset_url, plotly_styles=plotly_styles, colour_of=colour_of)
    found.globals.update(chart_rounds=CHART_ROUNDS, chart_rows=MOST_SERIES)
    return found


def page(template: str, may: Any, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a rendered page with the headers of pages. may: the user's permissions."""
    body = environment().get_template(template).render(may=may, **values)
    return HTMLResponse(body, status_code=status, headers=HEADERS)


def problem_of(refusal: Refused, field: str = "") -> Fields:
    """Return a refusal as shown by the templates. field: the form field it is about.

    >>> problem_of(Refused("invalid", "total must be finite"))["detail"]
    'Total must be finite.'
    >>> problem_of(Refused("busy", "cannot write to /srv/data/store.db"))["detail"]
    'Cannot write to ….'
    """
    told = problems.problem_of(refusal)["detail"]
    detail = told[:1].upper() + told[1:]
    return {
        "title": "This was not accepted" if refusal.code == "invalid" else refusal.title,
        "detail": detail if detail.endswith((".", "!", "?")) else detail + ".",
        "field": next(iter(refusal.extra.get("fields", ())), field),
        "fields": refusal.extra.get("fields", [field]),
        "ahead": refusal.code == "ahead",
        "outside": refusal.extra.get("outside", False),
    }


def path_of(experiment_id: str) -> str:
    """Return the path of an experiment's page."""
    return f"/experiments/{urllib.parse.quote(experiment_id, safe='')}"


def compare_page(store: Store, may: Any, ids: Sequence[str]) -> HTMLResponse:
    """Return experiments side by side."""
    if not ids:
        raise Refused("invalid", "experiments must be chosen in the list to be compared, but none were")
    items = [{**dict(item), "path": path_of(item.id)} for item in store.compare(ids)]
    return page("compare.html", may, here="compare", items=items)


def list_page(store: Store, may: Any, after: str, state: str, search: str = "") -> HTMLResponse:
    """Return the list of experiments, those that need a person first. search: a part of the names."""
    wanted = state if state in get_args(State) else ""
    found = store.experiments(after=after or None, limit=LIST_LENGTH, state=wanted or None, search=search or None)
    items = [{"name": each, "path": path_of(each), "damaged": True} for each in found.get("damaged", ())]
    for item in found["items"]:
        try:
            view = store.experiment(item["id"])
        except Corrupt:
            items.append({**item, "path": path_of(item["id"]), "damaged": True})
            continue
        shown = {"path": path_of(view.id), "damaged": False, "waiting": words.waiting(view, store.now())}
        items.append({**dict(view), **shown})
    items.sort(key=lambda item: (-1, "") if item["damaged"] else (item["waiting"].rank, item["waiting"].at))
    values = {"items": items, "next": found["next"], "after": after, "state": wanted}
    values |= {"search": search, "query": urllib.parse.urlencode({"state": wanted, "search": search})}
    return page("list.html", may, here="list", **values)


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
    field: str = "",
    kept: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """Return an experiment's page. refusal, field, kept: the error of a form, the field it is about, and all values."""
    view, learned = store.experiment(experiment_id), store.learned(experiment_id)
    reported = None if shown.told is None else report_words(store, view, shown.since or shown.told, shown.told)
    unit = shown.unit if shown.unit in view.units else view.units[0]
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
        agreement=words.agreement(learned, view.probabilities, view.player),
        reminder=next(iter(store.reminders(experiment_id)), None),
        correct=1 if field in ("round", "corrected") else shown.correct,
        old=old_row(store, view, shown.correct, unit),
        done=shown.done,
        reported=reported,
        problem=None if refusal is None else problem_of(refusal, field),
        kept=kept or {},
    )


def open_rows(store: Store, view: Overview) -> list[Fields]:
    """Return the rows of the open round, one per unit."""
    return [] if view.open_round is None else _between(store, view, view.open_round)


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


def _between(store: Store, view: Overview, first: int, last: int | None = None) -> list[Fields]:
    """Return the rows of the rounds from `first` to `last`, by default to the latest."""
    first, last = max(first, 1), view.round if last is None else last
    if last < first:
        return []
    limit = min(MOST_ROWS, (last - first + 1) * len(view.units))
    return list(store.rounds(view.id, after=first - 1, limit=limit)["items"])


def report_words(store: Store, view: Overview, first: int, last: int) -> tuple[str, bool]:
    """Return how the reports of some rounds were recorded, the next arm, and whether a total is out of range."""
    rows, several = _between(store, view, first, last), len(view.units) > 1
    outside = [row for row in rows if row["status"] in ("void", "clipped")]
    lines = []
    for row in outside[:MOST_WARNINGS]:
        where = f"{row['round']:,} ({row['unit']})" if several else f"{row['round']:,}"
        lines.append(f"Round {where}: {words.out_of_range(row, design_of(view))}")
    if len(outside) > MOST_WARNINGS:
        lines.append(f"The same holds for {counted(len(outside) - MOST_WARNINGS, 'other total')}.")
    told = [row for row in rows if row["status"] == "reported"]
    if len(rows) == 1 and told:
        lines.append(f"Round {last:,}: {exact(told[0]['total'])} is recorded for {told[0]['arm']}.")
    elif told and first == last:
        lines.append(f"Round {last:,}: {len(told)} of {counted(len(rows), 'total')} recorded.")
    elif told:
        lines.append(f"Rounds {first:,} to {last:,}: {counted(len(told), 'total')} recorded.")
    if view.open_round is not None and view.open_round > last and not several:
        (row,) = open_rows(store, view)
        when = f" on {row['date']}" if row["date"] else ""
        lines.append(f"Next, round {row['round']:,}{when}: play {row['arm']}.")
    return " ".join(lines), bool(outside)


def design_of(view: Overview) -> Design:
    """Return the settings that the range of a total depends on."""
    return checked(Design, {name: getattr(view, name) for name in ("arms", "low", "high", "max_delay", "out_of_range")})
