"""A study: instances × players × grids of (K, d, T), as one TOML file or from Python; both take the same keys.

    name = "mine"                       # letters, digits, - and _
    title = "..."                       # optional, as are about, seed (0), runs (100), instances (1),
    measure = "regret"                  # checkpoints ("log") and measure
    [grid]                              # every combination; [[grid]] for several grids
    n_arms = [2, 8]
    max_delay = [0, 3]
    horizon = [10_000]
    [[instance]]                        # settings: see `settings.py`
    name = "split"
    gap = 0.2
    grid = { horizon = [1000] }         # optional: this instance's own lists
    [[player]]
    name = "wrapper"
    base = "exp3"
    label = "wrapped Exp3"              # optional, here and in [[instance]]: for the report, no part of a cell
    on = ["split"]                      # optional: only on instances of these names or labels
    grid = { horizon = [10_000] }       # optional: only at these sizes
    runs = 40                           # optional: at most so many
    max_delay = 3                       # optional: the d it reckons with; or max_delay_factor, times the losses' d
    [quick]                             # optional: what --quick puts in place of the above
    runs = 20
    grid = { horizon = [1000] }         # lists named here replace those of every grid
    [report]                            # optional, for the report

Players that have no room on an instance (they need a short delay, or the law of delays) are left out there.
"""

import itertools
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aftereffect.core import checks
from aftereffect.core.errors import AftereffectError
from aftereffect.studies.cells import MEASURES, Cell, cell_id, player_words, split_name
from aftereffect.studies.entrants import has_room
from aftereffect.studies.errors import InvalidStudy
from aftereffect.studies.parse import entry, grids, points, table, text

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from aftereffect.studies.results import Results

BUILTIN = Path(__file__).parent / "builtin"
QUICK = frozenset(("seed", "runs", "instances", "checkpoints", "measure", "grid", "instance", "player"))
KEYS = QUICK | {"name", "title", "about", "quick", "report"}


def builtin_names() -> list[str]:
    """Return the names of the studies that come with the package."""
    return sorted(path.stem for path in BUILTIN.glob("*.toml"))


class Study:
    """What to simulate: `cells()` says it cell by cell, `run(folder)` does it.

    instances, players: tables as in a file, each with a name and settings; `on`, `label` and the rest too.
    grid: a dict of lists, or several. draws: the file's `instances`, how often losses are drawn anew.

    >>> study = Study("mine", grid={"n_arms": [2, 4], "max_delay": [3], "horizon": [1000]}, runs=10,
    ...               instances=[{"name": "split"}], players=[{"name": "wrapper"}, {"name": "uniform"}])
    >>> len(study.cells())
    4
    """

    def __init__(
        self,
        name: str,
        *,
        grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        instances: Sequence[Mapping[str, Any]],
        players: Sequence[Mapping[str, Any]],
        title: str = "",
        about: str = "",
        seed: int = 0,
        runs: int = 100,
        draws: int = 1,
        checkpoints: Any = "log",
        measure: str = "regret",
        report: Mapping[str, Any] | None = None,
        quick: bool = False,
    ) -> None:
        """Check everything that can be checked without simulating."""
        self.name = text("name", name)
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", self.name) is None:
            raise InvalidStudy(f"name must be made of letters, digits, - and _, but got {checks.shown(name)}")
        self.title, self.about = text("title", title) or self.name, text("about", about)
        self.seed = checks.integer("seed", seed, low=0, high=2**63 - 1)
        self.runs = checks.integer("runs", runs, low=1)
        self.draws = checks.integer("instances", draws, low=1)
        if self.runs % self.draws:
            raise InvalidStudy(f"runs must be a multiple of instances, {self.draws}, but got {self.runs}")
        self.checkpoints = points(checkpoints)
        self.measure = checks.choice("measure", measure, MEASURES)
        self.report = dict(table("report", {} if report is None else report))
        self.quick = bool(quick)
        self.grids = grids("grid", grid)
        self.instances = [entry("instance", given) for given in _entries("instance", instances)]
        self.players = [entry("player", given) for given in _entries("player", players)]
        for player in self.players:
            if player.runs is not None and min(player.runs, self.runs) % self.draws:
                raise InvalidStudy(f"player.runs must be a multiple of instances, {self.draws}, but got {player.runs}")
        self._cells = self._expand()

    @classmethod
    def load(cls, source: str | Path, quick: bool = False) -> "Study":
        """Read a study from a TOML file, or by name one that comes with the package."""
        path = Path(source)
        if not path.is_file() and isinstance(source, str) and source in builtin_names():
            path = BUILTIN / f"{source}.toml"
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
            return cls.from_table(given, quick)
        except FileNotFoundError:
            names = ", ".join(builtin_names())
            raise InvalidStudy(f"study must be a file or one of {names}, but got {str(source)!r}") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InvalidStudy(f"{path}: must be a readable TOML file, but {error}") from None
        except AftereffectError as error:
            raise InvalidStudy(f"{path}: {error}") from None

    @classmethod
    def from_table(cls, given: Mapping[str, Any], quick: bool = False) -> "Study":
        """Make a study from what a TOML file holds."""
        given = _known_keys("", given, KEYS)
        override = _known_keys("quick.", table("quick", given.pop("quick", {})), QUICK)
        if quick:
            lists = override.pop("grid", None)
            given |= override
            if lists is not None:
                given["grid"] = _replaced(given.get("grid", {}), table("quick.grid", lists))
        for key in ("name", "grid", "instance", "player"):
            if key not in given:
                raise InvalidStudy(f"{key} must be given, but it is missing")
        renamed = {"instances": "draws", "instance": "instances", "player": "players"}
        return cls(quick=quick, **{renamed.get(key, key): value for key, value in given.items()})

    def cells(self) -> list[Cell]:
        """Return all cells, no two the same, in the order of the file."""
        return [dict(cell) for cell in self._cells]

    def labels(self, kind: str) -> dict[tuple[str, str], str]:
        """Return the labels of instances or players, by the name and settings (as in rows) they stand for."""
        checks.choice("kind", kind, ("instance", "player"))
        if kind == "instance":
            return {split_name(given.settings): given.label for given in self.instances}
        # A player with a d of its own may in some cells be the same as one without: then that one's label counts.
        ordered = sorted(self.players, key=lambda player: player.max_delay is not None or player.factor is not None)
        found: dict[tuple[str, str], str] = {}
        for player in ordered:
            for instance in filter(player.plays, self.instances):
                for cell in self._of(player, instance):
                    found.setdefault(player_words(cell), player.label)
        return found

    def run(
        self,
        folder: str | Path,
        executor: "Executor | None" = None,
        progress: "bool | Callable[[int, int], None] | None" = None,
        *,
        threads: int | None = None,
        workers: int | None = None,
    ) -> "Results":
        """Simulate what is not yet in the folder, and return all rows; see `runner.run_study`."""
        from aftereffect.studies.runner import run_study

        _need_polars()
        return run_study(self, folder, executor, progress, threads=threads, workers=workers)

    def results(self, folder: str | Path) -> "Results":
        """Return what the folder holds of this study, without simulating."""
        from aftereffect.studies.results import read_results

        _need_polars()
        return read_results(self, folder)

    def _expand(self) -> list[Cell]:
        found: dict[str, Cell] = {}
        for player in self.players:
            fits = [given for given in self.instances if player.plays(given)]
            mine = [cell for given in fits for cell in self._of(player, given) if has_room(cell)]
            if not mine:
                raise InvalidStudy(f"player {player.label!r} must have room in some cell, but there is none")
            found |= {cell_id(cell): cell for cell in mine}
        return list(found.values())

    def _of(self, player: Any, instance: Any) -> list[Cell]:
        cells = []
        for lists in self.grids:
            full = {**lists, **instance.grid}
            for K, d, T in itertools.product(full["n_arms"], full["max_delay"], full["horizon"]):
                if not player.has(n_arms=K, max_delay=d, horizon=T):
                    continue
                runs = self.runs if player.runs is None else min(player.runs, self.runs)
                cell: Cell = {"measure": self.measure, "instance": instance.settings, "player": player.settings}
                cell |= {"n_arms": K, "max_delay": d, "horizon": T, "runs": runs, "instances": self.draws}
                cell |= {"seed": self.seed, "checkpoints": self.checkpoints}
                reckoned = player.reckons(d)
                cells.append(cell if reckoned == d else cell | {"player_max_delay": reckoned})
        return cells

    def __repr__(self) -> str:
        """Name the study and its size."""
        return f"Study({self.name!r}, {len(self._cells)} cells{', quick' if self.quick else ''})"


def _need_polars() -> None:
    if find_spec("polars") is None:
        raise InvalidStudy("studies need the package polars: pip install 'aftereffect[studies]'")


def _entries(name: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence) or not given:
        raise InvalidStudy(f"{name} must be a list of tables, but got {checks.shown(given)}")
    return list(given)


def _known_keys(where: str, given: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    unknown = sorted(given.keys() - known)
    if unknown:
        listed = ", ".join(sorted(known))
        raise InvalidStudy(f"{where}{unknown[0]} must be a key of a study ({listed}), but it is not")
    return dict(given)


def _replaced(grid: Any, lists: Mapping[str, Any]) -> Any:
    return [{**one, **lists} for one in grid] if isinstance(grid, list) else {**table("grid", grid), **lists}
