"""The study `pilot`: coverage of the bands and power of the tests, written to docs/studies.

    python benchmarks/pilot.py run REPETITIONS PROCESSES    rows to docs/studies/pilot/rows.csv, then the page
    python benchmarks/pilot.py quick                        the same with 2 repetitions, printed only
    python benchmarks/pilot.py page                         the page and its figure from the rows

The cases are those of `carryover.py`, without those of players, and of `watch.py`, with seeds of their own. Sentences
and numbers on the page are computed from the rows.
"""

import functools
import sys
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path

import carryover
import matplotlib as mpl
import matplotlib.pyplot as plt
import polars as pl
import watch
from scipy import stats

HOME = Path(__file__).parents[1] / "docs" / "studies"
ROWS = HOME / "pilot" / "rows.csv"
SEED = 50_000_000
COVERED = ("effects", "arrived", "remaining")
SHOWN = (*COVERED, "shares", "bounded", "apart", "width")
PAGE = """# Pilots: do the bands cover, and do the tests find effects that last longer than d?

How long effects last is measured with a pilot, rounds in which the arms are drawn for this purpose
([how](../theory/carryover.md)). This study asks two things of simulated pilots: whether the simultaneous 95% bands
cover all arms and lags at once, and how often [the tests](../theory/watch.md) say that effects last longer than d,
where they do and where they do not. It measures shares of repetitions, not regret, and so has no study file:
`python benchmarks/pilot.py run {runs} 16` gives the same rows on any machine, up to rounding; `quick` takes seconds.
The rows are in [rows.csv](pilot/rows.csv). They were published in commit b23de321b4 (version 0.2.0); the
machine and the run time were not recorded.

## What was found

- Of {bands} bands, of effects by lag, arrived and remaining, the least coverage of all arms and lags at once is
  {least:.1%} ({least_case}, {least_band}); {below} are below 93% less three standard errors, {limit:.1%} with {runs}
  repetitions.
- Where effects last longer than d, pilots say so in {found_least:.1%} to {found_most:.1%} of repetitions, the rounds of
  a running player in {found_player:.1%}.
- Where they end within d, the largest share of false alarms at the 5% level is {false:.1%} ({false_case}).

![Coverage of all arms and lags at once, by case](pilot/coverage.svg)

## Bands

Pilots of 600 rounds with a longest lag of 10, K = 4 arms and noise of standard deviation 1, unless the case says
otherwise; whole effects from 0.5 to 2. The share of repetitions in which the band covers all arms and lags at once; the
mean share of the bands of shares that are finite (bounded); how often "all arms fade alike" was refuted (apart); and
the mean half-width of the band of effects.

| case | effects | arrived | remaining | shares | bounded | apart | width |
|---|---|---|---|---|---|---|---|
{band_lines}

## Tests

K = 4 arms. Late bills: losses of 0 or 1 that arrive as a whole, the later the worse the arm, so that the noise of a
total is about that of one such loss, with a standard deviation of 0.46 to 0.5; "noise" is added to it. Pilots have 600
rounds, players play 5,000. The share of repetitions with an alarm at the 5% level, and its 95% interval.

| case | alarms | interval |
|---|---|---|
{test_lines}
"""


def one(name: str, seed: int) -> dict[str, float]:
    """Return one repetition of a case of `carryover.py`, or of `watch.py`."""
    if name in watch.CASES:
        case = watch.CASES[name]
        return {"alarm": float((watch.player_alarm if case.max_lag is None else watch.pilot_alarm)(case, seed))}
    found = carryover.coverage(carryover.CASES[name], 1, seed)
    return {quantity: float(found[quantity]) for quantity in SHOWN}


def rows(repetitions: int, each: Callable[..., object]) -> pl.DataFrame:
    """Return the mean of every quantity of every case; each: a map, such as that of a pool."""
    found = []
    names = [name for name, case in carryover.CASES.items() if case.player is None] + list(watch.CASES)
    for place, name in enumerate(names):
        first = SEED + 10_000 * place
        made = pl.DataFrame(list(each(functools.partial(one, name), range(first, first + repetitions))))
        for quantity in made.columns:
            found.append({"case": name, "quantity": quantity, "runs": repetitions, "mean": made[quantity].mean()})
        print(name, {quantity: round(made[quantity].mean(), 3) for quantity in made.columns}, flush=True)
    return pl.DataFrame(found)


def interval(share: float, runs: int) -> tuple[float, float]:
    """Return the 95% interval of a share."""
    found = stats.binomtest(round(share * runs), runs).proportion_ci()
    return found.low, found.high


def page(table: pl.DataFrame) -> str:
    """Return the page."""
    runs, wide = int(table["runs"][0]), table.pivot(on="quantity", index="case", values="mean", maintain_order=True)
    bands, tests = wide.drop_nulls("effects"), wide.drop_nulls("alarm")
    covered = [(row[name], row["case"], name) for row in bands.iter_rows(named=True) for name in COVERED]
    limit = 0.93 - 3.0 * (0.93 * 0.07 / runs) ** 0.5
    late, ended = (tests.filter(pl.col("case").str.contains(word)) for word in ("late bills", "ends by"))
    pilots, players = (late.filter(pl.col("case").str.starts_with(word))["alarm"] for word in ("pilot", "player"))
    worst = ended.sort("alarm", descending=True).row(0, named=True)
    band_lines, test_lines = [], []
    for row in bands.iter_rows(named=True):
        shares = " | ".join(f"{row[name]:.1%}" for name in SHOWN[:-1])
        band_lines.append(f"| {row['case']} | {shares} | {row['width']:.2f} |")
    for row in tests.iter_rows(named=True):
        low, high = interval(row["alarm"], runs)
        test_lines.append(f"| {row['case']} | {row['alarm']:.1%} | {low:.1%} to {high:.1%} |")
    return PAGE.format(
        **dict(zip(("least", "least_case", "least_band"), min(covered), strict=True)),
        **{"runs": runs, "bands": len(covered), "limit": limit, "below": sum(share < limit for share, _, _ in covered)},
        **{"found_least": pilots.min(), "found_most": pilots.max(), "found_player": players.min()},
        **{"false": worst["alarm"], "false_case": worst["case"]},
        **{"band_lines": "\n".join(band_lines), "test_lines": "\n".join(test_lines)},
    )


def figure(table: pl.DataFrame, path: Path) -> None:
    """Draw the coverage of the bands with its 95% intervals."""
    plt.style.use("aftereffect.figures")
    mpl.rcParams["svg.hashsalt"] = "pilot"
    bands = table.filter(pl.col("quantity").is_in(COVERED))
    names = bands["case"].unique(maintain_order=True).to_list()
    _, ax = plt.subplots(figsize=(7, 0.3 * len(names) + 1.0), layout="constrained")
    for shift, quantity in zip((-0.2, 0.0, 0.2), COVERED, strict=True):
        some = bands.filter(quantity=quantity)
        ends = [interval(share, runs) for share, runs in some.select("mean", "runs").iter_rows()]
        x, y = some["mean"].to_numpy(), [len(names) - 1 - names.index(case) - shift for case in some["case"]]
        bars = [x - [low for low, _ in ends], [high for _, high in ends] - x]
        label = "effects by lag" if quantity == "effects" else f"effects {quantity}"
        ax.errorbar(x, y, xerr=bars, fmt="o", ms=3, lw=1, label=label)
    ax.axvline(0.95, color="0.6", lw=1, zorder=1)
    ax.set_yticks(range(len(names)), names[::-1])
    ax.set_xlabel("share of repetitions in which the band covers, with its 95% interval")
    ax.legend(loc="upper left", bbox_to_anchor=(0.0, 1.12), ncols=3, frameon=False)
    plt.savefig(path, metadata={"Date": None})


def main() -> None:
    if sys.argv[1] == "quick":
        print(page(rows(2, map)))
        return
    if sys.argv[1] == "run":
        with Pool(int(sys.argv[3])) as pool:
            made = rows(int(sys.argv[2]), pool.imap)
        ROWS.parent.mkdir(exist_ok=True)
        made.write_csv(ROWS)
    table = pl.read_csv(ROWS)
    (HOME / "pilot.md").write_text(page(table), encoding="utf-8")
    figure(table, ROWS.parent / "coverage.svg")


if __name__ == "__main__":
    main()
