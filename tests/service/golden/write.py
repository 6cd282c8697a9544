"""Write the golden store: `python -m tests.service.golden.write`, until the first release; from then on it is frozen.

`store.db.gz` is a small store as this version writes it: every player, every kind of event and of round. `future.json`
has what its experiments played next, when this version went on with a copy. Written again, `future.json` stays as it is
unless what experiments play has changed.
"""

import datetime
import gzip
import itertools
import json
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from aftereffect.service.experiment import commands
from aftereffect.service.store.store import Store

HERE = Path(__file__).parent
STORE, FUTURE = HERE / "store.db.gz", HERE / "future.json"
ROUNDS = 25
"""How many rounds are played after what is stored."""
BASE: dict[str, Any] = {"arms": ["letter", "email", "nothing"], "high": 10, "max_delay": 2}


def opened(file: Path) -> Store:
    """Open a store whose clock advances by six hours with each command."""
    store, ticks = Store.open(f"sqlite:///{file}"), itertools.count()
    begun = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def now() -> str:
        return (begun + datetime.timedelta(hours=6 * next(ticks))).isoformat(timespec="milliseconds")[:-6] + "Z"

    store.now = now
    return store


def play(store: Store, id: str, rounds: int) -> list[list[Any]]:
    """Play rounds with totals that depend on arm and round; return unit, arm and probability of each."""
    played = []
    for _ in range(rounds):
        asked = store.perform(id, commands.Ask())
        number, arms = asked["round"], asked.get("arms") or {asked["unit"]: asked["arm"]}
        for unit, arm in arms.items():
            told = store.perform(id, commands.Tell(number, float(2 * len(arm) % 7 + number % 3), unit))
            played.append([unit, arm, told["probability"]])
    return played


def do(store: Store, id: str, *commands: commands.Command) -> None:
    for command in commands:
        store.perform(id, command)


def write(store: Store) -> None:
    """Fill a store."""
    one = store.create({"name": "Mailings", "seed": 1, **BASE}, key="golden").id
    play(store, one, 30)
    last = store.perform(one, commands.Ask())["round"]
    do(store, one, commands.Tell(last, 99.0), commands.Amend(last, 3.0), commands.Amend(4, 9.0))
    do(store, one, commands.Note(5, "holiday"), commands.Note(last, "fair"))
    do(store, one, commands.Ask(), commands.Tell(last + 1, None), commands.Ask(), commands.Tell(last + 2, -9.0))
    do(store, one, commands.Away("letter"))
    play(store, one, 25)
    do(store, one, commands.Back("letter"))
    # An arm that goes away and comes back within its block.
    while (row := store.perform(one, commands.Ask()))["draw"]:
        store.perform(one, commands.Tell(row["round"], 1.0))
    do(store, one, commands.Tell(row["round"], 1.0), commands.Away(row["arm"]))
    play(store, one, 1)
    do(store, one, commands.Back(row["arm"]))
    play(store, one, 5)
    open_round = store.perform(one, commands.Ask())["round"]
    do(store, one, commands.Pause(), commands.Resume(), commands.Tell(open_round, 2.0))
    play(store, one, 10)
    store.remind(one, "sales", 0.5)
    store.correct(one, {"high": 20, "name": "Mailings, corrected"})
    paper = {"player": "paper", "horizon": 500, "out_of_range": "clip"}
    two = store.create({"name": "As published", "seed": 2, **BASE, **paper}).id
    play(store, two, 40)
    do(store, two, commands.Ask(), commands.Tell(41, 99.0))
    three = {"units": ["north", "south"], "start_date": "2026-01-01", "direction": "minimize", "low": -1}
    play(store, store.create({"name": "Regions", "seed": 3, **BASE, **three}).id, 40)
    four = store.create({"name": "Many arms", "seed": 4, **BASE, "arms": [f"arm {i}" for i in range(17)]}).id
    play(store, four, 60)
    store.continue_with(four, ["arm 17"], ["arm 0"], {"seed": 3051077545980764})
    half_life = {"carry_over": {"half_life": "2 days"}, "max_delay": None, "draft": True}
    five = store.create({"name": "Draft", "seed": 5, **BASE, **half_life}).id
    do(store, five, commands.Start(), commands.Ask(), commands.Finish())
    model = {"arms": BASE["arms"], "units": ["north", "south"]}
    six = store.create({"name": "Model", "seed": 6, **model}).id
    play(store, six, 20)
    do(store, six, commands.Away("email"))
    play(store, six, 5)
    do(store, six, commands.Back("email"), commands.Ask(), commands.Pause(), commands.Resume())
    play(store, six, 10)
    do(store, six, commands.Amend(3, 4.0, "south"))
    store.continue_with(six, ["poster"], changes={"seed": 761039561538367})
    seven = store.create({"name": "One model", "seed": 7, "arms": BASE["arms"]}).id
    play(store, seven, 20)
    store.continue_with(seven, changes={"max_delay": 1, "high": 10, "seed": 6001981601786336})
    store.create_token("till", ["play"])


def go_on(file: Path) -> dict[str, Any]:
    """Return what the running experiments of a store play next."""
    with opened(file) as store:
        running = store.experiments(state="running")["items"]
        return {one["name"]: play(store, one["id"], ROUNDS) for one in running}


def main() -> None:
    """Write both files."""
    with tempfile.TemporaryDirectory() as folder:
        file, compact = Path(folder) / "store.db", Path(folder) / "compact.db"
        with opened(file) as store:
            write(store)
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM INTO ?", (str(compact),))
        STORE.write_bytes(gzip.compress(compact.read_bytes(), mtime=0))
        FUTURE.write_text(json.dumps(go_on(compact), indent=None) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
