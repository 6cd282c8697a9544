"""The public names of the package: all are listed and exist; those that need an extra are imported on first use."""

import ast
import compileall
import importlib
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import aftereffect as ae
from aftereffect.core import checks
from aftereffect.core.errors import MissingExtra
from aftereffect.losses.hard import published_gap

TABLE = [[0.5, 1.0], [0.25, 0.0]]


def test_every_public_name_is_there_and_listed():
    assert dir(ae) == sorted([*ae.__all__, "__version__"])
    for name in ae.__all__:
        assert getattr(ae, name) is not None


@pytest.mark.parametrize("made", [ae.default_player, ae.CompositeLossWrapper.tuned, ae.Naive, ae.rivals.ARUCB])
def test_help_shows_the_arguments_that_all_players_have(made: Any):
    shown = inspect.signature(made).parameters
    assert list(shown)[-5:] == ["direction", "low", "high", "out_of_range", "seed"]
    assert [shown[name].default for name in list(shown)[-5:]] == ["minimize", 0.0, 1.0, "raise", None]


SPACES = ("advisers", "carryover", "environments", "labelled", "rivals", "spreads", "tables", "theory")


def test_everything_public_has_an_example():
    ours = {}
    for space, home in {"ae": ae, **{name: getattr(ae, name) for name in SPACES}}.items():
        found = {name: getattr(home, name) for name in getattr(home, "__all__", vars(home)) if not name.startswith("_")}
        ours |= {f"{space}.{name}": each for name, each in found.items() if inspect.isfunction(each)}
        kinds = {name: each for name, each in found.items() if inspect.isclass(each)}
        ours |= {f"{space}.{name}": each for name, each in kinds.items() if not issubclass(each, Exception)}
    assert len(ours) > 120
    assert [name for name, found in ours.items() if ">>> " not in str(found.__doc__)] == []


def test_names_are_imported_from_where_type_checkers_find_them():
    stub = ast.parse(Path(ae.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    found = {one.name: node.module for node in imports for one in node.names}
    assert sorted(found) == ae.__all__
    for name, module in found.items():
        home = importlib.import_module(str(module))
        assert getattr(ae, name) is getattr(home, name), name


def test_the_package_works_where_its_sources_are_not_there(tmp_path: Path):
    home, sources = tmp_path / "aftereffect", Path(ae.__file__).parent
    for name in ("core", "theory", "bandits"):
        shutil.copytree(sources / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "__init__.pyi"):
        shutil.copy(sources / name, home)
    assert compileall.compile_dir(home, quiet=1, legacy=True)
    for source in home.rglob("*.py"):
        source.unlink()
    program = "import aftereffect as ae; bandit = ae.Exp3(2, learning_rate=0.1); bandit.update(0, 1.0)"
    program += "; print(ae.__file__, bandit.probabilities[0] < 0.5)"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "AFTEREFFECT_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
    assert found.stdout == f"{home / '__init__.pyc'} True\n"


WITHOUT_HTTPX = """
import sys
sys.modules["httpx"] = None
import aftereffect as ae
assert not hasattr(ae, "Client")
assert getattr(ae, "Client", None) is None
assert "Client" in dir(ae)
try:
    ae.Client
except AttributeError as error:
    print(error)
"""


def test_a_missing_extra_is_a_missing_attribute_that_says_what_to_install():
    found = subprocess.run([sys.executable, "-c", WITHOUT_HTTPX], capture_output=True, text=True, check=True)
    assert found.stdout == "aftereffect.Client needs httpx: pip install 'aftereffect[service]'\n"


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r"plot needs matplotlib: pip install 'aftereffect\[plots\]'"):
        checks.optional("matplotlib.pyplot", "plot", "plots")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'aftereffect' has no attribute 'Cliente'"):
        _ = ae.Cliente


CALLS: list[tuple[Any, tuple[Any, ...]]] = [
    (ae.Exp3, (2, 0.1)),
    (ae.AdaptiveTsallis, (2, 0.1)),
    (ae.hard, (2, 3, 40, 1)),
    (published_gap, (2, 10)),
    (ae.tables.Table, (TABLE, 0.0)),
    (ae.tables.iid, (10, [0.2, 0.8], 1)),
    (ae.tables.seasonal, (10, 2, 1)),
    (ae.spreads.at_once, (TABLE, 1)),
    (ae.spreads.randomly_delayed, (TABLE, 1, 2)),
    (ae.spreads.anonymous_iid, (10, [0.2, 0.8])),
    (ae.spreads.geometric, (TABLE, 1.0)),
    (ae.spreads.linear_composite, (TABLE, [1.0])),
    (ae.spreads.random_split, (TABLE, 1, 2)),
    (ae.replay_series, (TABLE, [1.0])),
]


@pytest.mark.parametrize(("build", "arguments"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_everything_but_the_first_argument_goes_by_keyword(build: Any, arguments: tuple[Any, ...]):
    with pytest.raises(TypeError, match=r"takes .* positional argument"):
        build(*arguments)
