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
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.report.charts import FORMATS, Drawing, written
from aftereffect.studies.results import write_durably


class Shaded(NamedTuple):
    """A table entry with a background: blue for tone −1 (good), none for 0, orange for 1 (bad)."""

    text: str
    tone: float


Entry = str | Shaded

WIDE, LONG = 6, 20
"""A table with more columns than WIDE may be wider than the text; one with more rows than LONG may be folded."""


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
    _cover: str = field(default="", init=False)
    _parts: list[str] = field(default_factory=list, init=False)
    _sections: dict[str, str] = field(default_factory=dict, init=False)

    def section(self, heading: str) -> None:
        """Begin a section, with a link at the top of the page."""
        anchor = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
        if anchor in self._sections:
            raise InvalidArgument(f"heading must be new on the page, but {checks.shown(heading)} is there already")
        self._sections[anchor] = heading
        self._parts.append(f'<h2 id="{anchor}">{marked(heading)}</h2>')

    def text(self, words: str) -> None:
        """Add paragraphs, separated by empty lines."""
        self._parts.append(paragraphs(words))

    def table(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[Entry]],
        *,
        caption: str = "",
        words: Iterable[int] = (),
        folded: str = "",
    ) -> None:
        """Add a table. words: further columns of text besides the first. folded: the summary line of a folded table,
        if it has more than LONG rows.
        """
        styles = [' class="words"' if k in set(words) else "" for k in range(len(headings))]
        lines = []
        for row in rows:
            entries = [entry if isinstance(entry, Shaded) else Shaded(entry, math.nan) for entry in row]
            cells = [f'<th scope="row">{marked(entries[0].text)}</th>']
            for entry, style in zip(entries[1:], styles[1:], strict=True):
                shade = ground(entry.tone) if math.isfinite(entry.tone) else ""
                cells.append(f"<td{style}{shade}>{marked(entry.text)}</td>")
            lines.append(f"<tr>{''.join(cells)}</tr>")
        fold = folded and len(lines) > LONG
        above = caption or ("" if fold else folded)
        title = f"<figcaption>{marked(above)}</figcaption>" if above else ""
        head = "".join(f"<th{style}>{marked(heading)}</th>" for heading, style in zip(headings, styles, strict=True))
        body = "\n".join(lines)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
        wide = "tabled wide" if len(headings) > WIDE else "tabled"
        table = f'<figure class="{wide}">{title}<div class="scroll">{table}</div></figure>'
        self._parts.append(f"<details><summary>{marked(folded)}</summary>{table}</details>" if fold else table)

    def figure(self, drawing: Drawing, caption: str) -> None:
        """Add a drawing with its caption; also save it as files if the page has a folder. The first is below the title.
        """
        if self.figures is not None:
            self.figures.mkdir(parents=True, exist_ok=True)
            for form in FORMATS:
                (self.figures / f"{drawing.name}.{form}").write_bytes(written(drawing, form))
        data = base64.b64encode(written(drawing, "svg")).decode("ascii")
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(drawing.words)}">'
        below = f"<figcaption>{marked(caption)}</figcaption>"
        figure = f'<figure><div class="scroll">{image}</div>{below}</figure>'
        if not self._cover:
            self._cover, figure = figure, '<p><a href="#first-figure">The figure at the top of this page.</a></p>'
        self._parts.append(figure)

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add a list of names with their values."""
        items = "\n".join(f"<dt>{marked(name)}</dt><dd>{marked(value)}</dd>" for name, value in pairs)
        self._parts.append(f"<dl>\n{items}\n</dl>")

    def render(self) -> str:
        """Return the page as HTML."""
        templates = files("aftereffect.studies.report") / "templates"
        found, sections = "", self._sections
        if self.findings:
            sections = {"what-was-found": "What was found"} | sections
            items = "\n".join(f"<li>{marked(sentence)}</li>" for sentence in self.findings)
            found = f'<h2 id="what-was-found">What was found</h2>\n<ul class="points">\n{items}\n</ul>\n'
        links = "\n".join(f'<a href="#{anchor}">{marked(name)}</a>' for anchor, name in sections.items())
        return Template((templates / "page.html").read_text(encoding="utf-8")).substitute(
            title=html.escape(self.title),
            kind=html.escape(self.kind),
            css=(templates / "page.css").read_text(encoding="utf-8").strip(),
            cover=self._cover,
            lead=paragraphs(self.lead, ' class="lead"') if self.lead else "",
            contents=f"<nav>\n{links}\n</nav>" if len(sections) > 1 else "",
            body=found + "\n".join(self._parts),
            footer=html.escape(self.footer),
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page atomically and return its path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_durably(target, self.render().encode())
        return target


def marked(words: str) -> str:
    """Return text as HTML with superscript powers, and no line break within a formula such as d = 0.

    >>> marked("K^0.50±0.01 at d = 0 <")
    'K<sup>0.50±0.01</sup> at d\xa0=\xa00 &lt;'
    """
    text = html.escape(re.sub(r"(?<=\S) ([=<>≤≥±×·]) (?=\S)", "\u00a0\\1\u00a0", words))
    return re.sub(r"\^(-?[\d.]*\d(?:±[\d.]*\d)?)", r"<sup>\1</sup>", text)


def paragraphs(words: str, style: str = "") -> str:
    """Return plain text as HTML paragraphs, separated by empty lines.

    >>> paragraphs("a & b")
    '<p>a &amp; b</p>'
    """
    return "\n".join(f"<p{style}>{marked(' '.join(part.split()))}</p>" for part in re.split(r"\n\s*\n", words.strip()))


def ground(tone: float) -> str:
    """Return the background of a shaded entry as an attribute, translucent, so that it suits a light and a dark page.

    >>> ground(-2.0)
    ' style="background:rgba(73,158,200,0.60)"'
    """
    end, weight = ("250,120,0" if tone > 0.0 else "73,158,200"), 0.6 * min(abs(tone), 1.0)
    return f' style="background:rgba({end},{weight:.2f})"'


def share(value: float) -> Entry:
    """Return a share of the regret of uniform play as a shaded entry, without colour at one half."""
    return Shaded(f"{value:.0%}", 2.0 * value - 1.0) if math.isfinite(value) else "–"


def ratio(value: float | None) -> Entry:
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
