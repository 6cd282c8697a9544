"""Rows in the form that reports use: with readable names, at the horizon, at their worst, against one setting.

`readable` adds columns: `who`, the player, and `where`, the instance, with the settings that differ within the rows
(settings common to all rows are listed at the end of the report); `labelled`, whether the player needs losses labelled
with their rounds; `stochastic`, whether it assumes losses drawn from one law; `unit`, the largest effect of an action,
inferred from a bound that scales with it (1 where effects may be below 0, for which there is no bound).
"""

import json
from collections.abc import Callable, Collection, Sequence, Sized
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.core.errors import InvalidArgument
from aftereffect.players import registry
from aftereffect.studies.cells import find
from aftereffect.studies.report.charts import LOOKS, Drawing, Look, drawn, looks
from aftereffect.studies.report.page import Page, TableEntry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Found = TypeVar("Found", bound=Sized)
MOST_PANELS = 6
FAR = 3.0
"""Two means, or a mean and a bound, differ significantly if they are more than this many standard errors apart."""
SIZES = ("n_arms", "max_delay", "horizon")
SYMBOLS = {"n_arms": "K", "max_delay": "d", "horizon": "T"}
AXES = {"n_arms": "the number of arms, K", "max_delay": "the longest delay, d", "horizon": "the horizon, T"}
PLACES: dict[str, str] = LOOKS["instances"]
"""Instances by name, as reports call them."""


def readable(rows: pl.DataFrame, apart: Collection[str] = ()) -> pl.DataFrame:
    """Return the rows with the columns described above; settings in `apart` are left out of names."""
    some(rows, "finished cells of its measure")
    for kind, column in (("player", "who"), ("instance", "where")):
        hidden = {name.rpartition(".")[2] for name in apart if name.startswith("player.") == (kind == "player")}
        pairs = rows.select(kind, f"{kind}_params").unique(maintain_order=True)
        settings = [(name, json.loads(text)) for name, text in pairs.iter_rows()]
        labels = []
        for name, given in settings:
            alike = [other for same, other in settings if same == name]
            shown = {
                key: value
                for key, value in given.items()
                # Settings that are part of a player's name are shown even if they are all equal.
                if key not in hidden and (key in ("base", "tuning") or any(other.get(key) != value for other in alike))
            }
            words = registry.setting_words(shown)
            labels.append(find(name).label(shown) if kind == "player" else ", ".join([PLACES.get(name, name), *words]))
        pairs = pairs.with_columns(pl.Series(column, labels, dtype=pl.String))
        if kind == "player":
            labelled = [find(name).labelled for name, _ in settings]
            iid = ["stochastic losses" in find(name).needs(given) for name, given in settings]
            pairs = pairs.with_columns(pl.Series("labelled", labelled), pl.Series("stochastic", iid))
        rows = rows.join(pairs, on=[kind, f"{kind}_params"], maintain_order="left")
    of_unit = pl.struct(SIZES).map_elements(lambda sizes: theory.corollary_bound(*sizes.values()), pl.Float64)
    return rows.with_columns(unit=(pl.col("corollary_bound") / of_unit).fill_null(1.0))


class Missing(InvalidArgument):
    """The rows hold nothing for a section of the report."""


def some(found: Found, what: str) -> Found:
    """Return what a section shows; raise Missing, before the section begins, if that is nothing."""
    if not len(found):
        raise Missing(f"it needs {what}, and there are none")
    return found


def finals(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows at their horizons."""
    return rows.filter(pl.col("round") == pl.col("horizon"))


def worst(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, for every player and size, the row of the instance with the greatest final regret in units of `unit`.

    Regrets and bounds are in these units, so that instances with losses in different units can be compared.
    """
    scaled = pl.col("^(regret|standard_error|uniform_regret|.*bound)$") / pl.col("unit")
    ordered = finals(rows).with_columns(scaled).sort("regret", "cell", descending=[True, False], nulls_last=True)
    return ordered.unique(["who", *SIZES], keep="first", maintain_order=True).sort("who", *SIZES)


def setting(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows with a column `x`: a size, a setting of the instance, or one of the player ("player.max_delay").

    Rows without a number for this setting are left out.
    """
    if name in SIZES:
        return rows.with_columns(x=pl.col(name).cast(pl.Float64))
    kind, _, key = name.rpartition(".")
    column = "player_params" if kind == "player" else "instance_params"
    value = pl.col(column).str.json_path_match(f"$.{key}")
    given = rows.with_columns(x=value.cast(pl.Float64, strict=False)).drop_nulls("x")
    if given.is_empty():
        raise InvalidArgument(f"report.against must be a size or a setting that rows have, but got {name!r}")
    return given


def setting_name(name: str) -> str:
    """Return the name of a setting in sentences and on axes.

    >>> setting_name("max_delay"), setting_name("gap_factor"), setting_name("player.max_delay")
    ('the longest delay, d', 'gap factor', 'max delay of the player')
    """
    kind, _, key = name.rpartition(".")
    return AXES.get(name) or key.replace("_", " ") + (" of the player" if kind == "player" else "")


def setting_at(name: str, value: float) -> str:
    """Return a setting's value as shown in sentences.

    >>> setting_at("max_delay", 64.0), setting_at("gap_factor", 16.0)
    ('d = 64', 'gap factor 16')
    """
    return f"{SYMBOLS[name]} = {value:,g}" if name in SYMBOLS else f"{setting_name(name)} {value:,g}"


def names(rows: pl.DataFrame, column: str) -> list[Any]:
    """Return the distinct values of a column, in order of appearance."""
    return rows[column].unique(maintain_order=True).to_list()


def pivot(
    page: Page,
    rows: pl.DataFrame,
    index: dict[str, str],
    column: str,
    entry: Callable[[dict[str, Any]], TableEntry],
    caption: str,
    **options: Any,
) -> None:
    """Add a table with a line for each combination of the columns `index`, given with their headings.

    Each value of `column` has its own column, with the entry of the first matching row, or a dash.
    """
    values = sorted(set(rows[column].to_list()))
    table: list[list[TableEntry]] = []
    for key, part in rows.group_by(*index, maintain_order=True):
        found = {row[column]: row for row in part.reverse().iter_rows(named=True)}
        first = [f"{part:,}" if isinstance(part, int) else str(part) for part in key]
        table.append([*first, *(entry(found[value]) if value in found else "–" for value in values)])
    symbol = f"{SYMBOLS[column]} = " if column in SYMBOLS else ""
    headings = [*index.values(), *(f"{symbol}{value:{',' if isinstance(value, int) else ',g'}}" for value in values)]
    words = [k for k, name in enumerate(index) if k and name not in SIZES]
    page.table(headings, table, words=words, caption=caption, **options)


def reference(rows: pl.DataFrame) -> str:
    """Return the reference player: a wrapper (with Tsallis FTRL if there is one), else the first player."""
    wrappers = [who for who in names(rows, "who") if who.startswith("wrapper")]
    preferred = sorted((who for who in wrappers if who.startswith("wrapper, Tsallis FTRL")), key=len)
    return str((preferred or wrappers or names(rows, "who"))[0])


def size_label(row: dict[str, Any]) -> str:
    """Return the sizes that a row contains, as text.

    >>> size_label({"n_arms": 4, "max_delay": 8, "horizon": 20000})
    'K = 4, d = 8, T = 20,000'
    """
    return ", ".join(f"{SYMBOLS[name]} = {row[name]:,}" for name in SIZES if name in row)


def by_panel(
    name: str,
    rows: pl.DataFrame,
    keys: Sequence[str],
    x: str,
    line: "Callable[[Axes, pl.DataFrame, str, Look], None]",
    context: "Callable[[Axes, pl.DataFrame], None]",
    *,
    labels: tuple[str, str],
    words: str,
    legend: int = 4,
) -> Drawing:
    """Draw rows in panels, one for each combination of `keys`; if there are too many, those in the middle of the grid.

    x: the column by which rows are sorted. line: draws the rows of one player. context: draws reference lines and sets
    scales. labels: of the x and y axes. legend: its number of columns.
    """
    # Colours are assigned in order of names or, with many players, of final regret, players without labels first.
    players = sorted(names(rows, "who"))
    if len(players) > 8:
        share = (pl.col("regret") / pl.col("uniform_regret").clip(lower_bound=1e-9)).median()
        best = dict(finals(rows).group_by("who").agg(pl.struct(pl.col("labelled").first(), share)).iter_rows())
        players.sort(key=lambda who: tuple(best[who].values()))
    look = looks(players, reference(rows))
    wanted = rows.select(keys).unique(maintain_order=True)
    for size in ("n_arms", "max_delay"):
        if wanted.height > MOST_PANELS and size in keys and wanted[size].n_unique() > 1:
            values = wanted[size].unique().sort().to_list()
            wanted = wanted.filter(**{size: values[len(values) // 2]})
    few = np.linspace(0, wanted.height - 1, min(MOST_PANELS, wanted.height)).round().astype(int)
    with drawn(name, f"{words}, in {len(few)} panels.", len(few), legend=legend) as (drawing, axes):
        for ax, place in zip(axes, wanted[few].to_dicts(), strict=True):
            ax.set_title("\n".join(filter(None, (place.get("where"), size_label(place)))), fontsize=9)
            ax.set(xlabel=labels[0], ylabel=labels[1])
            here = rows.filter(**place).sort(x, maintain_order=True)
            for who in names(here, "who"):
                line(ax, here.filter(who=who), who, look[who])
            context(ax, here)
    return drawing
