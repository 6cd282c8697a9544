"""How code is shown: without empty lines at its end, with places for breaks in tables; sources without links back."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class Trimmed(SphinxTransform):
    """Remove the empty lines with which doctests end."""

    default_priority = 860

    def apply(self, **_: Any) -> None:
        """Cut the text of every block of code."""
        for block in self.document.findall(nodes.literal_block):
            text = block.astext()
            if text != text.rstrip() and block.rawsource == text:
                block.rawsource = text.rstrip()
                block[:] = [nodes.Text(text.rstrip())]


class TableCode(SphinxTransform):
    """Let long paths in tables break after a slash."""

    default_priority = 890

    def apply(self, **_: Any) -> None:
        """Put the places for breaks into the code."""
        for table in self.document.findall(nodes.table):
            for code in list(table.findall(nodes.literal)):
                parts = re.split(r"(?<=/)(?=.)", code.astext())
                if len(parts) > 1:
                    code.clear()
                    for part in parts:
                        code += [nodes.Text(part), nodes.raw("", "<wbr>", format="html")]


def without_links_back(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Remove from the pages of source code the links to descriptions, which assume one namespace for each module."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = re.sub(r'<a class="viewcode-back"[^>]*>.*?</a>', "", context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("html-page-context", without_links_back)
    app.add_transform(Trimmed)
    app.add_transform(TableCode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
