"""Links that pages need not write: from `ae.simulate` to its description, from the list of studies to their pages."""

import re
from typing import Any

from docstrings import SPACES, target
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NAME = re.compile(rf"(?:ae|aftereffect|{'|'.join(SPACES)})(?:\.\w+)+|[A-Z][a-z]+[A-Z]\w*(?:\.\w+)?")
# Pages that are other files in the repository.
ELSEWHERE = {"studies/README": "studies/index", "gallery/GALLERY_HEADER": "generated/gallery/index"}
STUDY = re.compile(r"/?(?:studies/)?(\w+)/index\.html")
SCRIPT = re.compile(r"(?:\.\./|/)?gallery/(\w+)\.py")


class CodeLinks(SphinxTransform):
    """Link code that names something public to its description."""

    default_priority = 870

    def apply(self, **_: Any) -> None:
        """Wrap the code in a reference; where nothing is described under the name, it stays code."""
        for code in list(self.document.findall(nodes.literal)):
            found = NAME.match(code.astext())
            rest = code.astext()[found.end() :] if found else "-"
            goal = target(found[0]) if found and (not rest or rest.startswith("(")) else None
            if goal is None or isinstance(code.parent, nodes.reference | addnodes.pending_xref | nodes.title):
                continue
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=goal, refdoc=self.env.docname)
            code["classes"] += ["xref", "py"]
            code.replace_self(link)
            link += code


class StudyLinks(SphinxTransform):
    """Link studies, their list and the gallery to their pages on the site, where the source links to files."""

    default_priority = 100

    def apply(self, **_: Any) -> None:
        """Replace links to pages that are elsewhere on the site, to scripts and, in the list of studies, to reports."""
        for link in self.document.findall(addnodes.pending_xref):
            link["reftarget"] = ELSEWHERE.get(link.get("reftarget"), link.get("reftarget"))
        pages = {SCRIPT: "/generated/gallery/"}
        if self.env.docname.startswith("studies/"):
            pages[STUDY] = "/studies/"
        for link in list(self.document.findall(addnodes.download_reference)):
            linked = link["reftarget"]
            goals = [folder + found[1] for file, folder in pages.items() if (found := file.fullmatch(linked))]
            if goals:
                page = addnodes.pending_xref("", refdomain="std", reftype="doc", refexplicit=True, refwarn=True)
                page.update_basic_atts({})
                page["reftarget"], page["refdoc"] = goals[0], self.env.docname
                page += link.children
                link.replace_self(page)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_transform(CodeLinks)
    app.add_transform(StudyLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
