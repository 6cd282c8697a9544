"""The kernel form on a GPU: what the CPU engines compile, compiled by `numba.cuda`, one run a thread.

    pip install 'numba-cuda[cu13]' 'cuda-toolkit==13.0.*'      not newer than the GPU's driver
    python benchmarks/cuda_kernel.py compile      no GPU needed: kernel to PTX, with losses and CPU results
    python benchmarks/cuda_kernel.py run          needs CuPy and a GPU, neither numba nor this package
    python benchmarks/cuda_kernel.py both         needs all of it

`play` holds no algorithm: it goes from block to block of Algorithm 1 and calls the base's start, draw and
update (`core/kernel.py`), `next_update`, `uniform` and `fed_loss` as they stand. Two checks follow. A run's
number of updates depends on its coins alone, so it must equal the CPU engine's, run by run. Mean regret must
agree within 4 standard errors (one false alarm in 16,000): a GPU rounds differently, and FTRL is chaotic.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

OUT = Path(__file__).resolve().parent / "out" / "cuda"
N_ARMS, HORIZON, SEED, DELAYS = 10, 1_000_000, 7, (10, 100)
CHIP = (9, 0)
THREADS = 128


def device_kernel(cuda: Any, n_arms: int, size: int) -> Any:
    """Return the kernel for K arms and a base whose state has `size` numbers."""
    from aftereffect.core import effects, kernel, random
    from aftereffect.players.coins import next_update

    def play(player: Any, horizon: int, rows: Any, owed: Any, words: Any, updates: Any, losses: Any) -> None:
        run = cuda.grid(1)
        if run >= updates.shape[0]:
            return
        state = cuda.local.array(size, np.float64)
        place = cuda.local.array(2, np.float64)
        coins = cuda.local.array(4, np.uint64)
        arms = cuda.local.array(4, np.uint64)
        for i in range(4):
            coins[i] = words[run, random.COINS, i]
            arms[i] = words[run, random.ARMS, i]
        place[0] = place[1] = 0.0
        d = player.max_delay
        kernel.bandit_start(player.base, n_arms, state)
        arm = kernel.bandit_draw(player.base, n_arms, state, random.uniform(arms))
        end = next_update(player.coins, coins, place, d, horizon)
        start, before, count, loss = 0, -1, 0, 0.0
        while 0 < end <= horizon:
            loss += rows[end, 0, arm] - rows[start, 0, arm]
            fed = effects.fed_loss(player.span, d, rows[end, 1, arm])
            kernel.bandit_update(player.base, n_arms, state, arm, fed)
            count += 1
            start, before = end, arm
            arm = kernel.bandit_draw(player.base, n_arms, state, random.uniform(arms))
            end = next_update(player.coins, coins, place, d, horizon)
        # All plays in full, less what the last d of them still owe at the horizon.
        age = min(horizon - start, owed.shape[0] - 1)
        loss += rows[horizon, 0, arm] - rows[start, 0, arm] - owed[age, arm]
        if before >= 0:
            loss -= owed[owed.shape[0] - 1, before] - owed[age, before]
        updates[run] = count
        losses[run] = loss

    return play


def setting(max_delay: int, horizon: int) -> tuple[Any, Any, Any, Any]:
    """Return the player, its losses, and the engine's rows and owed losses.

    Bernoulli losses that arrive in one piece after a random delay: D and W are whole numbers, so they travel
    small and exact.
    """
    import aftereffect as ae
    from aftereffect.engines.prepared import prepare_owed, prepare_rows

    table = ae.tables.iid(horizon, np.linspace(0.3, 0.7, N_ARMS), seed=1)
    losses = ae.spreads.randomly_delayed(table, max_delay, seed=2)
    player = ae.CompositeLossWrapper.tuned(n_arms=N_ARMS, max_delay=max_delay, horizon=horizon, seed=SEED)
    rows = prepare_rows(losses, max_delay, 1).rows
    return player, losses, rows, prepare_owed(losses, rows, np.array([horizon]), 1)


def flattened(name: str, value: Any, arrays: dict[str, Any]) -> list[list[Any]]:
    """Return an argument as numba passes it, tuples taken apart; arrays go by name, into `arrays`."""
    if isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        parts = [flattened(f"{name}_{key}", item, arrays) for key, item in zip(names, value, strict=True)]
        return [argument for part in parts for argument in part]
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return [["array", name]]
    return [[type(value).__name__, value]]


def compile_kernel(horizon: int, runs: int) -> None:
    """Write the PTX and, for each d, the arguments, the losses and what the CPU engine makes of them."""
    import numba

    import aftereffect as ae
    from aftereffect.core import jit, kernel

    cuda = importlib.import_module("numba.cuda")
    dispatcher = importlib.import_module("numba.cuda.dispatcher")
    # numba asks the GPU at hand which chip to compile device functions for, though one is named below.
    vars(dispatcher)["get_current_device"] = lambda: SimpleNamespace(compute_capability=CHIP)
    jit.register_helpers()
    OUT.mkdir(parents=True, exist_ok=True)
    settings: list[dict[str, Any]] = []
    ptx = ""
    for d in DELAYS:
        template, losses, rows, (sums, owed) = setting(d, horizon)
        player = template.kernel()
        size = kernel.BANDITS[type(player.base)].size(N_ARMS)
        outputs = (np.zeros((1, 2, 4), np.uint64), np.zeros(1, np.int64), np.zeros(1))
        arguments = (player, horizon, rows, owed[0], *outputs)
        if not ptx:
            types = tuple(numba.typeof(argument) for argument in arguments)
            ptx, _ = cuda.compile_ptx(device_kernel(cuda, N_ARMS, size), types, cc=CHIP)
        arrays: dict[str, Any] = {}
        sim = ae.simulate(template, losses, runs=runs, seed=SEED, engine="blocks", checkpoints=1)
        names = ("player", "horizon", "rows", "owed", "words", "updates", "losses")
        passed: list[list[Any]] = []
        for name, value in zip(names, arguments, strict=True):
            passed += flattened(name, value, arrays)
        for name in ("rows", "words", "updates", "losses"):
            del arrays[name]
        steps, windows = np.diff(rows[:, 0], axis=0).astype(np.uint8), rows[:, 1].astype(np.uint8)
        again = np.cumsum(steps, axis=0)
        if not (np.array_equal(again, rows[1:, 0]) and np.array_equal(windows, rows[:, 1])):
            sys.exit("rows must hold whole numbers to travel as bytes")
        arrays |= {"steps": steps, "windows": windows, "sums": sums[0]}
        arrays |= {"cpu_updates": sim.updates, "cpu_regret": sim.regret}
        np.savez_compressed(OUT / f"d{d}.npz", **arrays)
        settings.append({"max_delay": d, "arguments": passed})
    (OUT / "kernel.ptx").write_text(ptx)
    entry = ptx.split(".visible .entry ")[1].split("(")[0].strip()
    described = {"entry": entry, "n_arms": N_ARMS, "horizon": horizon, "seed": SEED, "settings": settings}
    (OUT / "kernel.json").write_text(json.dumps(described, indent=1))
    lengths = [5 + 2 * dimensions(name) if kind == "array" else 1 for kind, name in settings[0]["arguments"]]
    expected = sum(lengths)
    found = ptx.split(".visible .entry ")[1].split(")")[0].count(".param ")
    if expected != found:
        sys.exit(f"the kernel takes {found} parameters, but {expected} would be passed")
    print(f"compiled for compute capability {CHIP}: {len(ptx):,} characters of PTX, {found} parameters")


def dimensions(name: str) -> int:
    """Return how many dimensions an array argument has."""
    return {"rows": 3, "words": 3, "owed": 2}.get(name, 1)


def streams(seed: int, runs: int) -> Any:
    """Return the (runs, 2, 4) words of `core/random.py`, without importing this package."""
    keys = ((run, purpose) for run in range(runs) for purpose in (0, 1))
    words = [np.random.SeedSequence(seed, spawn_key=key).generate_state(4, np.uint64) for key in keys]
    return np.array(words, dtype=np.uint64).reshape(runs, 2, 4)


def as_passed(cupy: Any, arguments: list[list[Any]], arrays: dict[str, Any]) -> tuple[Any, ...]:
    """Return arguments as numba lays them out.

    An array is: 0, 0, number of items, bytes an item, address, shape, strides.
    """
    scalars = {"int": np.int64, "float": np.float64, "bool": np.uint8}
    passed: list[Any] = []
    for kind, value in arguments:
        if kind == "array":
            a = arrays[value]
            passed += [np.uint64(0), np.uint64(0), np.int64(a.size), np.int64(a.itemsize)]
            passed += [np.uint64(a.data.ptr), *(np.int64(n) for n in (*a.shape, *a.strides))]
        else:
            passed.append(scalars[kind](value))
    return tuple(passed)


def run_kernel(runs: int) -> bool:
    """Play on the GPU, print rates and checks; return whether all agree."""
    cupy: Any = importlib.import_module("cupy")
    described = json.loads((OUT / "kernel.json").read_text())
    play = cupy.RawModule(path=str(OUT / "kernel.ptx")).get_function(described["entry"])
    horizon, n_arms = described["horizon"], described["n_arms"]
    words = cupy.asarray(streams(described["seed"], runs))
    gpu = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{gpu}: {runs:,} runs, T={horizon:,}, K={n_arms}")
    sound = True
    for part in described["settings"]:
        saved = dict(np.load(OUT / f"d{part['max_delay']}.npz"))
        rows = np.zeros((horizon + 1, 2, n_arms))
        rows[1:, 0] = np.cumsum(saved.pop("steps"), axis=0)
        rows[:, 1] = saved.pop("windows")
        cpu_updates, cpu_regret = saved.pop("cpu_updates"), saved.pop("cpu_regret")
        arrays = {name: cupy.asarray(value) for name, value in (saved | {"rows": rows}).items()}
        arrays |= {"words": words, "updates": cupy.zeros(runs, np.int64), "losses": cupy.zeros(runs)}
        passed = as_passed(cupy, part["arguments"], arrays)
        seconds = []
        for _ in range(4):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record()
            play((-(-runs // THREADS),), (THREADS,), passed)
            end.record()
            end.synchronize()
            seconds.append(cupy.cuda.get_elapsed_time(begin, end) / 1e3)
        updates, regret = arrays["updates"].get(), arrays["losses"].get() - saved["sums"].min()
        same = min(runs, len(cpu_updates))
        equal = np.array_equal(updates[:same], cpu_updates[:same])
        error = np.hypot(*(x.std(ddof=1) / np.sqrt(len(x)) for x in (regret, cpu_regret)))
        z = (regret.mean() - cpu_regret.mean()) / error
        sound = sound and bool(equal) and abs(z) <= 4.0
        # The first launch also loads the kernel.
        fastest = min(seconds[1:])
        rates = f"{updates.sum() / fastest:.3g} updates/s, {runs * horizon / fastest:.3g} rounds/s"
        print(f"d={part['max_delay']}: {rates}")
        print(f"  updates of the first {same:,} runs equal the CPU's: {equal}; mean {updates.mean():.2f}")
        means = f"{regret.mean():.2f}, on the CPU {cpu_regret.mean():.2f}"
        print(f"  mean regret {means}: {z:+.2f} standard errors apart")
    print("agreement" if sound else "DISAGREEMENT")
    return sound


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compile the kernel form for CUDA and play with it there.")
    parser.add_argument("mode", choices=("compile", "run", "both"))
    parser.add_argument("--horizon", type=int, default=HORIZON, help="rounds (compile)")
    parser.add_argument("--cpu-runs", type=int, default=1000, help="runs on the CPU (compile)")
    parser.add_argument("--runs", type=int, default=1 << 18, help="runs on the GPU (run)")
    options = parser.parse_args()
    if options.mode != "run":
        compile_kernel(options.horizon, options.cpu_runs)
    if options.mode != "compile" and not run_kernel(options.runs):
        sys.exit(1)


if __name__ == "__main__":
    main()
