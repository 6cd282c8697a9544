"""One self-contained HTML page: headings, paragraphs, findings, tables and figures, with no external resources.

All text is escaped. Pages are readable on a phone: wide tables and figures scroll separately, and the first column of a
table stays visible. On a wide screen a table with many columns is wider than the text. The layout is in `templates/`.
"""

import base64
import html
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.report.charts import FORMATS, Drawing, written
from aftereffect.studies.results import write_durably


class Shaded(NamedTuple):
    """A table entry with a background: blue for tone −1 (good), none for 0, orange for 1 (bad)."""

    text: str
    tone: float


TableEntry = str | Shaded


@dataclass(eq=False, repr=False)
class Page:
    """A page under construction; parts appear in the order they are added, after the findings.

    kind: a word above the title. lead: paragraphs below it. footer: the last line. figures: the folder in which
    figures are also saved as files, if any. findings: sentences of the first section, "What was found".

    >>> page = Page("Two arms", kind="study")
    >>> page.section("Result")
    >>> page.text("this & that")
    >>> "<p>this &amp; that</p>" in page.render()
    True
    """

    title: str
    _: KW_ONLY
    kind: str = ""
    lead: str = ""
    footer: str = ""
    figures: Path | None = None
    findings: list[str] = field(default_factory=list, init=False)
    parts: list[dict[str, Any]] = field(default_factory=list, init=False)

    def section(self, heading: str) -> None:
        """Begin a section, with a link at the top of the page."""
        anchor = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
        if any(part.get("anchor") == anchor for part in self.parts):
            raise InvalidArgument(f"heading must be new on the page, but {checks.shown(heading)} is there already")
        self.parts.append({"kind": "section", "anchor": anchor, "heading": heading})

    def text(self, words: str) -> None:
        """Add paragraphs, separated by empty lines."""
        self.parts.append({"kind": "text", "words": words})

    def table(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[TableEntry]],
        *,
        caption: str = "",
        words: Iterable[int] = (),
        folded: str = "",
    ) -> None:
        """Add a table. words: further columns of text besides the first. folded: the summary line of a folded table,
        if it has more than 20 rows.
        """
        lines = [[entry if isinstance(entry, Shaded) else Shaded(entry, math.nan) for entry in row] for row in rows]
        if wrong := [line for line in lines if len(line) != len(headings)]:
            raise InvalidArgument(f"rows must have {len(headings)} entries, but got {len(wrong[0])}")
        part = {"headings": headings, "rows": lines, "caption": caption, "words": set(words), "folded": folded}
        self.parts.append({"kind": "table"} | part)

    def figure(self, drawing: Drawing, caption: str) -> None:
        """Add a drawing with its caption, also as files if the page has a folder. The first is below the title."""
        if self.figures is not None:
            self.figures.mkdir(parents=True, exist_ok=True)
            for form in FORMATS:
                (self.figures / f"{drawing.name}.{form}").write_bytes(written(drawing, form))
        data = base64.b64encode(written(drawing, "svg")).decode("ascii")
        self.parts.append({"kind": "figure", "data": data, "words": drawing.words, "caption": caption})

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add a list of names with their values."""
        self.parts.append({"kind": "facts", "pairs": list(pairs)})

    def render(self) -> str:
        """Return the page as HTML."""
        return templates().get_template("page.html").render(page=self)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page atomically and return its path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_durably(target, self.render().encode())
        return target


@cache
def templates() -> Environment:
    """Return the templates of pages, which escape all text."""
    loader = PackageLoader("aftereffect.studies.report")
    found = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    found.filters |= {"marked": marked, "paragraphs": paragraphs}
    return found


def marked(words: str) -> Markup:
    """Return text as HTML with superscript powers, and no line break within a formula such as d = 0.

    >>> str(marked("K^0.50±0.01 at d = 0 <"))
    'K<sup>0.50±0.01</sup> at d\xa0=\xa00 &lt;'
    """
    text = html.escape(re.sub(r"(?<=\S) ([=<>≤≥±×·]) (?=\S)", "\u00a0\\1\u00a0", words))
    return Markup(re.sub(r"\^(-?[\d.]*\d(?:±[\d.]*\d)?)", r"<sup>\1</sup>", text))


def paragraphs(words: str, style: str = "") -> Markup:
    """Return plain text as HTML paragraphs, separated by empty lines.

    >>> str(paragraphs("a & b"))
    '<p>a &amp; b</p>'
    """
    parts = [part for part in re.split(r"\n\s*\n", words.strip()) if part]
    begin = f'<p class="{style}">' if style else "<p>"
    return Markup("\n".join(f"{begin}{marked(' '.join(part.split()))}</p>" for part in parts))


def share(value: float) -> TableEntry:
    """Return a share of the regret of uniform play as a shaded entry, without colour at one half."""
    return Shaded(f"{value:.0%}", 2.0 * value - 1.0) if math.isfinite(value) else "–"


def ratio(value: float | None) -> TableEntry:
    """Return a ratio of regrets as a shaded entry: blue below 1, orange above; a dash if there is none.

    >>> ratio(1.0), ratio(0.0), ratio(math.nan)
    (Shaded(text='1.00', tone=0.0), Shaded(text='≤ 0', tone=-1.0), '–')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return Shaded(f"{value:.2f}" if value > 0.0 else "≤ 0", contrast(value, 1.0))


def contrast(value: float, other: float, least: float = 0.0) -> float:
    """Return how much a regret differs from another, as a tone: their difference as a share of the larger, or of
    `least` if that is more, so that two regrets near 0 have about the same colour.

    >>> contrast(2.0, 1.0), contrast(1.0, 2.0), contrast(2.0, -1.0, 30.0)
    (0.5, -0.5, 0.1)
    """
    return (value - other) / max(abs(value), abs(other), least, 1e-9)


def number(value: float | None, digits: int = 0) -> str:
    """Return a number as shown in tables; a dash for None.

    >>> number(12345.6), number(None), number(0.1234, 2)
    ('12,346', '–', '0.12')
    """
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return "–" if value is None or not math.isfinite(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def plus_minus(value: float | None, error: float | None) -> str:
    """Return a mean with its standard error.

    >>> plus_minus(120.0, 3.14), plus_minus(120.0, 9.1e-14), plus_minus(120.0, None)
    ('120 ± 3.1', '120 (deterministic)', '120')
    """
    if error is not None and error <= 1e-9 * max(1.0, abs(value or 0.0)):
        return f"{number(value)} (deterministic)"
    return number(value) if error is None else f"{number(value)} ± {number(error, 0 if error >= 9.5 else 1)}"


def large(count: float) -> str:
    """Return a large count in words.

    >>> large(1_250_000_000), large(40_000), large(3e12)
    ('1.25 billion', '40,000', '3 trillion')
    """
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"
