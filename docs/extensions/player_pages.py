"""A page for each player of the registry, written before the site is built: generated/players/NAME.md, and an index.

Setting, needs and settings are those of the registry, the description is the docstring, the tables are computed from
the rows of the studies `rivals` and `year` as published. Only the rates are written here.
"""

import sys
from pathlib import Path
from typing import Any

import polars as pl

import aftereffect as ae
from aftereffect.players import registry
from aftereffect.players.registry import Entry
from aftereffect.studies.report import frames

HERE = Path(__file__).parents[1]
STUDIES = HERE / "studies"
sys.path.insert(0, str(STUDIES))

from equal_split import by_world  # noqa: E402

RATES = {
    "CompositeLossWrapper": "√((d+1)KT) for any losses (Corollary 7), with Tsallis FTRL",
    "default_player": "√((d+1)KT) for any losses, without a horizon; ln T for losses of one law",
    "LagPlayer": "nothing is proved ([the lag model](../../theory/lags.md))",
    "CLW2018": "√((d+1)KT ln K) was claimed; its proof has two flaws",
    "FixedBlock": "none against an adversary who knows the blocks",
    "MiniBatch": "T^{2/3}, also against adversaries who react",
    "Blinded": "√(KT ln K) for d ≤ 1",
    "BlockUCB": "(d+1) ln T/Δ summed over the arms, for losses of one law",
    "ABTest": "none: it commits to one arm",
    "ARSUCB": "ln T for losses of one law, with an unknown delay",
    "ARSExp3": "T^{2/3} for any losses, with an unknown delay",
    "ODAAF": "√(KT ln K) + K E[τ] ln T for losses of one law",
    "ODAAFB": "√(KT ln K) + K E[τ] for losses of one law and bounded delays",
    "ODAAFV": "√(KT ln K) + K E[τ] + K V[τ] for losses of one law",
    "GargAkash": "√(KT) and terms of the delay, for losses of one law",
    "DynLinUCB": "√T for linear dynamical systems",
    "ARUCB": "√(KT) for autoregressive totals",
    "LinearComposite": "√((d+1)KT ln K) if the coefficients are known",
    "Naive": "none",
    "DelayedExp3": "√((K+d)T ln K) with labels",
    "BOLD": "√((d+1)KT ln K) with labels",
    "QPMD": "ln T/Δ + the outstanding plays, with labels and losses of one law",
    "DelayedUCB1": "ln T/Δ + the outstanding plays, with labels and losses of one law",
    "SuccessiveElimination": "ln T/(qΔ) + d(q) for any law of delays, with labels and losses of one law",
    "ZimmertSeldin2020": "√(KT) + √(D ln K) with labels",
}
"""The order of the regret of each player in the number of rounds T, arms K and the delay d."""
SPACES = {"labelled": "ae.labelled", "rivals": "ae.rivals"}


def kind(entry: Entry) -> str:
    """Return what a player assumes or sees, in the words of the study."""
    if entry.labelled:
        return "with labels"
    return "stochastic losses" if "stochastic losses" in entry.needs() else "any losses"


def standings() -> pl.DataFrame:
    """Return the mean regret per 1,000 rounds of each player on each instance, and whether it is the least."""
    rows = frames.readable(frames.finals(pl.read_parquet(STUDIES / "rivals" / "rows.parquet")))
    per = pl.col("regret") / pl.col("horizon") * 1000.0
    groups = rows.with_columns(per=per).group_by("player", "who", "where", maintain_order=True)
    found = groups.agg(pl.col("per").mean(), pl.col("max_delay").n_unique())
    kinds = {name: kind(entry) for name, entry in registry.PLAYERS.items()}
    found = found.with_columns(kind=pl.col("player").replace_strict(kinds, default="any losses"))
    whole = pl.col("max_delay") == pl.col("max_delay").max()
    return found.with_columns(least=(pl.col("per") == pl.col("per").min().over("where", "kind")) & whole)


def days() -> pl.DataFrame:
    """Return the regret of each player in the worlds of the study `year`, in percent of an equal split's.

    least: whether it is the least of its world, among players that are not told more than others.
    """
    rows = pl.read_parquet(STUDIES / "year" / "rows.parquet").filter(measure="regret")
    found = by_world(frames.finals(rows)).filter(pl.col("world") != "fatigue").sort("kind", maintain_order=True)
    found = found.select("player", "who", "world", where="kind", per=100.0 * pl.col("share"))
    alike = pl.when(~pl.col("who").str.contains("told the")).then("per")
    return found.with_columns(least=(alike == alike.min().over("world")).fill_null(False))


def public_name(name: str) -> str:
    """Return how a player is called in Python.

    >>> public_name("ARUCB"), public_name("default_player")
    ('ae.rivals.ARUCB', 'ae.default_player')
    """
    for space, words in SPACES.items():
        if name in getattr(ae, space).__all__:
            return f"{words}.{name}"
    return f"ae.{name}"


def table(rows: pl.DataFrame) -> list[str]:
    """Return a table of a study: a line for each kind of losses or worlds, a column for each setting of the player."""
    whos = rows["who"].unique(maintain_order=True).to_list()
    lines = ["| instance | " + " | ".join(whos) + " |", "|---|" + "---:|" * len(whos)]
    for (where,), part in rows.group_by("where", maintain_order=True):
        means = dict(part.group_by("who").agg(pl.col("per").mean()).iter_rows())
        lines.append(f"| {where} | " + " | ".join(f"{means[who]:.1f}" if who in means else "–" for who in whos) + " |")
    return [*lines, ""]


def page(name: str, entry: Entry, rows: pl.DataFrame, year: pl.DataFrame) -> str:
    """Return the page of a player in Markdown."""
    public = public_name(name)
    target = public.replace("ae.", "aftereffect.", 1)
    directive = "autofunction" if name == "default_player" else "autoclass"
    needs = ", ".join(need.replace("_", " ") for need in entry.needs()) or "nothing"
    settings = ", ".join(f"`{key}`" for key in entry.settings) or "none"
    sees = "each loss with the number of its round" if entry.labelled else "one total per round"
    mine, daily = rows.filter(player=name), year.filter(player=name)
    lines = [
        f"# {entry.label()}",
        "",
        f"`{public}`",
        "",
        "| | |",
        "|---|---|",
        f"| it sees | {sees} |",
        f"| it needs to know or assumes | {needs} |",
        f"| its regret grows like | {RATES.get(name, 'not stated')} |",
        f"| settings in study files | {settings} |",
        f"| where it wins, among players for {kind(entry)} | {wins(mine)} |",
    ]
    if len(daily):
        least = f"{daily.filter('least')['world'].n_unique()} of {year['world'].n_unique()}"
        lines.append(f"| where it wins at the scale of a year of days | in {least} worlds |")
    lines.append("")
    if len(daily):
        lines += ["Regret in the study [year](../../studies/year.md), in percent of an equal split's, by world:"]
        lines += ["", *table(daily)]
    if len(mine):
        lines += ["Regret per 1,000 rounds in the study [rivals](../../studies/rivals.md) (K = 4, d = 1 and 8):", ""]
        lines += table(mine)
    return "\n".join([*lines, "```{eval-rst}", f".. {directive}:: {target}", "   :no-index:", "```", ""])


def wins(mine: pl.DataFrame) -> str:
    """Return the instances on which one of a player's rows is the least of its kind."""
    if not len(mine):
        return "not in the study of many rounds"
    return ", ".join(mine.filter("least")["where"].unique(maintain_order=True)) or "nowhere in the study"


def write(folder: Path) -> None:
    """Write all pages and their index."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, year = standings(), days()
    lines = ["# Players, one by one", "", "Every player of the library: what it needs, its rate, where it wins.", ""]
    lines += ["| player | for | needs | regret grows like |", "|---|---|---|---|"]
    for name, entry in registry.PLAYERS.items():
        (folder / f"{name}.md").write_text(page(name, entry, rows, year), encoding="utf-8")
        needs = ", ".join(need.replace("_", " ") for need in entry.needs()) or "nothing"
        lines.append(f"| [{entry.label()}]({name}.md) | {kind(entry)} | {needs} | {RATES.get(name, 'not stated')} |")
    lines += ["", "```{toctree}", ":hidden:", "", *registry.PLAYERS, "```", ""]
    (folder / "index.md").write_text("\n".join(lines), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    """Write the pages when the builder begins."""
    app.connect("builder-inited", lambda _: write(HERE / "generated" / "players"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
