"""Rows as a report reads them: with readable names, at the horizon, at their worst, against one setting.

Two columns are added: `who`, the player, and `where`, the instance. Of their settings those are named that differ
within the rows; what is the same everywhere is said once, at the end of the report.
"""

import json
from collections.abc import Collection
from functools import cache
from typing import Any

import polars as pl

from aftereffect.core.errors import InvalidArgument
from aftereffect.players.catalogue import Problem, catalogue
from aftereffect.studies.settings import slug

SIZES = ("n_arms", "max_delay", "horizon")
BASES = {"tsallis": "Tsallis FTRL", "exp3": "Exp3", "ucb1": "UCB1", "tsallis_inf": "Tsallis-INF", "uniform": "uniform"}
PLACES = {
    "split": "random splits",
    "delays": "random delays",
    "fixed": "longest delays",
    "geometric": "fading effects",
    "immediate": "no delays",
    "switching": "switching arms",
    "constrained": "constrained adversary",
    "drifting": "drifting arms",
    "seasonal": "seasons",
    "hard": "lower-bound adversary",
    "pieces": "losses in pieces",
    "stacked": "stacked losses",
    "anonymous": "anonymous rewards",
    "late_bills": "late bills",
    "campaigns": "coupon campaigns",
}
ANY = Problem(2, 1, 1000, 0.5, 0.25, [0.5, 0.5])
"""A problem that has room for every player of the catalogue."""
SYMBOLS = {"n_arms": "K", "max_delay": "d", "horizon": "T"}
AXES = {"n_arms": "the number of arms, K", "max_delay": "the longest delay, d", "horizon": "the horizon, T"}


@cache
def catalogue_words() -> dict[str, str]:
    """Return the catalogue's names by their slugs."""
    return {slug(entry.name): entry.name for entry in catalogue(ANY)}


@cache
def needing(what: str) -> frozenset[str]:
    """Return the names of the players who need something, in the catalogue's words for it.

    >>> "UCB on clean windows" in needing("stochastic losses")
    True
    """
    return frozenset(entry.name for entry in catalogue(ANY) if what in entry.needs)


def labelled() -> frozenset[str]:
    """Return the names of the players who see which round a loss belongs to."""
    return needing("labels")


def player_words(name: str, settings: dict[str, Any]) -> str:
    """Return a player's name for people, with the settings given.

    >>> player_words("wrapper", {"base": "exp3", "max_delay": 4})
    'wrapper, Exp3, max delay 4'
    """
    rest = dict(settings)
    base = BASES.get(rest.pop("base", "tsallis" if name == "wrapper" else "exp3"), "")
    known = {"wrapper": f"wrapper, {base}", "naive": f"naive {base}", "uniform": "uniform play"}
    known["tsallis_inf"] = "wrapper, Tsallis-INF"
    return ", ".join([known.get(name) or catalogue_words().get(name, name.replace("_", " ")), *_settings(rest)])


def instance_words(name: str, settings: dict[str, Any]) -> str:
    """Return an instance's name for people, with the settings given.

    >>> instance_words("split", {"gap": 0.2})
    'random splits, gap 0.2'
    """
    return ", ".join([PLACES.get(name, name.replace("_", " ")), *_settings(settings)])


def readable(rows: pl.DataFrame, apart: Collection[str] = ()) -> pl.DataFrame:
    """Return the rows with `who` and `where`; settings named in `apart` are not part of these."""
    where = _words(rows, "instance", apart)
    # A wrapper is named by its base, also where all have the same one.
    who = _words(rows, "player", apart, always=("base",))
    return rows.with_columns(who=pl.Series(who, dtype=pl.String), where=pl.Series(where, dtype=pl.String))


def finals(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows at their horizons."""
    return rows.filter(pl.col("round") == pl.col("horizon"))


def worst(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, for every player and size, the row of the instance with the greatest final regret."""
    ordered = finals(rows).sort("regret", "cell", descending=[True, False], nulls_last=True)
    return ordered.unique(["who", *SIZES], keep="first", maintain_order=True).sort("who", *SIZES)


def setting(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the rows with a column `x`: a size, a setting of the instance, or one of the player ("player.max_delay").

    Rows that have no such number are left out.
    """
    if name in SIZES:
        return rows.with_columns(x=pl.col(name).cast(pl.Float64))
    kind, _, key = name.rpartition(".")
    column = "player_params" if kind == "player" else "instance_params"
    found = [json.loads(text).get(key) for text in rows[column]]
    values = [float(x) if isinstance(x, int | float) and not isinstance(x, bool) else None for x in found]
    given = rows.with_columns(x=pl.Series(values, dtype=pl.Float64)).drop_nulls("x")
    if given.is_empty():
        raise InvalidArgument(f"report.against must be a size or a setting that rows have, but got {name!r}")
    return given


def setting_words(name: str) -> str:
    """Return how sentences and axes call a setting.

    >>> setting_words("max_delay"), setting_words("gap_factor"), setting_words("player.max_delay")
    ('the longest delay, d', 'gap factor', 'max delay of the player')
    """
    kind, _, key = name.rpartition(".")
    return AXES.get(name) or key.replace("_", " ") + (" of the player" if kind == "player" else "")


def setting_at(name: str, value: float) -> str:
    """Return a setting's value as sentences have it.

    >>> setting_at("max_delay", 64.0), setting_at("gap_factor", 16.0)
    ('d = 64', 'gap factor 16')
    """
    return f"{SYMBOLS[name]} = {value:,g}" if name in SYMBOLS else f"{setting_words(name)} {value:,g}"


def names(rows: pl.DataFrame, column: str) -> list[str]:
    """Return the different words in a column, in the order they come in."""
    return rows[column].unique(maintain_order=True).to_list()


def reference(rows: pl.DataFrame) -> str:
    """Return who others are compared with: the wrapper (over Tsallis FTRL if it is there), else the first player."""
    wrappers = [who for who in names(rows, "who") if who.startswith("wrapper")]
    preferred = sorted((who for who in wrappers if who.startswith("wrapper, Tsallis FTRL")), key=len)
    return (preferred or wrappers or names(rows, "who"))[0]


def ranked(rows: pl.DataFrame) -> list[str]:
    """Return the players in the order in which they get colours: by name; where they are many, by final regret, those
    who need no labels first.
    """
    listed = sorted(names(rows, "who"))
    if len(listed) <= 8:
        return listed
    share = (pl.col("regret") / pl.col("uniform_regret").clip(lower_bound=1e-9)).median()
    best = dict(finals(rows).group_by("who").agg(share).iter_rows())
    return sorted(listed, key=lambda who: (who in labelled(), best[who]))


def middle(values: pl.Series) -> Any:
    """Return the middle one of the different values; the greater of two.

    >>> middle(pl.Series([8, 2, 2, 4]))
    4
    """
    different = values.unique().sort().to_list()
    return different[len(different) // 2]


def size_words(row: dict[str, Any], which: Collection[str] = SIZES) -> str:
    """Return sizes as they stand over a panel.

    >>> size_words({"n_arms": 4, "max_delay": 8, "horizon": 20000})
    'K = 4, d = 8, T = 20,000'
    """
    return ", ".join(f"{SYMBOLS[name]} = {row[name]:,}" for name in SIZES if name in which)


def _settings(settings: dict[str, Any]) -> list[str]:
    shown = []
    for key, value in settings.items():
        text = f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")
        shown.append(f"{key.replace('_', ' ')} {text}")
    return shown


def _words(rows: pl.DataFrame, kind: str, apart: Collection[str], always: Collection[str] = ()) -> list[str]:
    words = player_words if kind == "player" else instance_words
    hidden = {name.rpartition(".")[2] for name in apart if name.startswith("player.") == (kind == "player")}
    pairs = list(zip(rows[kind], rows[f"{kind}_params"], strict=True))
    sets: dict[str, list[dict[str, Any]]] = {}
    for name, text in dict.fromkeys(pairs):
        sets.setdefault(name, []).append(json.loads(text))
    shown: dict[tuple[str, str], str] = {}
    for name, text in dict.fromkeys(pairs):
        given = json.loads(text)
        telling = {key: value for key, value in given.items() if key in always or _differs(key, sets[name])}
        shown[name, text] = words(name, {key: value for key, value in telling.items() if key not in hidden})
    return [shown[pair] for pair in pairs]


def _differs(key: str, sets: list[dict[str, Any]]) -> bool:
    return any(key not in given or given[key] != sets[0].get(key) for given in sets)
