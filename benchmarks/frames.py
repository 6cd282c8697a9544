"""A history of 1,000 units and 1,000 days, 4 arms and 15 lags: read from a table and estimated, in CPU seconds.

    python benchmarks/frames.py [pandas|polars|arrow] [--missing 0.01]

One process and, with OMP_NUM_THREADS=1, one thread. What is imported first is not counted.
"""

import argparse
import resource
import time
import warnings

import numpy as np
import polars as pl

from aftereffect import carryover
from aftereffect.core.frames import round_table

UNITS, DAYS, ARMS, LAGS = 1000, 1000, 4, 15


def table(missing: float) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    arms = np.repeat(rng.integers(0, ARMS, (DAYS // 5, UNITS)), 5, axis=0)
    effects = np.outer(np.arange(ARMS), 0.7 ** np.arange(LAGS + 1))
    noise = rng.normal(size=(DAYS, UNITS))
    for t in range(1, DAYS):
        noise[t] += 0.5 * noise[t - 1]
    totals = 5.0 * noise
    for s in range(LAGS + 1):
        totals[s:] += effects[arms[: DAYS - s], s]
    totals[rng.random(totals.shape) < missing] = np.nan
    days = np.datetime64("2022-01-01") + np.arange(DAYS)
    columns = {
        "date": np.repeat(days, UNITS),
        "store": np.tile([f"store {u}" for u in range(UNITS)], DAYS),
        "campaign": np.array(["none", "email", "letter", "visit"])[arms.ravel()],
        "sales": totals.ravel(),
    }
    return pl.DataFrame(columns).with_columns(pl.col("sales").fill_nan(None))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", nargs="?", default="pandas", choices=["pandas", "polars", "arrow"])
    parser.add_argument("--missing", type=float, default=0.0)
    given = parser.parse_args()
    frame = table(given.missing)
    converted = {"pandas": frame.to_pandas, "polars": lambda: frame, "arrow": frame.to_arrow}[given.library]()
    # The packages that an estimate imports are loaded first.
    small = np.random.default_rng(1)
    carryover.estimate(small.integers(0, 2, 99), small.normal(size=99), max_lag=1)
    warnings.simplefilter("ignore")
    start = time.process_time()
    read = round_table(converted)
    after = time.process_time()
    found = carryover.estimate(read.played, read.totals, max_lag=LAGS)
    end = time.process_time()
    print(found)
    print("whole effects against the mean:", found.arrived.values[:, -1].round(3).tolist())
    print(f"read {after - start:.2f} s, estimated {end - after:.2f} s, together {end - start:.2f} s of CPU time")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
