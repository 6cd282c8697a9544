"""The examples of the gallery and the notebooks use public names only; `make docs` runs them all."""

import ast
import importlib
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import aftereffect as ae

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("plot_*.py"))
NOTEBOOKS = sorted(path for path in (DOCS / "notebooks").glob("*.md") if path.stem != "index")
CELL = re.compile(r"^```\{code-cell\}\n(?::.*\n)*(.*?)^```$", re.DOTALL | re.MULTILINE)
OTHERS = {"campaigns", "collections", "matplotlib", "numpy", "pandas", "subprocess", "sys", "tempfile", "warnings"}
DOCUMENTED = {"aftereffect.studies", "aftereffect.losses.linear_system"}


def code(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".py" else "".join(CELL.findall(text))


@pytest.mark.parametrize("path", [*SCRIPTS, *NOTEBOOKS], ids=lambda path: path.stem)
def test_an_example_uses_public_names_only(path: Path) -> None:
    tree = ast.parse(code(path))
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names = [name.split(".")[1:] for name in used if re.fullmatch(r"ae(\.\w+)+", name)]
    assert names, "an example uses the library"
    for first, *rest in names:
        assert first in ae.__all__
        found = getattr(ae, first)
        for name in rest:
            assert not name.startswith("_")
            found = getattr(found, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= OTHERS | {"aftereffect"}
        if isinstance(node, ast.ImportFrom):
            assert node.module.split(".")[0] in OTHERS or node.module in DOCUMENTED
            found = importlib.import_module(node.module)
            assert all(hasattr(found, alias.name) for alias in node.names)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_figure_is_drawn_in_the_part_that_makes_it(path: Path) -> None:
    # The first figure at the end of a part becomes the thumbnail.
    for part in re.split(r"^# %%$", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
        assert ("plt.subplots(" in part) == ("plt.show()" in part)


def test_there_are_a_gallery_and_notebooks() -> None:
    assert len(SCRIPTS) >= 8
    listed = re.findall(r"^\w+$", (DOCS / "notebooks" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == [path.stem for path in NOTEBOOKS]


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_figure_1_has_the_rounds_of_the_paper() -> None:
    try:
        with plt.rc_context():
            found = runpy.run_path(str(DOCS / "gallery" / "plot_figure1.py"))
        drawn = [text.get_text() for text in found["ax"].texts]
    finally:
        plt.close("all")
    kinds = " ".join(word for word in drawn if word in ("D", "S", "SU"))
    assert kinds == "D S S S S S S SU D S S S S S S S S SU D S S S SU"
    assert drawn.count("summed") == 3
