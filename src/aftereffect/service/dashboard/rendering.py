"""Templates and the words in them: one Jinja environment that escapes everything, and filters for numbers."""

from functools import cache
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from aftereffect.service.dashboard.assets import address, left_out
from aftereffect.service.experiment.figures import amount

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
