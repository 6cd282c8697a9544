"""`load_example`: small tables to try things on. They were made by the rules below, and lie in `examples/`.

    stores      a pilot: 12 stores, 120 days; each store plays a campaign for 4 days at a time, drawn at random. A play
                adds its effect over 8 days on top of the level of the store, a weekly season and noise; 16 totals are
                missing. The whole effects of none, email, letter and visit are 0, 30, 60 and 45; half of an email's
                effect arrives on the first day, a letter's peaks after three days.
    mailings    recorded plays: 40 weeks, three mailings in each of them (to different people), and what they brought
                0, 1, 2 and 3 weeks later
    adstock     curves of three channels as Meridian's `Analyzer.adstock_decay()` returns them, of a weekly model
"""

import csv
from datetime import date
from pathlib import Path
from typing import Any

from aftereffect.core import checks
from aftereffect.core.errors import MissingExtra

EXAMPLES = ("stores", "mailings", "adstock")
FOLDER = Path(__file__).parents[1] / "examples"
READ: dict[str, Any] = {
    "date": date.fromisoformat, "week": date.fromisoformat,
    **dict.fromkeys(("store", "campaign", "mailing", "channel", "distribution"), str),
}  # fmt: skip
"""How the cells of a column are read; those of the others are numbers."""


def load_example(name: str, library: str | None = None) -> Any:
    """Return an example table: "stores", "mailings" or "adstock".

    library: "pandas", "polars" or "pyarrow"; by default the first of them that is installed.

    >>> load_example("stores", "polars").shape, load_example("mailings", "polars").columns
    ((1440, 4), ['week', 'mailing', 'lag0', 'lag1', 'lag2', 'lag3'])
    """
    path = FOLDER / f"{checks.choice('name', name, EXAMPLES)}.csv"
    header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
    columns = {
        column: [READ.get(column, float)(cell) if cell else None for cell in cells]
        for column, cells in zip(header, zip(*rows, strict=True), strict=True)
    }
    import narwhals

    make: Any = narwhals.from_dict
    libraries = ("pandas", "polars", "pyarrow")
    tried = libraries if library is None else (checks.choice("library", library, libraries),)
    for each in tried:
        try:
            return make(columns, backend=each).to_native()
        except ModuleNotFoundError:
            continue
    raise MissingExtra(f"load_example needs {' or '.join(tried)}: pip install {tried[0]}")
