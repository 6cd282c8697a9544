"""Files that change under an open store: nothing is acknowledged that nobody would find again."""

import os
import shutil
from pathlib import Path

import pytest

from aftereffect.service.commands import Ask, Tell
from aftereffect.service.desk import Desk
from aftereffect.service.errors import Refused

MAIL = {"name": "Mail", "arms": ["short", "long"], "max_delay": 1, "seed": 7}


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    os.replace(copy, path)


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


@pytest.mark.parametrize("change", [removed, replaced, moved_away])
@pytest.mark.parametrize("ending", ["", "-wal", "-shm"])
def test_what_goes_into_a_file_without_a_name_is_not_acknowledged(tmp_path, ending, change):
    file = tmp_path / "store.db"
    with Desk.open(f"sqlite:///{file}") as desk:
        identity = desk.create(MAIL)["id"]
        desk.perform(identity, Ask())
        change(Path(f"{file}{ending}"))
        # Again and again: a new connection would be to another file.
        for _ in range(3):
            with pytest.raises(Refused, match="removed or replaced while it was open: nothing was kept") as refused:
                desk.perform(identity, Tell(1, 0.5))
            assert refused.value.status == 503
            with pytest.raises(Refused, match="removed or replaced"):
                desk.create_token("t", ["read"])
        if change is removed:
            assert not Path(f"{file}{ending}").exists()


def test_a_file_that_vanishes_during_the_commit_is_noticed_before_the_answer(tmp_path, monkeypatch):
    file = tmp_path / "store.db"
    with Desk.open(f"sqlite:///{file}") as desk:
        identity = desk.create(MAIL)["id"]
        check = desk._place.check

        def late(outcome):
            if outcome == "nothing was kept":
                check(outcome)
                Path(f"{file}-wal").unlink()
            else:
                check(outcome)

        monkeypatch.setattr(desk._place, "check", late)
        with pytest.raises(Refused, match="it is not known whether this was kept"):
            desk.perform(identity, Ask())


def test_a_write_that_failed_does_not_count_as_a_file_that_vanished(tmp_path, monkeypatch):
    """Its connection is closed, and if it was the last one the companions go with it."""
    with Desk.open(f"sqlite:///{tmp_path / 'store.db'}") as desk:
        identity = desk.create(MAIL)["id"]
        desk._place.close()
        assert not Path(tmp_path / "store.db-wal").exists()
        assert desk.perform(identity, Ask())["round"] == 1
        assert desk.perform(identity, Tell(1, 0.5))["status"] == "reported"
