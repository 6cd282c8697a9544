"""What the pages show."""

import gzip
import hashlib
import importlib.util
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.figures import amount

COLOURS = 8
"""Arms with a colour of their own; later ones share a grey."""
SHOWN_SHARES = 8
MOST_MEANS = 20


def colour_of(arms: Sequence[str], arm: str | None) -> int:
    """Return the number of an arm's colour."""
    return min(arms.index(arm), COLOURS) if arm in arms else COLOURS


def in_short(view: Mapping[str, Any]) -> str:
    """Return one line on what an experiment is."""
    parts = ["Larger is better" if view["direction"] == "maximize" else "Smaller is better"]
    parts.append(counted(len(view["arms"]), "arm"))
    if len(view["units"]) > 1:
        parts.append(counted(len(view["units"]), "unit"))
    d = view["max_delay"]
    parts.append(f"effects last {counted(d, 'more round')}" if d else "effects arrive at once")
    parts.append(f"{whole(view['horizon'])} rounds in all" if view["horizon"] else "open-ended")
    return " · ".join(parts)


def waiting(view: Mapping[str, Any]) -> str:
    """Say what an experiment waits for."""
    if view["state"] == "draft":
        return "its start"
    if view["state"] == "finished":
        return "nothing"
    if view["open_round"] is not None:
        return f"the total of round {whole(view['open_round'])}"
    return "being resumed" if view["state"] == "paused" else f"round {whole(view['round'] + 1)} to be opened"


def listed(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment as a line of the list."""
    likely = max(view["probabilities"].items(), key=lambda pair: pair[1])
    ahead = likely[1] > 1.0 / len(view["arms"]) + 1e-9
    leader = {"name": likely[0], "share": likely[1], "colour": colour_of(view["arms"], likely[0])}
    return {
        **{key: view[key] for key in ("id", "name", "state", "round", "horizon", "alarms")},
        "summary": in_short(view),
        "waiting": waiting(view),
        "leader": leader if ahead else None,
    }


def shares(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arms' probabilities, the largest first; what is beyond the first eight is summed."""
    away = set(view.get("away") or ())
    ranked = sorted(view["probabilities"].items(), key=lambda pair: -pair[1])
    most = SHOWN_SHARES if len(ranked) > SHOWN_SHARES + 1 else len(ranked)
    entries = [
        {"name": name, "share": share, "colour": colour_of(view["arms"], name), "away": name in away}
        for name, share in ranked[:most]
    ]
    if ranked[most:]:
        rest = sum(share for _, share in ranked[most:])
        name = f"{whole(len(ranked) - most)} other arms together"
        entries.append({"name": name, "share": rest, "colour": COLOURS, "away": False})
    return entries


def means(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what was measured of each arm, the best first; arms that were never played are left out."""
    best = -1.0 if view["direction"] == "maximize" else 1.0
    played = [(arm, seen) for arm, seen in view["measured"].items() if view["plays"][arm]]
    played.sort(key=lambda pair: (pair[1]["mean"] is None, best * (pair[1]["mean"] or 0.0)))
    return [
        {
            "name": arm,
            "colour": colour_of(view["arms"], arm),
            "plays": view["plays"][arm],
            "windows": seen["windows"],
            "mean": "" if seen["mean"] is None else rounded(seen["mean"]),
            "error": "" if seen["standard_error"] is None else rounded(seen["standard_error"]),
        }
        for arm, seen in played[:MOST_MEANS]
    ]


def told(row: Mapping[str, Any]) -> str:
    """Say what was reported."""
    if row["status"] == "open":
        return "open"
    if row["status"] == "missing":
        return "missing"
    return exact(row["total"]) + (" (void: out of range)" if row["status"] == "void" else "")


def part(row: Mapping[str, Any]) -> str:
    """Say which part of its block a round is in."""
    if row["measured"]:
        return "measured"
    if row["washin"]:
        return "wash-in"
    return "not known yet" if row["measured"] is None else "not measured"


def round_row(row: Mapping[str, Any], view: Mapping[str, Any], closed: bool = False) -> dict[str, Any]:
    """Return a round of a unit as the table or the open round shows it. closed: the latest block is learned from."""
    return {
        **row,
        "place": view["units"].index(row["unit"]) if row["unit"] in view["units"] else 0,
        "colour": colour_of(view["arms"], row["arm"]),
        "told": told(row),
        "part": part(row),
        "starts": row["round"] == row["block_start"] and view["max_delay"] > 0,
        "amendable": row["block"] == view["block"] and row["status"] != "open" and not closed,
        "block_words": f"{whole(row['block'])}, {'drawn' if row['draw'] else 'stays'}",
        "learned": "" if not row["update"] else "update" if row["fed"] is not None else "nothing, a gap",
        "tags": tags(row),
    }


def tags(row: Mapping[str, Any]) -> list[str]:
    """Return short facts about the open round."""
    since = row["round"] - row["block_start"] + 1
    measured = "wash-in: not measured" if row["washin"] else "may be measured"
    drawn = "newly drawn" if row["draw"] else f"stays, round {whole(since)} of its block"
    return [drawn, f"block {whole(row['block'])}", f"chance {percent(row['probability'])}", measured]


def range_words(view: Mapping[str, Any]) -> str:
    """Say which totals are possible: d + 1 rounds' actions can each bring an effect between low and high."""
    rounds = view["max_delay"] + 1
    least, most = rounds * min(view["low"], 0.0), rounds * max(view["high"], 0.0)
    return (
        f"Between {rounded(least)} and {rounded(most)}: the effects of up to {counted(rounds, 'action')} meet in "
        "a round. A total outside is void, and counted."
    )


COUNTED = {
    "missing": "Missing reports",
    "void": "Out of range, void",
    "amended": "Corrected reports",
    "substituted": "Stand-ins played",
    "withheld": "Held back from learning",
}


def settings(view: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings, in words."""
    return [
        ("Effect of one action", f"{exact(view['low'])} to {exact(view['high'])}"),
        ("Better is", "larger" if view["direction"] == "maximize" else "smaller"),
        ("Carry-over", counted(view["max_delay"], "round")),
        ("Rounds in all", whole(view["horizon"]) if view["horizon"] else "open-ended"),
        ("Player", "default" if view["player"] == "default" else "as published"),
        ("Seed", str(view["seed"])),
        ("Created (UTC)", str(view.get("created_at") or "").replace("T", " ")[:16]),
        ("Id", str(view["id"])),
    ]


def resume_words(view: Mapping[str, Any]) -> str:
    """Say what a pause costs."""
    d = view["max_delay"]
    if not d:
        return "A pause costs nothing: no effect outlasts its round."
    warm = f"{counted(d, 'round')} after it {'is' if d == 1 else 'are'} played"
    return f"Effects fade in a pause, so the first {warm} and recorded but not learned from."


def experiment(view: Mapping[str, Any], open_rows: Sequence[Mapping[str, Any]], unit: str | None) -> dict[str, Any]:
    """Return everything a page says about an experiment. open_rows: its open round; unit: whose charts are wanted."""
    units, arms = view["units"], view["arms"]
    away = set(view.get("away") or ())
    winner = view["winner"]
    copied = (
        "name",
        "state",
        "round",
        "open_round",
        "horizon",
        "max_delay",
        "block",
        "updates",
        "units",
        "alarms",
    )
    left = sum(row["status"] == "open" for row in open_rows)
    return {
        **{key: view[key] for key in copied},
        "path": f"/experiments/{urllib.parse.quote(view['id'], safe='')}",
        "plan": view["plan"],
        "unit": unit if unit in units else units[0],
        "arms": [{"name": arm, "away": arm in away} for arm in arms],
        "summary": in_short(view),
        "shares": shares(view),
        "counts": [(COUNTED[key], n) for key, n in view["counts"].items() if n and key in COUNTED],
        "open": [round_row(row, view) for row in open_rows],
        "open_words": f"{counted(left, 'unit')} of {whole(len(units))} still to be reported.",
        "range_words": range_words(view),
        "resume_words": resume_words(view),
        "guarantee": guarantee(view),
        "settings": settings(view),
        "winner": winner and {**winner, "colour": colour_of(arms, winner["arm"])},
    }


TERMS = {
    "ends": "Across the first and last rounds",
    "drift": "Chances moved while effects were on their way",
    "first rate": "The rate to begin with",
    "penalty": "The rate has grown",
    "cost": "Estimates are noisy",
    "open stretch": "Seen, not yet learned from",
    "missing": "Reports missing, void or held back",
}
"""What the terms of a certificate are for."""


def guarantee(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee: its words and figures, and what the run so far says of itself."""
    given = view["guarantee"]
    start = given["informative_from"]
    facts = [("Worst case speaks from round", "never" if start is None else whole(start))]
    if given["value"] is not None and given["informative"]:
        facts.append((f"Over {counted(given['horizon'], 'round')}", rounded(given["value"])))
        facts.append(("A round", rounded(given["per_round"])))
    return {
        **{key: given[key] for key in ("void", "paragraphs", "informative_from", "informative")},
        "facts": facts if given["value"] is not None else [],
        "reached": view["round"] / start if start else 0.0,
        "certificate": certificate(given),
    }


def certificate(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the certificate so far, term by term, and how near it is to saying something."""
    found = given["certificate"]
    if found is None or found["value"] is None:
        return None
    most = found["trivial"] or 0.0
    share = most / found["value"] if found["value"] > 0.0 else 1.0
    words = "It says something: it is below" if found["informative"] else "It says nothing yet: it is not below"
    if given["void"]:
        words = "Void, it would be below" if found["value"] < most else "Void, and not below"
    return {
        "value": rounded(found["value"]),
        "terms": [(TERMS[name], rounded(term)) for name, term in found["terms"].items() if term],
        "informative": found["informative"],
        "most": rounded(most),
        "reached": share,
        "words": f"{words} {rounded(most)}, the most that regret can be after {counted(found['rounds'], 'round')}.",
        "near": f"{percent(min(share, 1.0))} of the way to a figure that says something",
    }


Json = dict[str, Any]
PAGE_ROWS = 30
TIMELINE_ROUNDS = 150
MOST_ROWS = 1000
CHART_ROUNDS, CHART_ROWS = 2000, 20_000
CHART_FIELDS = ("round", "unit", "arm", "total", "status", "block", "washin", "measured", "update", "date")


class Reads(Protocol):
    """The part of the Store that a page reads from."""

    def experiment(self, id: str, /) -> Json:
        """Return an experiment's view."""

    def rounds(self, id: str, /, after: str | int | None = None, limit: int = 100) -> Json:
        """Return round rows after a cursor, in order of rounds and units."""

    def series(self, id: str, /, last: int = 2000) -> Json:
        """Return the columns behind the charts, over the latest rows."""


class RoundsPage(NamedTuple):
    """Rows of the table, the latest first, and where its neighbours begin; None if there are none."""

    rows: list[Json]
    newer: int | None
    older: int | None


def open_rows(store: Reads, view: Mapping[str, Any]) -> list[Json]:
    """Return the rows of the open round, one a unit."""
    if view["open_round"] is None:
        return []
    return _between(store, view, view["open_round"], view["open_round"])


def table(store: Reads, view: Mapping[str, Any], before: int | None) -> RoundsPage:
    """Return the rounds before `before`, or the latest."""
    step = max(1, PAGE_ROWS // len(view["units"]))
    end = view["round"] if before is None else min(before - 1, view["round"])
    start = max(1, end - step + 1)
    rows = _between(store, view, start, end)
    units = {unit: i for i, unit in enumerate(view["units"])}
    rows.sort(key=lambda row: (-row["round"], units[row["unit"]]))
    newer = min(end + step, view["round"]) + 1 if end < view["round"] else None
    return RoundsPage(rows, newer, start if start > 1 else None)


def of_unit(store: Reads, view: Mapping[str, Any], unit: str) -> list[Json]:
    """Return the latest rounds of one unit, as many as the timeline shows and one question to the store can give."""
    count = max(1, min(TIMELINE_ROUNDS, MOST_ROWS // len(view["units"])))
    rows = _between(store, view, max(1, view["round"] - count + 1), view["round"])
    return [row for row in rows if row["unit"] == unit]


def latest(store: Reads, view: Mapping[str, Any]) -> tuple[list[Json], Json]:
    """Return the latest rounds of all units, in order, and the chances at the draws among them."""
    series = store.series(view["id"], last=min(CHART_ROWS, CHART_ROUNDS * len(view["units"])))
    columns = {name: series[name] for name in CHART_FIELDS}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return rows, series["odds"]


def _between(store: Reads, view: Mapping[str, Any], first: int, last: int) -> list[Json]:
    if last < first:
        return []
    limit = min(MOST_ROWS, (last - first + 1) * len(view["units"]))
    found: list[Json] = store.rounds(view["id"], after=first - 1, limit=limit)["items"]
    return found


# No inline script or style is allowed, from anyone; a chart's script styles elements through the object model, which
# needs no permission. `no-referrer` would make browsers send "Origin: null" with a page's own forms.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def rounded(value: float | None) -> str:
    """Return a number with three digits, or all digits before the point.

    >>> rounded(3.14159), rounded(12345.6), rounded(0.000012345), rounded(None), rounded(2.0)
    ('3.14', '12,346', '0.0000123', 'none', '2')
    """
    if value is None:
        return "none"
    if 100.0 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return amount(float(f"{value:.3g}"))


def exact(value: float | None) -> str:
    """Return a reported number with every digit it has.

    >>> exact(8421.0), exact(0.1), exact(-1234567.25), exact(1e22)
    ('8,421', '0.1', '-1,234,567.25', '1e+22')
    """
    if value is None:
        return ""
    text = f"{float(value):,}"
    return text.removesuffix(".0")


def percent(share: float) -> str:
    """Return a share in percent; what is possible is never shown as 0.

    >>> percent(0.375), percent(0.001), percent(0.0), percent(0.999), percent(1.0)
    ('38%', '<1%', '0%', '>99%', '100%')
    """
    if 0.0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1.0:
        return ">99%"
    return f"{100.0 * share:.0f}%"


def width(share: float) -> str:
    """Return a share as a length.

    >>> width(0.5), width(2.0)
    ('50.00%', '100.00%')
    """
    return f"{100.0 * min(max(share, 0.0), 1.0):.2f}%"


def whole(value: float) -> str:
    """Return a count.

    >>> whole(7056)
    '7,056'
    """
    return f"{value:,.0f}"


def counted(value: float, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "round"), counted(0, "alarm"), counted(54.36, "round")
    ('1 round', '0 alarms', '54.4 rounds')
    """
    return f"{whole(value) if float(value).is_integer() else rounded(value)} {noun}{'' if value == 1 else 's'}"


@cache
def content(name: str) -> bytes:
    """Return a file's bytes; `name` is one of NAMES."""
    if name == "plotly.min.js":
        # Looked up without importing plotly, which takes longer than a page.
        found = importlib.util.find_spec("plotly")
        if found is None or found.origin is None:
            raise FileNotFoundError("plotly.min.js must be in the plotly package, but plotly is not installed")
        return (Path(found.origin).parent / "package_data" / name).read_bytes()
    return (files("aftereffect.service.dashboard") / "static" / name).read_bytes()


@cache
def packed(name: str) -> bytes:
    """Return a file's bytes, compressed once: plotly's script is 4.8 MB, and a third of that packed."""
    return gzip.compress(content(name), 6, mtime=0)


@cache
def address(name: str) -> str:
    """Return a file's address, with its digest so that a browser may keep it for good."""
    return f"/static/{name}?{hashlib.sha256(content(name)).hexdigest()[:12]}"


@cache
def left_out() -> tuple[str, ...]:
    """Return the ids of style elements that plotly's script writes into a page that does not have them.

    They belong to maps, which are not drawn here. A page with an element of that id gets no style written into it, and
    so needs no permission for styles within it.
    """
    found = re.findall(rb'getElementById\("([0-9a-f]{64})"\)', content("plotly.min.js"))
    return tuple(sorted({name.decode() for name in found}))


@cache
def environment() -> Environment:
    """Return the templates. A name that a template expects and does not get is an error, not an empty place."""
    found = Environment(
        loader=PackageLoader("aftereffect.service.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {
        "rounded": rounded,
        "exact": exact,
        "percent": percent,
        "width": width,
        "whole": whole,
        "counted": counted,
    }
    found.filters.update(filters)
    found.globals.update(asset=address, left_out=left_out)
    return found


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a rendered page with the headers every page has."""
    body = environment().get_template(template).render(**values)
    return HTMLResponse(body, status_code=status, headers=HEADERS)


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
