"""Reports of studies, as they were published in docs/studies, inside the site.

The directive `study` inserts a report; `study-figures` shows the first figure of each of several reports.
"""

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MAIN = re.compile(r"<main>(.*)</main>", re.S)
LEFT_OUT = re.compile(r"<nav>.*?</nav>|<footer>.*?</footer>|<h1>.*?</h1>|<p class=\"kind\">.*?</p>|</?header>", re.S)
HEADING = re.compile(r'<h2 id="([^"]+)">(.*?)</h2>', re.S)
IMAGE = re.compile(r"<img [^>]*>")
TITLE = re.compile(r"<h1>(.*?)</h1>", re.S)
TAG = re.compile(r"<[^>]+>")


def sections(page: str) -> list[tuple[str, str, str]]:
    """Return the sections of a report as (anchor, heading, HTML); the first has no heading.

    >>> sections('<main><h1>T</h1><p>Lead.</p><h2 id="a">A</h2><p>Text.</p></main>')
    [('', '', '<p>Lead.</p>'), ('a', 'A', '<p>Text.</p>')]
    """
    found = MAIN.search(page)
    if found is None:
        raise ValueError("a report must have a <main> element")
    lead, *others = HEADING.split(LEFT_OUT.sub("", found[1]))
    rest = zip(others[::3], others[1::3], others[2::3], strict=True)
    return [("", "", lead.strip()), *((anchor, heading, text.strip()) for anchor, heading, text in rest)]


class StudyPage(SphinxDirective):
    """Insert the report whose file is named, relative to the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the lead and one section for each section of the report."""
        path = Path(self.env.doc2path(self.env.docname)).parent / self.arguments[0]
        self.env.note_dependency(str(path))
        result: list[nodes.Node] = []
        for anchor, heading, text in sections(path.read_text(encoding="utf-8")):
            body = nodes.raw("", f'<div class="study">{text}</div>', format="html")
            if not heading:
                result.append(body)
                continue
            words = TAG.sub("", heading).replace("&#x27;", "'").replace("&amp;", "&")
            part = nodes.section("", nodes.title("", words), body, ids=[anchor], names=[anchor])
            result.append(part)
        return result


class StudyFigures(SphinxDirective):
    """Show the first figure of each report that is named, with a link to its page."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return one figure for each report."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        figures = ""
        for name in self.arguments[0].split():
            path = folder / name / "index.html"
            self.env.note_dependency(str(path))
            page = path.read_text(encoding="utf-8")
            image, title = IMAGE.search(page), TITLE.search(page)
            if image is None or title is None:
                raise self.error(f"{path} has no figure or no title")
            figures += f'<a href="{name}.html"><figure>{image[0]}<figcaption>{title[1]}</figcaption></figure></a>'
        return [nodes.raw("", f'<div class="study-figures">{figures}</div>', format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("study", StudyPage)
    app.add_directive("study-figures", StudyFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
