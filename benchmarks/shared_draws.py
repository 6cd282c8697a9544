"""How long a group of cells of the study `rivals` takes, and whether its rows are the published ones.

Run it with `python benchmarks/shared_draws.py`, or with names of instances: `... split fixed`; with PYTHONPATH pointing
to the `src` of an earlier version it measures that one. All players of an instance and size play the same draws. Where
a play is costly to compute (random splits), each is computed once for all players; sums over arms are computed once for
a draw. Printed are seconds of processor time on one thread, which other load on the machine hardly affects: all, and
those of Zimmert and Seldin's player, which solves an equation in every round and gains nothing. The first run also
compiles.
"""

import sys
import time
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from aftereffect.studies.cells import groups
from aftereffect.studies.run import simulate_cells
from aftereffect.studies.study import Study

ROWS = Path(__file__).parents[1] / "docs" / "studies" / "rivals" / "rows.parquet"
INSTANCES = ("split", "switching", "delays", "fixed")


def main() -> None:
    wanted = sys.argv[1:] or INSTANCES
    published = pl.read_parquet(ROWS)
    known = set(published["cell"])
    for group in groups(Study.load("rivals").cells()):
        if group[0]["instance"]["name"] not in wanted:
            continue
        spent, slowest = 0.0, 0.0
        simulated = simulate_cells(group, threads=1)
        for cell in group:
            begun = time.process_time()
            finished = next(simulated)
            seconds = time.process_time() - begun
            spent += seconds
            slowest += seconds if cell["player"]["name"] == "ZimmertSeldin2020" else 0.0
            if finished.rows is not None and finished.cell in known:
                assert_frame_equal(finished.rows, published.filter(cell=finished.cell).sort("round"), check_exact=True)
        name, delay = group[0]["instance"]["name"], group[0]["max_delay"]
        print(f"{name}, d = {delay}: {spent:.1f} s, of them Zimmert-Seldin {slowest:.1f} s; {len(group)} cells equal")


if __name__ == "__main__":
    main()
