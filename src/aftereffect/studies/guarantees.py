"""The sections that hold measurements against theorems: regret against its bounds, moves of updates against ξ."""

import polars as pl

from aftereffect.studies import charts, views
from aftereffect.studies.page import Entry, Page
from aftereffect.studies.sections import LONG, Keep, number, plus_minus

# Below this many standard errors above a bound, a mean is no evidence against it.
FAR = 3.0


def bounds(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Hold the worst measured regret against Theorem 4, Corollary 7, the tuned bound and the lower bound."""
    worst = views.worst(views.readable(rows.filter(pl.col("measure") == "regret", pl.col("bound").is_not_null())))
    page.section("Regret against its bounds")
    page.figure(
        keep(charts.bounds(worst)),
        "The greatest mean regret over this study's instances, and what theory promises for it. "
        "Bounds above T say nothing.",
    )
    _shares(page, worst)
    table = []
    for row in worst.sort("who", *views.SIZES).iter_rows(named=True):
        sizes = [f"{row[name]:,}" for name in views.SIZES]
        promised = [number(row[name]) for name in ("bound", "corollary_bound", "tuned_bound", "lower_bound")]
        share = f"{row['regret'] / min(row['bound'], row['horizon']):.0%}"
        table.append([row["who"], *sizes, plus_minus(row["regret"], row["standard_error"]), *promised, share])
    headings = ["player", "K", "d", "T", "worst regret", "Theorem 4", "Corollary 7", "tuned", "lower", "share"]
    folded = f"All {len(table)} sizes: regret, and the bounds one by one" if len(table) > LONG else ""
    caption = "Regret and bounds. The share is of Theorem 4's bound or T, whichever is less."
    page.table(headings, table, caption=caption, folded=folded)
    return bound_notes(worst)


def _shares(page: Page, worst: pl.DataFrame) -> None:
    """Tabulate the worst regret as a share of Theorem 4's bound, or of T where that is less."""
    horizons = sorted(set(worst["horizon"].to_list()))
    table: list[list[Entry]] = []
    for who, K, d in worst.select("who", "n_arms", "max_delay").unique(maintain_order=True).iter_rows():
        part = worst.filter(pl.col("who") == who, pl.col("n_arms") == K, pl.col("max_delay") == d)
        line: list[Entry] = [who, f"{K:,}", f"{d:,}"]
        for T in horizons:
            at = part.filter(pl.col("horizon") == T)
            if at.is_empty():
                line.append("–")
                continue
            regret, bound = at.select("regret", "bound").row(0)
            line.append(f"{regret / min(bound, T):.0%}" + " of T" * (bound >= T))
        table.append(line)
    headings = ["player", "K", "d", *(f"T = {T:,}" for T in horizons)]
    page.table(headings, table, caption="The worst regret as a share of Theorem 4's bound, or of T where that is less.")


def bound_notes(worst: pl.DataFrame) -> list[str]:
    """Say how many bounds held, how close regret came, and where they say more than T."""
    notes = []
    for who in views.names(worst, "who"):
        part = worst.filter(pl.col("who") == who)
        limit = pl.min_horizontal("bound", "horizon")
        shares = part.select(share=pl.col("regret") / limit)["share"].to_numpy()
        error = pl.col("standard_error").fill_null(0.0)
        broken = part.filter(pl.col("regret") - FAR * error > limit).height
        verdict = "in every one" if not broken else f"in {part.height - broken}, and broken in {broken}"
        informative = part.filter(pl.col("bound") < pl.col("horizon")).height
        notes.append(
            f"{who}: of {part.height} sizes, the bound of Theorem 4 (or T) holds {verdict}; the worst regret is "
            f"between {shares.min():.0%} and {shares.max():.0%} of it. In {informative} of them the bound is below "
            "the trivial T."
        )
    tighter = worst.filter(pl.col("tuned_bound") < pl.col("corollary_bound"))
    if tighter.height:
        gain = (tighter["corollary_bound"] / tighter["tuned_bound"]).to_numpy()
        span = f"{gain.min():.1f} to {gain.max():.1f}"
        notes.append(f"The tuned bound is {span} times below Corollary 7's at these sizes.")
    return notes


def _peaks(page: Page, peaks: pl.DataFrame) -> None:
    """Tabulate the greatest share of ξ that a mean move has, over all delays and horizons."""
    arms = sorted(set(peaks["n_arms"].to_list()))
    share = (pl.col("value") / pl.col("theory")).max()
    table: list[list[Entry]] = []
    for who, where in peaks.select("who", "where").unique(maintain_order=True).iter_rows():
        part = peaks.filter(pl.col("who") == who, pl.col("where") == where)
        found = dict(part.group_by("n_arms").agg(share).iter_rows())
        table.append([who, where, *(f"{found[K]:.0%}" if K in found else "–" for K in arms)])
    caption = "The greatest mean move as a share of ξ, at the delay and horizon where it is greatest."
    page.table(["player", "instance", *(f"K = {K:,}" for K in arms)], table, words=(1,), caption=caption)


def stability(page: Page, rows: pl.DataFrame, keep: Keep) -> list[str]:
    """Hold the mean move of an update against the ξ that Theorem 5 and Lemma 14 state."""
    shown = views.readable(rows.filter(pl.col("measure") == "stability", pl.col("value").is_not_null()))
    page.section("Stability of the base")
    page.figure(
        keep(charts.stability(shown)),
        "Mean of Σ(q_{n+1} − q_n)⁺ over the updates between two checkpoints, with 95% bands, and its bound ξ (dashed).",
    )
    keys = ["who", "where", *views.SIZES]
    peaks = shown.sort("value", descending=True).unique(keys, keep="first", maintain_order=True).sort(keys)
    table = [
        [
            row["who"],
            row["where"],
            *(f"{row[name]:,}" for name in views.SIZES),
            f"{row['value']:.4f}",
            f"{row['theory']:.4f}",
            f"{row['value'] / row['theory']:.0%}",
        ]
        for row in peaks.iter_rows(named=True)
    ]
    _peaks(page, peaks)
    headings = ["player", "instance", "K", "d", "T", "greatest move", "ξ", "share"]
    folded = f"All {len(table)} cells" if len(table) > LONG else ""
    caption = "The greatest mean move between two checkpoints, and ξ."
    page.table(headings, table, words=(1,), caption=caption, folded=folded)
    notes = []
    for who in views.names(peaks, "who"):
        part = peaks.filter(pl.col("who") == who)
        error = pl.col("standard_error").fill_null(0.0)
        broken = shown.filter(pl.col("who") == who, pl.col("value") - FAR * error > pl.col("theory")).height
        shares = (part["value"] / part["theory"]).to_numpy()
        verdict = "never exceeds" if not broken else f"exceeds, at {broken} checkpoints,"
        notes.append(
            f"{who}: the mean move of an update {verdict} ξ; at its greatest it is {shares.min():.0%} to "
            f"{shares.max():.0%} of it, over {part.height} cells."
        )
    return notes
