"""Compiled code on disk: never older than the sources, no condition for working, not loaded by the import."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import aftereffect as ae

# L̂ = (2, 0) after one update, so the odds are e^(-2η) to 1: 1/(1+e) and e/(1+e) for η = 1/2.
EXP3 = """
import aftereffect as ae
bandit = ae.Exp3(n_arms=2, learning_rate=0.5)
bandit.update(0, 1.0)
print(ae.__file__, *bandit.probabilities.round(6))
"""

BLOCKS = """
import aftereffect as ae
losses = ae.spreads.geometric([[0.0, 1.0]] * 50, half_life=1.0, max_delay=1)
player = ae.CompositeLossWrapper(ae.Uniform(2), max_delay=1, coins=0.3)
sim = ae.simulate(player, losses, runs=3, seed=5)
print(sim.engine, *sim.updates, *sim.regret.round(9))
"""

HEAVY = ("numba", "llvmlite", "matplotlib", "scipy", "pandas", "polars", "httpx", "rich", "typer")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that nobody else edits."""
    return shutil.copytree(
        Path(ae.__file__).parent, tmp_path / "aftereffect", ignore=shutil.ignore_patterns("__pycache__")
    )


def test_an_edited_package_is_compiled_anew(package: Path, tmp_path: Path, output: Any) -> None:
    cache = tmp_path / "cache"
    assert output(EXP3, tmp_path, cache=cache) == f"{package / '__init__.py'} 0.268941 0.731059"
    before = set(cache.iterdir())
    assert len(before) == 1
    source = package / "bandits" / "exp3.py"
    text = source.read_text()
    twice = text.replace("params.learning_rate * loss", "2.0 * params.learning_rate * loss")
    assert twice != text
    source.write_text(twice)
    # Twice the step: odds of e⁻² to 1.
    assert output(EXP3, tmp_path, cache=cache).split()[1:] == ["0.119203", "0.880797"]
    assert len(set(cache.iterdir()) - before) == 1
    source.write_text(text)
    assert output(EXP3, tmp_path, cache=cache).split()[1:] == ["0.268941", "0.731059"]
    assert len(set(cache.iterdir())) == 2


def test_a_second_process_finds_the_compiled_code(package: Path, tmp_path: Path, output: Any) -> None:
    def written() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb*")}

    first = output(BLOCKS, package.parent, cache=tmp_path)
    before = written()
    assert before
    assert output(BLOCKS, package.parent, cache=tmp_path) == first
    assert written() == before


def test_nothing_writable(tmp_path: Path, output: Any) -> None:
    obstacle = tmp_path / "file"
    obstacle.write_text("a regular file, under which no folder can be made")
    assert output(BLOCKS, cache=obstacle / "cache") == output(BLOCKS)
    assert obstacle.read_text().startswith("a regular file")


def test_the_import_loads_nothing_heavy(output: Any) -> None:
    code = f"import sys, aftereffect; print([name for name in {HEAVY} if name in sys.modules])"
    assert output(code) == "[]"
