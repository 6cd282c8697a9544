"""Values in the tables that this service cannot have written: the fault of their experiment, and of no other."""

import sqlite3
from pathlib import Path

import httpx
import pytest
from tests.service.faults.audit import gaps

from aftereffect.service.api.app import create_app
from aftereffect.service.config import Config
from aftereffect.service.errors import Corrupt, Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.messages import Verdict
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}
# Enough for a checkpoint.
ROUNDS = 40
UNDECODABLE = "CAST(x'c328ff' AS TEXT)"
BLOB = "x'00ff'"


def made(folder: Path) -> tuple[str, list[str]]:
    """Return a store's URL and the ids of its three experiments."""
    url = f"sqlite:///{folder / 'store.db'}"
    with Store.open(url) as store:
        ids = [store.create(MAIL).id for _ in range(3)]
        for t in range(1, ROUNDS + 1):
            store.perform_many([(each, Ask()) for each in ids])
            store.perform_many([(each, Tell(t, 0.5)) for each in ids])
    return url, ids


def alter(folder: Path, statement: str) -> None:
    """Alter one row behind the service's back; `?` stands for the second experiment's number."""
    with sqlite3.connect(folder / "store.db") as connection:
        assert connection.execute(statement.replace("?", "2")).rowcount > 0
    connection.close()


SETTINGS = [
    ("settings", UNDECODABLE),
    ("settings", "'{'"),
    ("settings", "'{}'"),
    ("settings", "replace(settings, '\"arms\":[', '\"arms\":[7,')"),
    ("settings", "replace(settings, '\"seed\":7', '\"seed\":8')"),
    ("name", BLOB),
    ("created_at", UNDECODABLE),
    ("head", UNDECODABLE),
    ("seq", "'many'"),
    ("status", "'asleep'"),
]


@pytest.mark.parametrize(("column", "value"), SETTINGS)
def test_a_damaged_row_of_an_experiment_is_its_own_affair(tmp_path: Path, column: str, value: str) -> None:
    url, ids = made(tmp_path)
    alter(tmp_path, f"UPDATE experiments SET {column} = {value} WHERE number = ?")
    right = [ids[0], ids[2]]
    with Store.open(url) as store:
        page = store.experiments()
        # A seed that was changed can be read, and the name stands in the settings too.
        readable = ids if "seed" in value or (column, value) == ("name", BLOB) else right
        assert [item["id"] for item in page["items"]] == readable
        assert page.get("damaged", []) == [each for each in ids if each not in readable]
        # Page by page too, after the damaged one.
        found, after = [], None
        while after is not None or not found:
            page = store.experiments(after=after, limit=1)
            found, after = found + page["items"] + page.get("damaged", []), page["next"]
        assert [one if isinstance(one, str) else one["id"] for one in found] == ids
        for verdicts in (store.verify(), _pages(store)):
            assert [one.experiment for one in verdicts] == ids
            assert [one.ok for one in verdicts] == [True, False, True]
        assert [one.ok for one in store.verify(ids[1])] == [False]
        answers = store.perform_many([(each, Ask()) for each in ids])
        assert [answer["round"] for answer in (answers[0], answers[2])] == [ROUNDS + 1] * 2
        for each in right:
            assert store.experiment(each).round == ROUNDS + 1
        if column in ("settings", "head", "seq"):
            assert isinstance(answers[1], Refused)
            assert answers[1].code == "corrupt"
            with pytest.raises(Corrupt):
                store.experiment(ids[1])


def _pages(store: Store) -> list[Verdict]:
    found: list[Verdict] = []
    after = None
    while after is not None or not found:
        page = store.verify_page(after=after, limit=1)
        found, after = found + page.items, page.next
    return found


VALUES = [
    ("rounds", "total", "'much'"),
    ("rounds", "total", BLOB),
    ("rounds", "arm", UNDECODABLE),
    ("rounds", "probability", "'likely'"),
    ("rounds", "asked_at", BLOB),
    ("events", "body", "'[]'"),
    ("events", "body", UNDECODABLE),
    ("events", "at", BLOB),
    ("checkpoints", "state", UNDECODABLE),
    ("checkpoints", "state", "'{}'"),
    ("checkpoints", "seq", "1.5"),
    ("experiments", "created_at", BLOB),
]
READS = {
    "rounds": ("rounds?limit=1000", "series", "export?format=csv", "export?format=parquet"),
    "events": ("events?limit=1000",),
    "checkpoints": ("",),
    "experiments": ("",),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("table", "column", "value"), VALUES)
async def test_a_value_of_the_wrong_type_is_called_damage(tmp_path: Path, table: str, column: str, value: str) -> None:
    url, ids = made(tmp_path)
    where = {"rounds": "AND round = 17", "events": "AND seq = 33"}.get(table, "")
    key = "number" if table == "experiments" else "experiment"
    alter(tmp_path, f'UPDATE {table} SET "{column}" = {value} WHERE {key} = ? {where}')
    with Store.open(url) as store:
        transport = httpx.ASGITransport(create_app(store, Config()))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            for path in READS[table]:
                for identity in ids:
                    answer = await client.get(f"/v1/experiments/{identity}/{path}".rstrip("/"))
                    if identity == ids[1]:
                        assert (answer.status_code, answer.json()["code"]) == (500, "corrupt"), path
                    else:
                        assert answer.status_code == 200
            verdict = (await client.get(f"/v1/experiments/{ids[1]}/verify")).json()
            assert not verdict["ok"]
            assert (await client.get("/v1/verify")).status_code == 200
            assert (await client.get("/")).status_code == 200
        rows = store.rounds(ids[0], limit=1000)["items"]
        assert gaps(1, rows, ROUNDS) == []


def test_settings_that_were_altered_are_seen_where_the_experiment_resumes(tmp_path: Path) -> None:
    url, ids = made(tmp_path)
    altered = "replace(settings, '\"high\":1.0', '\"high\":2.0')"
    alter(tmp_path, f"UPDATE experiments SET settings = {altered} WHERE number = ?")
    with Store.open(url) as store:
        for act in (lambda: store.experiment(ids[1]), lambda: store.perform(ids[1], Ask())):
            with pytest.raises(Corrupt, match=f"settings of experiment {ids[1]} are not those of its checkpoint"):
                act()
        assert store.perform(ids[0], Ask())["round"] == ROUNDS + 1
        assert store.status().damaged == [ids[1]]
