"""The writer: at most one cell between memory and disk, nothing counted before it is safe, errors raised."""

import threading
from pathlib import Path
from typing import Any

import pytest

from aftereffect.studies import FolderUnusable, Study
from aftereffect.studies import work as work_module
from aftereffect.studies.measure import SCHEMA, Columns
from aftereffect.studies.store import Store
from aftereffect.studies.work import Done
from aftereffect.studies.writer import Writer

IDS = [letter * 16 for letter in "abc"]
KINDS: dict[str, Any] = {"str": "x", "i64": 1, "f64": 0.5}
PATIENCE = 30.0


def done(cell: str) -> Done:
    rows: Columns = {name: [KINDS[kind]] for name, kind in SCHEMA.items()} | {"cell": [cell]}
    return Done(cell, rows, {"cell": cell, "seconds": 1.0, "started": "2024-01-01T00:00:00+00:00"}, None)


class SlowStore(Store):
    """A store whose disk answers when it is allowed to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.started, self.allowed = threading.Semaphore(0), threading.Semaphore(0)

    def put(self, cell: str, rows: Columns, time: dict[str, Any]) -> None:
        self.started.release()
        assert self.allowed.acquire(timeout=PATIENCE)
        super().put(cell, rows, time)


def test_a_cell_counts_when_it_is_on_disk_and_the_next_waits_for_it(tmp_path: Path) -> None:
    store = SlowStore(tmp_path)
    safe: list[str] = []

    def checked(cell: str) -> None:
        assert cell in store.finished()
        safe.append(cell)

    with store.locked(), Writer(store, checked) as writer:
        writer.keep(done(IDS[0]))
        assert store.started.acquire(timeout=PATIENCE)
        # The caller goes on while the disk is busy, and nothing counts yet.
        assert (safe, store.finished()) == ([], set())
        second = threading.Thread(target=writer.keep, args=(done(IDS[1]),))
        second.start()
        # It cannot be handed over before the first is safe.
        assert not store.started.acquire(timeout=0.05)
        store.allowed.release()
        second.join(PATIENCE)
        assert safe == IDS[:1]
        store.allowed.release()
        writer.keep(done(IDS[2]))
        store.allowed.release()
    assert safe == IDS
    assert store.finished() == set(IDS)


def test_leaving_by_an_error_keeps_what_is_in_hand(tmp_path: Path) -> None:
    store, safe = Store(tmp_path), list[str]()

    def interrupted() -> None:
        with store.locked(), Writer(store, safe.append) as writer:
            writer.keep(done(IDS[0]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (safe, store.finished()) == (IDS[:1], {IDS[0]})


def test_an_error_of_the_disk_reaches_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[str] = []
    real = work_module.measure

    def counted(cell: Any, draws: Any, threads: int) -> Any:
        simulated.append(cell["player"]["name"])
        return real(cell, draws, threads)

    def full(self: Store, *given: Any) -> None:
        raise FolderUnusable("folder must be one that can be written to")

    monkeypatch.setattr(work_module, "measure", counted)
    monkeypatch.setattr(Store, "put", full)
    study = Study(
        "mine",
        grid={"n_arms": 2, "max_delay": [0, 1, 2], "horizon": 50},
        instances=[{"name": "split"}],
        players=[{"name": "uniform"}],
        runs=2,
    )
    with pytest.raises(FolderUnusable, match="can be written to"):
        study.run(tmp_path, progress=False)
    # The first is refused while the second is simulated; the third is never begun.
    assert len(simulated) == 2


def test_rows_that_cannot_be_made_are_a_failure_of_their_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = work_module.summary

    def failing(cell: Any, played: Any) -> Any:
        if cell["max_delay"] == 0:
            raise RuntimeError("no sum")
        return real(cell, played)

    monkeypatch.setattr(work_module, "summary", failing)
    sizes = {"n_arms": 2, "max_delay": [0, 1], "horizon": 50}
    players = [{"name": "uniform"}]
    study = Study("mine", grid=sizes, instances=[{"name": "split"}], players=players, runs=2)
    results = study.run(tmp_path, progress=False)
    assert results.finished == 1
    assert [failure["message"] for failure in results.failures.values()] == ["no sum"]
