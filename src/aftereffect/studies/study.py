"""A study: instances × players × grids of (K, d, T), from a TOML file or from Python, with the same keys.

    name = "mine"                       # letters, digits, - and _
    title = "..."                       # optional, as are about, seed (0), runs (100), instances (1; the runs are
    measure = "regret"                  # divided over so many draws of the losses), checkpoints ("log") and measure
    [grid]                              # every combination; [[grid]] for several grids
    n_arms = [2, 8]
    max_delay = [0, 3]
    horizon = [10_000]
    n_units = [1]                       # optional: how many units share the player (`ae.Panel`)
    [[instance]]                        # names and settings: see `cells.py`
    name = "split"
    gap = 0.2
    grid = { horizon = [1000] }         # optional: lists for this instance
    [[player]]                          # names and settings: see `players/registry.py`
    name = "CompositeLossWrapper"
    base = "exp3"
    label = "wrapped Exp3"              # optional, here and in [[instance]]: not part of a cell
    on = ["split"]                      # optional: only on instances with these names or labels
    grid = { horizon = [10_000] }       # optional: only at these sizes
    runs = 40                           # optional: at most this many
    max_delay = 3                       # optional: the d given to the player, by default that of the losses
    [quick]                             # optional: replaces the above with --quick
    runs = 20
    grid = { horizon = [1000] }         # lists named here replace those of every grid and player
    [report]                            # optional: see `report/sections.py`

Combinations that a player cannot play (some need a short delay, or the law of delays) are left out.
"""

import itertools
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aftereffect.core import checks
from aftereffect.core.errors import AftereffectError, InvalidArgument
from aftereffect.studies.cells import Cell, can_play, cell_id, instance_table, own, player_table

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from aftereffect.studies.results import Results

BUILTIN = Path(__file__).parent / "builtin"
QUICK = frozenset(("title", "about", "report", "seed", "runs", "instances", "checkpoints", "measure"))
QUICK |= {"grid", "instance", "player"}
KEYS = QUICK | {"name", "quick"}
INSTANCE_KEYS = ("label", "grid")
PLAYER_KEYS = ("label", "grid", "on", "runs", "max_delay")
"""Keys of an instance's or a player's table that are not settings."""
LEAST = {"n_arms": 2, "max_delay": 0, "horizon": 1, "n_units": 1}
"""The lists of a grid, with the smallest value each may contain; the last one may be left out, and is then [1]."""


class InvalidStudy(InvalidArgument):
    """A study breaks a rule; the message names the file (if any), the key, the rule and the value."""


def builtin_names() -> list[str]:
    """Return the names of the built-in studies."""
    return sorted(path.stem for path in BUILTIN.glob("*.toml"))


class StudyEntry(NamedTuple):
    """An instance or player of a study: its name and settings, its label, and where it is used.

    grid: for an instance, lists that replace those of the grid; for a player, the only sizes at which it plays.
    For players: on, names or labels of its instances, None for all; runs, the maximal number of runs; max_delay, the d
    given to the player, None for that of the losses.
    """

    settings: dict[str, Any]
    label: str
    grid: dict[str, list[int]]
    on: Sequence[str] | None = None
    runs: int | None = None
    max_delay: int | None = None


class Study:
    """A study: `cells()` lists what to simulate, `run(folder)` simulates it.

    instance, player: tables as in a file, each with a name and settings. grid: a dict of lists, or several.
    instances: how many times the losses are drawn; runs are divided evenly over the draws.

    >>> study = Study("mine", grid={"n_arms": [2, 4], "max_delay": [3], "horizon": [1000]}, runs=10,
    ...               instance=[{"name": "split"}], player=[{"name": "CompositeLossWrapper"}, {"name": "CLW2018"}])
    >>> len(study.cells())
    4
    """

    def __init__(
        self,
        name: str,
        *,
        grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        instance: Sequence[Mapping[str, Any]],
        player: Sequence[Mapping[str, Any]],
        title: str = "",
        about: str = "",
        seed: int = 0,
        runs: int = 100,
        instances: int = 1,
        checkpoints: Any = "log",
        measure: str = "regret",
        report: Mapping[str, Any] | None = None,
        quick: bool = False,
    ) -> None:
        self.name: str = _typed("name", name, str)
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", self.name) is None:
            raise InvalidStudy(f"name must consist of letters, digits, - and _, but got {checks.shown(name)}")
        self.title, self.about = _typed("title", title, str) or self.name, _typed("about", about, str)
        self.seed = checks.integer("seed", seed, low=0, high=2**63 - 1)
        self.runs = checks.integer("runs", runs, low=1)
        self.instances = checks.integer("instances", instances, low=1)
        self.measure: str = _typed("measure", measure, str)
        if self.measure != "regret":
            own("measure", self.measure, "Measure")
        self.report = dict(_typed("report", {} if report is None else report, Mapping))
        self.quick = bool(quick)
        self.source: str | None = None
        if isinstance(checkpoints, str):
            checks.choice("checkpoints", checkpoints, ("log", "linear"))
        elif isinstance(checkpoints, Sequence):
            checkpoints = _numbers("checkpoints", checkpoints, 1)
        else:
            checks.integer("checkpoints", checkpoints, low=1)
        self.checkpoints = checkpoints
        grids = [_lists("grid", one, whole=True) for one in ([grid] if isinstance(grid, Mapping) else grid)]
        if not grids:
            raise InvalidStudy(f"grid must hold at least one grid, but got {checks.shown(grid)}")
        places = _entries("instance", instance, INSTANCE_KEYS, instance_table)
        players = _entries("player", player, PLAYER_KEYS, player_table)
        for name, each in (("runs", self.runs), *(("player.runs", one.runs) for one in players)):
            if each is not None and min(each, self.runs) % self.instances:
                raise InvalidStudy(f"{name} must be a multiple of instances, {self.instances}, but got {each}")
        self._cells: dict[str, Cell] = {}
        for one in players:
            cells = [cell for place in places for lists in grids for cell in self._expand(one, place, lists)]
            if not cells:
                every = [{**lists, **place.grid} for lists in grids for place in places]
                sizes = {name: sorted({size for lists in every for size in lists.get(name, [1])}) for name in LEAST}
                raise InvalidStudy(
                    f"player {one.label!r} must be able to play in at least one cell, but there is none: its instances "
                    f"(on) are {one.on or 'all'} of {[place.label for place in places]}, its sizes (grid) "
                    f"{one.grid or 'all'} of {sizes}"
                )
            self._cells |= {cell_id(cell): cell for cell in cells}

    @classmethod
    def load(cls, source: str | Path, quick: bool = False) -> "Study":
        """Read a study from a TOML file, or a built-in study by its name.

        The folder of the file is searched for modules that it names ("module:function").
        """
        path = Path(source)
        if not path.is_file() and isinstance(source, str) and source in builtin_names():
            path = BUILTIN / f"{source}.toml"
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            if path.parent != BUILTIN and str(path.parent.resolve()) not in sys.path:
                # Code of one's own may lie beside the file. The processes of an executor inherit the path.
                sys.path.append(str(path.parent.resolve()))
            study = cls.from_table(table, quick)
            study.source = str(source)
            return study
        except FileNotFoundError:
            names = ", ".join(builtin_names())
            raise InvalidStudy(f"study must be a file or one of {names}, but got {str(source)!r}") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidStudy(f"{path}: must be a readable TOML file, but {error}") from None
        except AftereffectError as error:
            raise InvalidStudy(f"{path}: {error}") from None

    @classmethod
    def from_table(cls, given: Mapping[str, Any], quick: bool = False) -> "Study":
        """Create a study from the contents of a TOML file."""
        given = dict(given)
        override = dict(_typed("quick", given.pop("quick", {}), Mapping))
        for where, found, known in (("", given, KEYS), ("quick.", override, QUICK)):
            if unknown := sorted(found.keys() - known):
                listed = ", ".join(sorted(known))
                raise InvalidStudy(f"{where}{unknown[0]} must be a key of a study ({listed}), but it is not")
        if quick:
            lists, grid = _typed("quick.grid", override.pop("grid", {}), Mapping), given.get("grid", {})
            if isinstance(given.get("player"), list):
                given["player"] = [_without(one, lists) for one in given["player"]]
            given |= override
            given["grid"] = {**grid, **lists} if isinstance(grid, Mapping) else [{**one, **lists} for one in grid]
        for key in ("name", "grid", "instance", "player"):
            if key not in given:
                raise InvalidStudy(f"{key} must be given, but it is missing")
        return cls(quick=quick, **given)

    def cells(self) -> list[Cell]:
        """Return all cells, without duplicates, in the order of the file."""
        return [dict(cell) for cell in self._cells.values()]

    def run(
        self,
        folder: str | Path,
        executor: "Executor | None" = None,
        progress: "bool | Callable[[int, int], None] | None" = None,
        *,
        threads: int | None = None,
        workers: int | None = None,
        engine: str = "auto",
    ) -> "Results":
        """Simulate the cells that are not in the folder yet, and return all results; see `run.run_cells`."""
        checks.optional("polars", "a study", "studies")
        from aftereffect.studies.run import run_cells

        return run_cells(self.cells(), folder, executor, progress, threads=threads, workers=workers, engine=engine)

    def results(self, folder: str | Path) -> "Results":
        """Return the results of this study in the folder, without simulating."""
        checks.optional("polars", "a study", "studies")
        from aftereffect.studies.results import Folder

        return Folder(folder).results(self.cells())

    def _expand(self, player: StudyEntry, instance: StudyEntry, grid: dict[str, list[int]]) -> Iterator[Cell]:
        """Yield the cells of one player on one instance and grid, at the sizes it is to play and can play."""
        if player.on is not None and not {instance.label, instance.settings["name"]} & set(player.on):
            return
        lists = {**grid, **instance.grid}
        for values in itertools.product(*(lists.get(name, [1]) for name in LEAST)):
            sizes = dict(zip(LEAST, values, strict=True))
            if any(sizes[name] not in listed for name, listed in player.grid.items()):
                continue
            runs = self.runs if player.runs is None else min(player.runs, self.runs)
            if sizes["n_units"] == 1:
                del sizes["n_units"]
            cell: Cell = {"measure": self.measure, "instance": instance.settings, "player": player.settings, **sizes}
            cell |= {"runs": runs, "instances": self.instances, "seed": self.seed, "checkpoints": self.checkpoints}
            if player.max_delay not in (None, sizes["max_delay"]):
                cell["player_max_delay"] = player.max_delay
            if can_play(cell):
                yield cell

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {len(self._cells)} cells{', quick' if self.quick else ''})"


def _typed(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise InvalidStudy(f"{name} must be {'text' if kind is str else 'a table'}, but got {checks.shown(value)}")
    return value


def _entries(
    kind: str, value: Any, keys: Sequence[str], checked: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> list[StudyEntry]:
    """Return the instances or players of a list of tables."""
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or not value:
        raise InvalidStudy(f"{kind} must be a list of tables, but got {checks.shown(value)}")
    found = []
    for given in value:
        rest = dict(_typed(kind, given, Mapping))
        extra = {key: rest.pop(key, None) for key in keys}
        settings = checked(rest)
        shown = ", ".join(f"{key} {setting}" for key, setting in settings.items() if key != "name")
        label = settings["name"] + (f" ({shown})" if shown else "") if extra["label"] is None else extra["label"]
        grid = _lists(f"{kind}.grid", {} if extra["grid"] is None else extra["grid"])
        on = [extra["on"]] if isinstance(extra.get("on"), str) else extra.get("on")
        for name in on or ():
            _typed(f"{kind}.on", name, str)
        for key, low in (("runs", 1), ("max_delay", 0)):
            if extra.get(key) is not None:
                checks.integer(f"{kind}.{key}", extra[key], low=low)
        label = _typed(f"{kind}.label", label, str)
        found.append(StudyEntry(settings, label, grid, on, extra.get("runs"), extra.get("max_delay")))
    return found


def _without(given: Any, lists: Mapping[str, Any]) -> Any:
    """Return a player's table without these lists of its grid; anything else as it is."""
    if not isinstance(given, Mapping) or not isinstance(given.get("grid"), Mapping):
        return given
    return {**given, "grid": {name: sizes for name, sizes in given["grid"].items() if name not in lists}}


def _numbers(name: str, value: Any, low: int) -> list[int]:
    """Return a whole number or a non-empty list of distinct whole numbers as a list."""
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = [checks.integer(name, number, low=low) for number in listed]
    if not found or len(set(found)) < len(found):
        raise InvalidStudy(f"{name} must hold at least one number, without repetitions, but got {checks.shown(value)}")
    return found


def _lists(name: str, value: Any, whole: bool = False) -> dict[str, list[int]]:
    """Return the given lists of a grid by name. whole: whether all of them are required."""
    given = _typed(name, value, Mapping)
    for key in (*given, *(LEAST if whole else ())):
        if key not in LEAST:
            raise InvalidStudy(f"{name}.{key} must be one of {', '.join(LEAST)}, but it is not")
        if key not in given and key != "n_units":
            raise InvalidStudy(f"{name}.{key} must be given, but it is missing")
    return {key: _numbers(f"{name}.{key}", given[key], low) for key, low in LEAST.items() if key in given}
