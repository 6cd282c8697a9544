"""One self-contained HTML page: headings, paragraphs, findings, tables and figures, with nothing fetched from outside.

Everything that is given is escaped. A page reads on a phone: wide tables and figures scroll by themselves, and the
first column of a table stays in view; on a wide screen a table with many columns leaves the column of text. The layout
is in `templates/`.
"""

import html
import os
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.studies.figures import Drawing, data_address


class Shaded(NamedTuple):
    """A table's entry on a coloured ground, both as CSS colours."""

    text: str
    ground: str
    ink: str = "#1c1e21"


Entry = str | Shaded

WIDE = 6
"""A table of more columns may be wider than the text."""


class Page:
    """A page under construction; parts appear in the order they are added.

    >>> page = Page("Two arms", kind="study")
    >>> page.section("Result")
    >>> page.text("this & that")
    >>> "<p>this &amp; that</p>" in page.render()
    True
    """

    def __init__(self, title: str, *, kind: str = "", lead: str = "", footer: str = "") -> None:
        """Take the title; kind: a word above it; lead: paragraphs under it; footer: a last line."""
        self.title = title
        self.kind = kind
        self.lead = lead
        self.footer = footer
        self._parts: list[str] = []
        self._sections: list[tuple[str, str]] = []

    def section(self, heading: str) -> None:
        """Begin a section; it gets a link at the top of the page."""
        anchor = re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")
        if anchor in {known for known, _ in self._sections}:
            raise InvalidArgument(f"heading must be new on the page, but {checks.shown(heading)} is there already")
        self._sections.append((anchor, heading))
        self._parts.append(f'<h2 id="{anchor}">{escaped(heading)}</h2>')

    def heading(self, words: str) -> None:
        """Add a heading below a section's."""
        self._parts.append(f"<h3>{escaped(words)}</h3>")

    def text(self, words: str) -> None:
        """Add paragraphs, parted by empty lines."""
        self._parts.append(paragraphs(words))

    def points(self, sentences: Iterable[str]) -> None:
        """Add what was found, a sentence each; nothing if there is none."""
        items = "\n".join(f"<li>{marked(sentence)}</li>" for sentence in sentences)
        if items:
            self._parts.append(f'<ul class="points">\n{items}\n</ul>')

    def table(
        self,
        headings: Sequence[str],
        rows: Iterable[Sequence[Entry]],
        *,
        caption: str = "",
        words: Iterable[int] = (),
        folded: str = "",
    ) -> None:
        """Add a table. words: which columns hold words, as the first does. folded: a line to click on to see it."""
        wordy = set(words)
        head = "".join(f"<th{_words(k in wordy)}>{marked(heading)}</th>" for k, heading in enumerate(headings))
        lines = []
        for row in rows:
            if len(row) != len(headings):
                rule = f"must have {len(headings)} entries, as many as headings"
                raise InvalidArgument(f"rows {rule}, but got {checks.shown(row)}")
            first = f'<th scope="row">{escaped(_plain(row[0]))}</th>'
            rest = "".join(_entry(entry, k in wordy) for k, entry in enumerate(row[1:], start=1))
            lines.append(f"<tr>{first}{rest}</tr>")
        title = f"<figcaption>{marked(caption)}</figcaption>" if caption else ""
        body = "\n".join(lines)
        table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
        style = "tabled wide" if len(headings) > WIDE else "tabled"
        table = f'<figure class="{style}">{title}<div class="scroll">{table}</div></figure>'
        if folded:
            table = f"<details><summary>{escaped(folded)}</summary>{table}</details>"
        self._parts.append(table)

    def figure(self, drawing: Drawing, caption: str = "") -> None:
        """Add a drawing with its caption; what it shows in words goes with it."""
        image = f'<img src="{data_address(drawing)}" alt="{escaped(drawing.words)}">'
        below = f"<figcaption>{marked(caption)}</figcaption>" if caption else ""
        self._parts.append(f'<figure><div class="scroll">{image}</div>{below}</figure>')

    def facts(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Add a list of facts: what, and how much."""
        items = "\n".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs)
        self._parts.append(f"<dl>\n{items}\n</dl>")

    def extend(self, other: "Page") -> None:
        """Add the sections of another page."""
        for anchor, _ in other._sections:
            if anchor in {known for known, _ in self._sections}:
                raise InvalidArgument(f"other must have sections of its own, but {anchor!r} is in both")
        self._sections += other._sections
        self._parts += other._parts

    def render(self) -> str:
        """Return the page as HTML."""
        templates = files("aftereffect.studies") / "templates"
        links = "\n".join(f'<a href="#{anchor}">{escaped(name)}</a>' for anchor, name in self._sections)
        return Template((templates / "page.html").read_text(encoding="utf-8")).substitute(
            title=escaped(self.title),
            kind=escaped(self.kind),
            css=(templates / "page.css").read_text(encoding="utf-8").strip(),
            lead=paragraphs(self.lead, "lead") if self.lead else "",
            contents=f"<nav>\n{links}\n</nav>" if len(self._sections) > 1 else "",
            body="\n".join(self._parts),
            footer=escaped(self.footer),
        )

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, in one step, so that nobody sees half of one; return its path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.part")
        unfinished.write_text(self.render(), encoding="utf-8")
        unfinished.replace(target)
        return target


def escaped(words: str) -> str:
    """Return text as HTML that does not break a line within a formula such as d = 0.

    >>> escaped("at d = 0 <")
    'at d\xa0=\xa00 &lt;'
    """
    return html.escape(re.sub(r"(?<=\S) ([=<>≤≥±×·]) (?=\S)", "\u00a0\\1\u00a0", words))


def marked(words: str) -> str:
    """Return text as HTML with powers raised.

    >>> marked("K^0.50±0.01")
    'K<sup>0.50±0.01</sup>'
    """
    return re.sub(r"\^(-?[\d.]*\d(?:±[\d.]*\d)?)", r"<sup>\1</sup>", escaped(words))


def paragraphs(words: str, style: str = "") -> str:
    """Return plain text as HTML paragraphs, parted by empty lines.

    >>> paragraphs("a & b")
    '<p>a &amp; b</p>'
    """
    mark = f' class="{style}"' if style else ""
    return "\n".join(f"<p{mark}>{marked(' '.join(part.split()))}</p>" for part in re.split(r"\n\s*\n", words.strip()))


def _words(yes: bool) -> str:
    return ' class="words"' if yes else ""


def _plain(entry: Entry) -> str:
    return entry.text if isinstance(entry, Shaded) else entry


def _entry(entry: Entry, words: bool) -> str:
    if isinstance(entry, Shaded):
        style = f"background:{html.escape(entry.ground)};color:{html.escape(entry.ink)}"
        return f'<td{_words(words)} style="{style}">{marked(entry.text)}</td>'
    return f"<td{_words(words)}>{marked(entry)}</td>"
