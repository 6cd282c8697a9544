"""The folder of a study: nothing half-written is ever seen, nothing finished is ever lost."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import aftereffect
from aftereffect.studies import FolderUnusable, results
from aftereffect.studies.cells import Cell, cell_id
from aftereffect.studies.measure import ROWS
from aftereffect.studies.results import Finished, Folder, write_durably

CELLS: list[Cell] = [{"seed": seed} for seed in range(3)]
A, B, C = map(cell_id, CELLS)
VALUES: dict[pl.DataType, Any] = {pl.String(): "x", pl.Int64(): 1, pl.Float64(): 0.5}


def finished(cell: str, seconds: float = 1.0) -> Finished:
    """Return a cell of two rows, the later round first."""
    columns = {name: [VALUES[kind]] * 2 for name, kind in ROWS.items()}
    rows = pl.DataFrame(columns | {"cell": [cell] * 2, "round": [20, 10], "value": [None, None]}, schema=ROWS)
    time = {"cell": cell, "seconds": seconds, "started": "2024-01-01T00:00:00+00:00", "numpy": "2"}
    return Finished(cell, rows, time, None)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "study")
    with made.locked():
        assert made.put(finished(B)) == B
        made.put(finished(A, 2.0))
    return made


def full(number: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
def test_what_was_put_comes_back_in_the_order_of_the_study(folder: Folder, order: tuple[int, ...]) -> None:
    found = folder.results([CELLS[k] for k in order])
    ids = [cell for cell in ((A, B, C)[k] for k in order) if cell != C]
    assert found.rows["cell"].to_list() == [ids[0], ids[0], ids[1], ids[1]]
    assert found.rows["round"].to_list() == [10, 20, 10, 20]
    assert found.rows["value"].null_count() == 4
    assert found.rows.columns == list(ROWS)
    assert dict(found.times.select("cell", "seconds").iter_rows()) == {A: 2.0, B: 1.0}
    assert found.times["cell"].to_list() == ids
    assert (found.finished, found.missing, found.failures) == (2, [C], {})
    assert folder.finished() == {A, B}


def test_the_time_left_follows_from_cells_of_the_same_player(tmp_path: Path) -> None:
    sizes = {"runs": 10, "horizon": 100}
    slow, quick, new = ({"player": {"name": name}} | sizes for name in "abc")
    cells: list[Cell] = [one | {"seed": seed} for one in (slow, quick, new) for seed in range(2)]
    made = Folder(tmp_path / "study")
    # Nothing is known: 6 cells of 1,000 rounds.
    assert made.results(cells).seconds_left(cells) == (pytest.approx(6_000 * results.GUESS), False)
    assert made.results(cells).time_left(cells).endswith("and compiling (a guess until cells are finished)")
    with made.locked():
        made.put(finished(cell_id(cells[0]), 8.0))
        made.put(finished(cell_id(cells[2]), 2.0))
    # One of a player with 8 s, one of a player with 2 s, two of a player not seen yet: with the mean, 5 s.
    assert made.results(cells).seconds_left(cells) == (pytest.approx(8.0 + 2.0 + 2 * 5.0), True)
    assert made.results(cells).time_left(cells, at_once=2) == "at most about 10 seconds"
    # The first cell of a player included compiling: the next one tells.
    more = [*cells, slow | {"seed": 2}]
    with made.locked():
        made.put(finished(cell_id(cells[1]), 0.5))
    assert made.results(more).seconds_left(more)[0] == pytest.approx(0.5 + 2.0 + 2 * (0.5 + 2.0) / 2)
    assert made.results(more[:2] + more[6:]).time_left(more[:2] + more[6:]) == "under 2 seconds"


def test_an_empty_folder_is_an_empty_study(tmp_path: Path) -> None:
    empty = Folder(tmp_path / "none").results(CELLS)
    assert (len(empty.rows), len(empty.times), empty.failures, empty.missing) == (0, 0, {}, [A, B, C])
    assert not (tmp_path / "none").exists()


def test_unfinished_files_are_ignored_and_removed(folder: Folder) -> None:
    unfinished = folder.path / "cells" / f".{C}.parquet.99.tmp"
    unfinished.write_bytes(b"PAR1 and no more")
    assert folder.finished() == {A, B}
    assert folder.results(CELLS).finished == 2
    with folder.locked():
        assert not unfinished.exists()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_durably(path, b"first")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FolderUnusable, match="No space left"):
        write_durably(path, b"second")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"first"


def test_the_file_is_synced_before_it_has_its_name_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    sync, replace = os.fsync, Path.replace

    def fsync(number: int) -> None:
        seen.append("folder" if os.path.isdir(f"/proc/self/fd/{number}") else "file")
        sync(number)

    def rename(path: Path, target: Path) -> Path:
        seen.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", rename)
    write_durably(tmp_path / "file", b"all")
    assert seen == ["file", "rename", "folder"]


def test_a_full_disk_is_a_clear_error(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FolderUnusable, match=r"must be writable, but writing .* failed: No space left on device"):
        folder.put(finished(C))
    assert folder.finished() == {A, B}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    refused = pytest.raises(FolderUnusable, match="folder must be writable")
    with refused, Folder(tmp_path / "file" / "study").locked():
        raise AssertionError("it must not be locked")


def test_failures_are_forgotten_once_the_cell_is_finished(folder: Folder) -> None:
    folder.put(Finished(C, None, {}, {"error": "ValueError", "message": "no", "traceback": []}))
    found = folder.results(CELLS)
    assert (found.failures[C]["message"], found.missing) == ("no", [])
    assert C not in folder.finished()
    folder.put(finished(C))
    assert folder.results(CELLS).failures == {}


def test_one_run_at_a_time_in_this_process(folder: Folder) -> None:
    refused = pytest.raises(FolderUnusable, match="must not be in use by another run")
    with folder.locked(), refused, Folder(folder.path).locked():
        raise AssertionError("it must not be locked twice")
    with folder.locked():
        pass


def test_one_run_at_a_time_in_another_process(folder: Folder) -> None:
    code = f"from {results.__name__} import Folder\nwith Folder({str(folder.path)!r}).locked(): print('in')"
    package = str(Path(aftereffect.__file__).resolve().parent.parent)
    child: dict[str, Any] = {"env": os.environ | {"PYTHONPATH": package}, "text": True, "capture_output": True}
    with folder.locked():
        refused = subprocess.run([sys.executable, "-c", code], timeout=300, **child)
    allowed = subprocess.run([sys.executable, "-c", code], timeout=300, **child)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "must not be in use by another run" in refused.stderr
    assert (allowed.returncode, allowed.stdout) == (0, "in\n")


def test_a_file_that_cannot_be_read_is_named(folder: Folder) -> None:
    (folder.path / "cells" / f"{A}.parquet").write_bytes(b"rubbish")
    with pytest.raises(FolderUnusable, match=f"{A}.parquet must be a readable Parquet file"):
        folder.results(CELLS)


@pytest.mark.parametrize("cells", [[A], [A, B]])
def test_files_of_another_version_are_refused(folder: Folder, cells: list[str]) -> None:
    for cell in cells:
        pl.DataFrame({"cell": [cell]}).write_parquet(folder.path / "cells" / f"{cell}.parquet")
    with pytest.raises(FolderUnusable, match="must hold cells with the columns of this version"):
        folder.results(CELLS)
