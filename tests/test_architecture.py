"""docs/architecture.md says what is true: its paths and functions exist, its layers are those import-linter holds."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import aftereffect as ae
from aftereffect.core import fingerprint, kernel

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "aftereffect"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = sorted(set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.M | re.S))))
DRAWN = re.findall(r"^```\n(.*?)^```", TEXT, flags=re.M | re.S)

PATHS = [code for code in CODE if re.fullmatch(r"[\w./-]+(\.(py|md|toml|html)|/)", code)]
NAMES = [code for code in CODE if re.fullmatch(r"[a-z_]\w*(\.[a-z_]\w*)*\.\w+(\(\))?", code) and code not in PATHS]


def module_file(dotted: str) -> Path | None:
    """The file of a module given by its name below the package."""
    path = PACKAGE.joinpath(*dotted.split("."))
    found = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in found if file.is_file()), None)


def defined(tree: ast.Module, names: list[str]) -> bool:
    """Whether a module, or a class in it, defines a name."""
    body: list[ast.stmt] = tree.body
    for name in names:
        inside = None
        for node in body:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            if getattr(node, "name", None) == name or any(getattr(each, "id", None) == name for each in targets):
                inside = getattr(node, "body", [])
        if inside is None:
            return False
        body = inside
    return True


def test_the_document_names_enough_to_be_checked():
    assert len(PATHS) >= 25
    assert len(NAMES) >= 10


def test_every_path_exists():
    assert [path for path in PATHS if not (PACKAGE / path).exists() and not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_function_and_class_exists(name: str):
    parts = name.removesuffix("()").split(".")
    for split in range(len(parts) - 1, 0, -1):
        file = module_file(".".join(parts[:split]))
        if file is not None:
            assert defined(ast.parse(file.read_text(encoding="utf-8")), parts[split:]), f"{file} defines no {name}"
            return
    pytest.fail(f"no module for {name}")


def test_the_layers_are_those_that_import_linter_holds():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    held = [layer.replace("aftereffect.", "") for layer in layers]
    assert [re.split(r"\s{2,}", line)[0] for line in DRAWN[0].splitlines()] == held


def test_every_package_and_module_at_the_top_is_drawn():
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    drawn = set(re.findall(r"\w+", " ".join(re.split(r"\s{2,}", line)[0] for line in DRAWN[0].splitlines())))
    assert there - {"__init__", "__main__"} == drawn


@pytest.mark.parametrize("flow", DRAWN[1:])
def test_every_module_in_a_drawing_exists(flow: str):
    modules = re.findall(r"\b(?:service|studies|engines|players|losses|bandits|core)(?:/\w+)+", flow)
    assert modules
    for module in modules:
        assert module_file(module.replace("/", ".")), module


def test_every_kernel_is_in_a_layer_whose_edits_are_noticed():
    # Otherwise machine code of the time before an edit would be read from the disk cache.
    assert all(hasattr(ae, name) for name in ae.__all__)
    kernels = [*kernel.HELPERS, *kernel.ROUTINES]
    kernels += [each for form in kernel.FORMS.values() for kind in form.values() for each in kind if callable(each)]
    modules = {each.__module__ for each in kernels}
    layers = {name.split(".")[1] for name in modules if name.startswith("aftereffect.")}
    assert layers <= set(fingerprint.KERNEL_LAYERS)
    assert "lags" in layers
