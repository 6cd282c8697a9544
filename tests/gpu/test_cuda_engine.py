"""The CUDA engine against the block engine: on a GPU with `make test-gpu`, otherwise small, in numba's simulator.

The simulator interprets kernels, one Python thread a GPU thread, and is chosen when numba is imported. So everything
that is simulated runs in another process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aftereffect as ae
from aftereffect.core.errors import InvalidArgument

GPU = bool(os.environ.get("AFTEREFFECT_GPU"))

PLAY = """
import json, sys, warnings
# Interpreted, the generators' 64-bit words wrap around with a warning.
warnings.simplefilter("ignore", RuntimeWarning)
import numpy as np
import aftereffect as ae

def played(case):
    K, d, T = case["n_arms"], case["max_delay"], case["horizon"]
    span = {name: case[name] for name in ("direction", "low", "high") if name in case}
    table = ae.tables.iid(T, means=np.linspace(0.2, 0.7, K).tolist(), seed=1)
    if case.get("spread") == "kernels":
        losses = ae.spreads.kernels(table, weights=np.random.default_rng(4).dirichlet(np.ones(d + 1), K), **span)
    elif case.get("spread") == "delays":
        losses = ae.spreads.randomly_delayed(table, max_delay=d, seed=2, **span)
    else:
        losses = ae.spreads.random_split(table, max_delay=d, seed=2, **span)
    if case["player"] == "default":
        prior = ae.Prior(np.linspace(0.6, 0.3, K), 2.0) if "prior" in case else None
        player = ae.default_player(n_arms=K, max_delay=d, prior=prior, **span)
    elif case["player"] == "scripted":
        coins = (np.random.default_rng(5).random(T) < 0.2).tolist()
        player = ae.CompositeLossWrapper(ae.Exp3(n_arms=K, learning_rate=0.2), max_delay=d, coins=coins, **span)
    elif case["player"] == "ucb1":
        player = ae.CompositeLossWrapper(ae.UCB1(n_arms=K), max_delay=d, coins=1 / (2 * d + 1), **span)
    else:
        player = ae.CompositeLossWrapper.tuned(n_arms=K, max_delay=d, horizon=T, base=case["player"], **span)
    given = {name: case[name] for name in ("runs", "checkpoints", "instances") if name in case}
    cpu, gpu = (ae.simulate(player, losses, engine=e, seed=3, **given) for e in ("blocks", "cuda"))
    return {
        "engine": gpu.engine,
        "updates": cpu.updates.tolist() == gpu.updates.tolist() and int(cpu.updates.sum()),
        "regrets": float(np.mean(cpu.regrets == gpu.regrets)),
        "pseudo": float(np.mean(cpu.pseudo_regrets == gpu.pseudo_regrets)),
        "mean": [cpu.mean_regret, gpu.mean_regret, cpu.standard_error],
        "certificates": case["player"] != "default" or bool(np.allclose(
            cpu.certificates[:, -1], gpu.certificates[:, -1], rtol=1e-6
        ) and np.isnan(gpu.certificates[:, :-1]).all()),
    }

print(json.dumps([played(case) for case in json.loads(sys.argv[1])]))
"""

STUDY = """
import json, sys, warnings
warnings.simplefilter("ignore", RuntimeWarning)
from numba import config
import aftereffect as ae

study = ae.Study(
    "small", runs=4, checkpoints=[10, 40], grid={"n_arms": [2, 3], "max_delay": [1], "horizon": [40]},
    instance=[{"name": "split"}, {"name": "fixed"}],
    player=[{"name": "CompositeLossWrapper"}, {"name": "default_player"}, {"name": "BlockUCB"}],
)
cpu = study.run(sys.argv[1] + "/cpu", progress=False)
# The simulator replaces the module cuda while a kernel runs, for all threads.
gpu = study.run(sys.argv[1] + "/gpu", progress=False, engine="cuda", workers=1 if config.ENABLE_CUDASIM else None)
print(json.dumps({
    "failures": gpu.failures,
    "engines": {name: rows["engine"].unique().to_list() for (name,), rows in gpu.rows.group_by("player")},
    "equal": cpu.rows.drop("engine", "value").equals(gpu.rows.drop("engine", "value")),
}))
"""

SIMULATED = [
    # Three tiles of rounds, the last one shorter.
    {"player": "tsallis", "n_arms": 3, "max_delay": 2, "horizon": 70, "runs": 3, "checkpoints": 5, "spread": "kernels"},
    {"player": "exp3", "n_arms": 2, "max_delay": 0, "horizon": 40, "runs": 2, "checkpoints": 40},
    {"player": "tsallis", "n_arms": 2, "max_delay": 3, "horizon": 50, "runs": 2, "checkpoints": 2, "spread": "delays"},
    {"player": "default", "n_arms": 3, "max_delay": 1, "horizon": 60, "runs": 4, "checkpoints": 3, "instances": 2},
    {"player": "default", "n_arms": 3, "max_delay": 1, "horizon": 60, "runs": 2, "checkpoints": 3, "prior": True},
    {"player": "default", "n_arms": 45, "max_delay": 1, "horizon": 12, "runs": 2, "checkpoints": 1},
    {"player": "scripted", "n_arms": 2, "max_delay": 1, "horizon": 60, "runs": 2, "checkpoints": 2},
    {
        "player": "ucb1", "n_arms": 2, "max_delay": 1, "horizon": 50, "runs": 2, "checkpoints": 2,
        "direction": "maximize", "low": -1.0, "high": 2.0,
    },
]
ON_GPU = [case | {"horizon": 400 * case["horizon"], "runs": 200 * case["runs"]} for case in SIMULATED]


def printed(script: str, argument: str) -> Any:
    environment = os.environ | ({} if GPU else {"NUMBA_ENABLE_CUDASIM": "1"})
    done = subprocess.run(
        [sys.executable, "-c", script, argument], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_runs_equal_the_block_engines() -> None:
    cases = ON_GPU if GPU else SIMULATED
    for case, found in zip(cases, printed(PLAY, json.dumps(cases)), strict=True):
        assert found["engine"] == "cuda", case
        assert found["updates"] > 0, case
        if GPU:
            # Contracted additions may part a long run from the CPU's; then the means agree (5 standard errors).
            cpu, gpu, error = found["mean"]
            assert found["regrets"] > 0.5, case
            assert abs(gpu - cpu) <= 5.0 * error, case
        else:
            assert (found["regrets"], found["pseudo"], found["certificates"]) == (1.0, 1.0, True), case


def test_a_study_writes_the_rows_of_the_cpu_and_names_the_engine(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    found = printed(STUDY, str(tmp_path))
    assert found["failures"] == {}
    # Players that do not play blocks run on the CPU.
    assert found["engines"] == {"CompositeLossWrapper": ["cuda"], "default_player": ["cuda"], "BlockUCB": ["rounds"]}
    assert found["equal"] or GPU


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_without_a_gpu_the_error_says_what_is_missing() -> None:
    losses = ae.CompositeLosses(np.zeros((10, 2, 2)))
    player = ae.default_player(n_arms=2, max_delay=1)
    with pytest.raises(InvalidArgument, match=r"engine must not be 'cuda' without an NVIDIA GPU.*aftereffect\[cuda\]"):
        ae.simulate(player, losses, runs=1, engine="cuda")
    assert ae.simulate(player, losses, runs=1, engine="auto").engine == "blocks"


@pytest.mark.skipif(GPU, reason="there is a GPU")
def test_without_a_gpu_a_study_does_not_begin(tmp_path: Path) -> None:
    grid = {"n_arms": [2], "max_delay": [1], "horizon": [9]}
    study = ae.Study("none", grid=grid, instance=[{"name": "split"}], player=[{"name": "Naive"}])
    with pytest.raises(InvalidArgument, match="engine must not be 'cuda' without an NVIDIA GPU"):
        study.run(tmp_path / "study", engine="cuda")
    with pytest.raises(InvalidArgument, match="engine must be one of 'auto', 'cuda', but got 'gpu'"):
        study.run(tmp_path / "study", engine="gpu")
    assert not (tmp_path / "study").exists()


def test_players_that_play_no_blocks_are_refused() -> None:
    losses = ae.CompositeLosses(np.zeros((10, 2, 2)))
    with pytest.raises(InvalidArgument, match="engine must not be 'cuda' unless the player is a CompositeLossWrapper"):
        ae.simulate(ae.rivals.BlockUCB(2, max_delay=1), losses, runs=1, engine="cuda")
