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
from aftereffect.studies import FolderUnusable
from aftereffect.studies.measure import SCHEMA, Columns
from aftereffect.studies.store import Store, write_durably

A, B = "a" * 16, "b" * 16
KINDS: dict[str, Any] = {"str": "x", "i64": 1, "f64": 0.5}


def rows(cell: str) -> Columns:
    """Return two rows, the later round first."""
    found = {name: [KINDS[kind]] * 2 for name, kind in SCHEMA.items()}
    return found | {"cell": [cell] * 2, "round": [20, 10], "value": [None, None]}


def taken(cell: str, seconds: float = 1.0) -> dict[str, Any]:
    return {"cell": cell, "seconds": seconds, "started": "2024-01-01T00:00:00+00:00", "numpy": "2"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "study")
    with made.locked():
        made.put(B, rows(B), taken(B))
        made.put(A, rows(A), taken(A, 2.0))
    return made


def test_what_was_put_comes_back_sorted(store: Store) -> None:
    found = store.rows()
    assert found["cell"].to_list() == [A, A, B, B]
    assert found["round"].to_list() == [10, 20, 10, 20]
    assert found["value"].null_count() == 4
    assert found.columns == list(SCHEMA)
    assert store.times()["seconds"].to_list() == [2.0, 1.0]
    assert store.finished() == {A, B}


def test_an_empty_folder_is_an_empty_study(tmp_path: Path) -> None:
    empty = Store(tmp_path / "none")
    assert (len(empty.rows()), len(empty.times()), empty.finished(), empty.failures()) == (0, 0, set(), {})
    assert not (tmp_path / "none").exists()


def test_compacting_changes_nothing_that_is_read(store: Store) -> None:
    before, times = store.rows(), store.times()
    store.compact()
    assert not list((store.folder / "cells").iterdir())
    assert store.rows().equals(before, null_equal=True)
    assert store.times().equals(times)
    store.put("c" * 16, rows("c" * 16), taken("c" * 16))
    assert store.finished() == {A, B, "c" * 16}
    store.compact()
    assert len(store.rows()) == 6


def test_killed_after_merging_and_before_tidying(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.rows()

    def killed(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            store.compact()
    assert (store.folder / "rows.parquet").exists()
    assert len(list((store.folder / "cells").iterdir())) == 2
    assert store.rows().equals(before, null_equal=True)
    store.compact()
    assert store.rows().equals(before, null_equal=True)
    assert not list((store.folder / "cells").iterdir())


def test_torn_files_are_ignored_and_removed(store: Store) -> None:
    torn = store.folder / "cells" / f".{'c' * 16}.parquet.99.tmp"
    torn.write_bytes(b"PAR1 and no more")
    assert store.finished() == {A, B}
    assert len(store.rows()) == 4
    with store.locked():
        assert not torn.exists()


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_durably(path, b"first")

    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
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


def test_a_full_disk_is_a_clear_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FolderUnusable, match=r"can be written to, but writing .* failed: No space left on device"):
        store.put("c" * 16, rows("c" * 16), taken("c" * 16))
    assert store.finished() == {A, B}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FolderUnusable, match="folder must be one that can be written to"), Store(
        tmp_path / "file" / "study"
    ).locked():
        raise AssertionError("it must not be locked")


def test_failures_are_forgotten_once_the_cell_is_finished(store: Store) -> None:
    cell = "c" * 16
    store.put_failure(cell, {"error": "ValueError", "message": "no", "traceback": []})
    assert store.failures()[cell]["message"] == "no"
    assert cell not in store.finished()
    store.put(cell, rows(cell), taken(cell))
    assert store.failures() == {}


def test_one_run_at_a_time_in_this_process(store: Store) -> None:
    refused = pytest.raises(FolderUnusable, match="must not be in use by another run")
    with store.locked(), refused, Store(store.folder).locked():
        raise AssertionError("it must not be locked twice")
    with store.locked():
        pass


def test_one_run_at_a_time_in_another_process(store: Store) -> None:
    code = f"from aftereffect.studies.store import Store\nwith Store({str(store.folder)!r}).locked(): print('in')"
    package = str(Path(aftereffect.__file__).resolve().parent.parent)
    child: dict[str, Any] = {"env": os.environ | {"PYTHONPATH": package}, "text": True, "capture_output": True}
    with store.locked():
        refused = subprocess.run([sys.executable, "-c", code], timeout=300, **child)
    allowed = subprocess.run([sys.executable, "-c", code], timeout=300, **child)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "must not be in use by another run" in refused.stderr
    assert (allowed.returncode, allowed.stdout) == (0, "in\n")


def test_a_file_that_cannot_be_read_is_named(store: Store) -> None:
    (store.folder / "cells" / f"{A}.parquet").write_bytes(b"rubbish")
    with pytest.raises(FolderUnusable, match=f"{A}.parquet must be a readable Parquet file"):
        store.rows()


def test_a_file_of_another_version_is_named(store: Store) -> None:
    pl.DataFrame({"cell": [A]}).write_parquet(store.folder / "rows.parquet")
    with pytest.raises(FolderUnusable, match=r"rows\.parquet must have the columns of this version"):
        store.finished()
