"""The documentation site describes every public name, once."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import aftereffect as ae
from aftereffect import studies
from aftereffect.core import kernel
from aftereffect.service.local import Local

DOCS = Path(__file__).resolve().parents[1] / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(?:class|exception|function):: ([\w.]+)$", re.M)
PAGES = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.rst"))]
DESCRIBED = [name for page in PAGES for name in DIRECTIVE.findall(page)]

NAMESPACES = {
    "aftereffect": ae,
    "aftereffect.advisers": ae.advisers,
    "aftereffect.carryover": ae.carryover,
    "aftereffect.labelled": ae.labelled,
    "aftereffect.rivals": ae.rivals,
    "aftereffect.spreads": ae.spreads,
    "aftereffect.studies": studies,
    "aftereffect.tables": ae.tables,
    "aftereffect.theory": ae.theory,
}
# Helpers of the engines and of the package itself, in modules that have no __all__.
INTERNAL = {
    "aftereffect.spreads": {"Delayed", "Split", "Weighted", "hashed_uniform"}
    | {"spread_delayed", "spread_split", "spread_weighted"},
    "aftereffect.tables": {"as_table", "draw", "finished", "per_arm", "within"},
}


def public(space: str, module: ModuleType) -> set[str]:
    """Return the public names of a namespace: functions and classes that it lists or, without a list, defines."""
    listed = getattr(module, "__all__", None) or [
        name
        for name, found in vars(module).items()
        if not name.startswith("_") and str(getattr(found, "__module__", "")).startswith(module.__name__)
    ]
    names = {name for name in listed if not isinstance(getattr(module, name), ModuleType)}
    return names - INTERNAL.get(space, set())


@pytest.mark.parametrize("space", NAMESPACES)
def test_every_public_name_is_described(space: str) -> None:
    names = public(space, NAMESPACES[space])
    assert len(names) >= 5
    # What is also in `ae` is described there.
    missing = {name for name in names if f"{space}.{name}" not in DESCRIBED and f"aftereffect.{name}" not in DESCRIBED}
    assert not missing


def test_no_name_is_described_twice() -> None:
    assert sorted(set(DESCRIBED)) == sorted(DESCRIBED)


def test_the_kernel_forms_are_described() -> None:
    forms = {name for name in vars(kernel) if name.endswith("Kernel")}
    assert {f"aftereffect.core.kernel.{name}" for name in forms} <= set(DESCRIBED)


def test_the_client_and_its_twin_without_a_server_have_the_same_operations() -> None:
    operations = {name for name in dir(ae.Client) if not name.startswith("_")}
    assert operations <= {name for name in dir(Local) if not name.startswith("_")}


def test_the_theory_page_names_functions_and_tests_that_exist() -> None:
    text = (DOCS / "theory" / "index.md").read_text(encoding="utf-8")
    functions, paths = re.findall(r"`theory\.(\w+)`", text), re.findall(r"`(tests/[\w./]+)`", text)
    assert len(functions) >= 15
    assert len(paths) >= 15
    assert not [name for name in functions if not hasattr(ae.theory, name)]
    assert not [path for path in paths if not (DOCS.parent / path).exists()]
