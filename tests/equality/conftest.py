"""What the tests of the engines share: bases, losses of every kind, and what it means that engines agree."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_barrier import LogBarrier

import aftereffect as ae

BASES: dict[str, Callable[[int, int, int], Any]] = {
    "tsallis tuned": lambda K, d, T: ae.TsallisFTRL(K, learning_rate=ae.theory.corollary_learning_rate(d, T)),
    "tsallis-inf": lambda K, d, T: ae.TsallisINF(K),
    "tsallis zero": lambda K, d, T: ae.TsallisFTRL(K, learning_rate=0.0),
    "adaptive": lambda K, d, T: ae.AdaptiveTsallis(K),
    "log barrier": lambda K, d, T: LogBarrier(K),
    "exp3": lambda K, d, T: ae.Exp3(K, learning_rate=0.1),
    "uniform": lambda K, d, T: ae.Uniform(K),
}


def _components(K: int, d: int, T: int) -> ae.CompositeLosses:
    """Uneven components, some of them 0, that sum to less than 1."""
    random = np.random.default_rng(T + d)
    parts = random.random((T, d + 1, K)) * (random.random((T, d + 1, K)) < 0.5)
    weights = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-3)
    return ae.CompositeLosses(weights * random.random((T, 1, K)) * np.linspace(0.4, 1.0, K))


def _table(K: int, T: int) -> ae.tables.Table:
    return ae.tables.iid(T, means=np.linspace(0.3, 0.7, K), seed=11, law="beta")


def _delayed(K: int, d: int, T: int) -> ae.Losses:
    delays = np.random.default_rng(d).integers(0, d + 1, size=(T, K))
    return ae.spreads.delayed(_table(K, T), delays=delays, max_delay=d)


def piled_up(horizon: int, max_delay: int) -> ae.Losses:
    """Plays of a group of d+1 rounds all fall due in its last: totals of 0 and of d+1 or half that."""
    table = np.tile([1.0, 0.5, 0.5], (horizon, 1))
    return ae.spreads.delayed(table, delays=max_delay - np.arange(horizon) % (max_delay + 1), max_delay=max_delay)


SPREADS: dict[str, Callable[[int, int, int], ae.Losses]] = {
    "components": _components,
    "split": lambda K, d, T: ae.spreads.random_split(_table(K, T), max_delay=d, seed=5),
    "geometric": lambda K, d, T: ae.spreads.geometric(_table(K, T), half_life=1.0 + d / 3, max_delay=d),
    "delayed": _delayed,
    "hard": lambda K, d, T: ae.hard(K, max_delay=d, horizon=T, seed=3, gap=0.5),
}


def _played_arms(blocks: Any, horizon: int) -> Any:
    """The arm of every round, from the blocks of a run."""
    return np.repeat(blocks.arms, np.diff(np.append(blocks.starts, horizon + 1)))


def _blocks_agree(exact: ae.Simulation, quick: ae.Simulation, *, fed: bool = True) -> None:
    """Demand the same blocks, arms, updates and (with `fed`) fed losses, bit for bit.

    Cumulative regrets of the block engine are added in another order: 1e-8 of themselves, or where they come
    near 0 1e-12 of the rounds, which bounds the losses they are a difference of.
    """
    assert len(exact.traces) == len(quick.traces) == exact.runs
    for a, b in zip(exact.traces, quick.traces, strict=True):
        np.testing.assert_array_equal(a.starts, b.starts)
        np.testing.assert_array_equal(a.arms, b.arms)
        if fed:
            np.testing.assert_array_equal(a.fed_losses, b.fed_losses)
    np.testing.assert_array_equal(exact.updates, quick.updates)
    np.testing.assert_array_equal(exact.rounds, quick.rounds)
    np.testing.assert_allclose(quick.regrets, exact.regrets, rtol=1e-8, atol=1e-12 * exact.horizon)


@pytest.fixture(params=BASES)
def base(request: pytest.FixtureRequest) -> Callable[[int, int, int], Any]:
    """base(n_arms, max_delay, horizon): each base algorithm in turn."""
    return BASES[request.param]


@pytest.fixture(params=SPREADS)
def spread(request: pytest.FixtureRequest) -> Callable[[int, int, int], ae.Losses]:
    """spread(n_arms, max_delay, horizon): each kind of losses in turn."""
    return SPREADS[request.param]


@pytest.fixture
def make() -> Callable[..., Any]:
    """make(name, n_arms, max_delay, horizon): a base or losses by name."""
    return lambda name, K, d, T: (BASES | SPREADS)[name](K, d, T)


@pytest.fixture
def blocks_agree() -> Callable[..., None]:
    """The check that two simulations agree."""
    return _blocks_agree


@pytest.fixture
def played_arms() -> Callable[..., Any]:
    """played_arms(blocks, horizon): the arm of every round."""
    return _played_arms


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for compiled code that all child processes share, so that each function is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def child(shared_cache: Path) -> Callable[..., Any]:
    """child(code, *paths, cache=...): what subprocess needs to run Python code that finds this package.

    cache: for compiled code; None: the one of this process, for what is compiled here too.
    """

    def arguments(code: str, *paths: Path, cache: Path | None = shared_cache) -> dict[str, Any]:
        package = Path(ae.__file__).resolve().parent.parent
        found = os.pathsep.join(str(path) for path in (*paths, package))
        # Written on the fly, edited within one second: byte code must not be trusted.
        chosen = {"PYTHONPATH": found, "PYTHONDONTWRITEBYTECODE": "1"}
        chosen |= {} if cache is None else {"AFTEREFFECT_CACHE_DIR": str(cache)}
        return {"args": [sys.executable, "-c", code], "env": os.environ | chosen, "text": True}

    return arguments


@pytest.fixture
def output(child: Callable[..., Any]) -> Callable[..., str]:
    """output(code, *paths, cache=...): what Python code prints in a new process."""

    def run(code: str, *paths: Path, **options: Any) -> str:
        done = subprocess.run(**child(code, *paths, **options), capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return str(done.stdout).strip()

    return run
