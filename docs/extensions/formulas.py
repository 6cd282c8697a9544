"""Formulas in plain text, such as q_{n+1}(i) or q^{3/2}, with subscripts and superscripts.

Pages and docstrings are written so that they can be read as they are. On the site `_` and `^` before one character or
a group in braces become sub- and superscripts, in the text and in formulas that stand on lines of their own.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

GROUP = r"\{((?:[^{}\n]|\{[^{}\n]*\})*)\}"
SCRIPT = re.compile(rf"(?<=[^\W_]|[)\]∫\u0300-\u036f°])([_^])(?:{GROUP}|(\(\w\))(?=\(|\W)|([^\W\d_]|\d+)(?![A-Za-z_]))")
# The type of a property, which autodoc writes out.
ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[\w+\]\]")
STRONG = re.compile(r"\*\*(.+?)\*\*")
# Parts of a page in which an underscore is an underscore.
CODE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.comment, nodes.image)
CODE += (addnodes.desc_signature, nodes.title, nodes.target, addnodes.download_reference)


def scripts(text: str) -> list[nodes.Node]:
    """Return a text with its sub- and superscripts as nodes.

    >>> [type(node).__name__ + ":" + node.astext() for node in scripts("q_{n+1}(i)² max_delay")]
    ['Text:q', 'subscript:n+1', 'Text:(i)² max_delay']
    """
    result: list[nodes.Node] = []
    end = 0
    for found in SCRIPT.finditer(text):
        if text[end : found.start()]:
            result.append(nodes.Text(text[end : found.start()]))
        kind = nodes.subscript if found[1] == "_" else nodes.superscript
        result.append(kind("", "", *scripts(found[2] or found[3] or found[4] or "")))
        end = found.end()
    return [*result, nodes.Text(text[end:])] if text[end:] else result


class Formulas(SphinxTransform):
    """Set the formulas of a page."""

    default_priority = 880

    def apply(self, **_: Any) -> None:
        """Replace texts outside code, and literal blocks that hold formulas."""
        if not self.env.docname.startswith(("theory/", "api/", "start/", "guides/", "studies/")):
            return
        for text in list(self.document.findall(nodes.Text)):
            if not SCRIPT.search(text.astext()) or text.parent is None or inside(text, CODE):
                continue
            text.parent.replace(text, scripts(text.astext()))
        for kind in list(self.document.findall(addnodes.desc_annotation)):
            if ARRAY.search(kind.astext()):
                kind[:] = [nodes.Text(ARRAY.sub("ndarray", kind.astext()))]
        for block in list(self.document.findall(nodes.literal_block)):
            plain = block.get("language", "none") in ("none", "text", "default")
            if plain and self.env.docname.startswith(("theory", "api")):
                formula(block)


def inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    """Say whether a node is part of one of these kinds."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, kinds):
            return True
        parent = parent.parent
    return False


def formula(block: nodes.literal_block) -> None:
    """Set the formulas of a literal block, and what is **strong** in it."""
    text = block.astext()
    if not SCRIPT.search(text) and not STRONG.search(text):
        return
    block.clear()
    for number, part in enumerate(STRONG.split(text)):
        found = scripts(part)
        block += [nodes.strong("", "", *found)] if number % 2 else found
    # Sphinx does not highlight a block whose source differs from its text.
    block.rawsource = ""
    block["classes"].append("formula")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_transform(Formulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
