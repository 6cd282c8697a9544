"""Verify finds whatever was altered behind the service's back, on both stores."""

from typing import Any

from sqlalchemy import Connection

from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Pause, Resume, Tell
from aftereffect.service.messages import Page, Verdict
from aftereffect.service.store import event_log, verify
from aftereffect.service.store.store import Store

SHOP = {"name": "Shop", "arms": ["low", "mid", "high"], "max_delay": 1, "seed": 3, "units": ["north", "south"]}
SHOP["high"] = 1.0
ROUNDS = 60


def filled(store: Store) -> str:
    """Make an experiment with everything that can happen to one."""
    identity: str = store.create(SHOP).id
    for t in range(1, ROUNDS + 1):
        commands = [Ask(), Tell(t, None if t % 7 == 0 else 0.5, "north"), Tell(t, t % 4 / 4, "south")]
        if t == 20:
            commands += [Pause(), Resume()]
        if t == 30:
            commands += [Away("mid")]
        if t == 40:
            commands += [Back("mid")]
        answers = store.perform_many([(identity, command) for command in commands])
        assert all(isinstance(answer, dict) for answer in answers), answers
        # Accepted while the block is open, refused otherwise; either will do here.
        store.perform_many([(identity, Amend(t, 0.75, "north"))])
    return identity


def alter(store: Store, statement: str) -> None:
    # Through the writer, whose connection it is: it may be moving the log at this moment.
    def act(connection: Connection) -> dict[str, Any]:
        return {"rows": connection.exec_driver_sql(statement).rowcount}

    assert store.perform("", act)["rows"] > 0


def test_what_was_not_altered_is_in_order(store):
    identity = filled(store)
    (verdict,) = store.verify(identity)
    assert (verdict.ok, verdict.rounds, verdict.finding) == (True, ROUNDS, None)
    last = store.events(identity, after=verdict.events - 1)["items"]
    assert [event["hash"] for event in last] == [verdict.head]
    kinds = {event["kind"] for event in store.events(identity, limit=1000)["items"]}
    assert kinds == {"ask", "tell", "amend", "pause", "resume", "away", "back"}


ALTERATIONS = [
    ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)", "events are missing at its end"),
    ("DELETE FROM events WHERE seq > 100", "events are missing at its end"),
    ("DELETE FROM events WHERE seq = 50", "gapless"),
    ("DELETE FROM events", "events are missing at its end"),
    ("UPDATE events SET body = replace(body, '0.5', '0.25') WHERE seq = 2", "hash of event 2"),
    ("UPDATE events SET at = '2020-01-01T00:00:00.000Z' WHERE seq = 5", "hash of event 5"),
    ("UPDATE events SET unit = 'south' WHERE seq = 2", "hash of event 2"),
    ("UPDATE events SET hash = '00' WHERE seq = 7", "hash of event 7"),
    ("UPDATE experiments SET seq = seq - 1", "must end at event"),
    ("UPDATE experiments SET head = '00'", "must end at event"),
    ("UPDATE experiments SET settings = replace(settings, '\"high\":1.0', '\"high\":2.0')", "hash of event 1 "),
    ("UPDATE experiments SET created_at = 'now'", "hash of event 1 "),
    ("UPDATE experiments SET name = 'Other'", "name must be 'Shop'"),
    ("UPDATE experiments SET status = 'finished'", "status must be 'running'"),
    ("UPDATE rounds SET total = 0.125 WHERE round = 11 AND unit = 'south'", "round 11 in unit 'south' must have total"),
    ("UPDATE rounds SET arm = 'none' WHERE round = 1 AND unit = 'north'", "round 1 in unit 'north' must have arm"),
    ("UPDATE rounds SET fed = 0.5 WHERE round = 2 AND unit = 'north'", "round 2 in unit 'north' must have fed"),
    ("UPDATE rounds SET round = 1000 WHERE round = 60 AND unit = 'north'", "round 60 in unit 'north' is missing"),
    ("DELETE FROM rounds WHERE round = 33 AND unit = 'north'", "round 33 in unit 'north' is missing"),
    ("DELETE FROM rounds WHERE round >= 59", "round 59 in unit 'north' is missing"),
    (
        "INSERT INTO rounds SELECT experiment, 99, unit_index, unit, arm, total, status, draw, block, block_start, "
        "probability, washin, measured, \"update\", fed, date, substituted, reason, drawn, withheld, "
        "asked_at, told_at, note FROM rounds WHERE round = 1",
        "number of round rows must be 120",
    ),
    ("UPDATE checkpoints SET state = replace(state, '\"running\"', '\"paused\"')", "checkpoint at event"),
    ("UPDATE checkpoints SET head = '00'", "checkpoint at event"),
    ("UPDATE checkpoints SET seq = seq - 1", "checkpoint at event"),
    ("UPDATE checkpoints SET seq = 100000", "checkpoint must belong to an event in the log"),
]


def test_every_alteration_is_found(store, monkeypatch):
    monkeypatch.setattr(event_log, "CHECKPOINT_EVERY", 64)
    store.create(SHOP)
    identity = filled(store)
    saved = {}
    with store._database.reading.connect() as connection:
        for table in ("experiments", "events", "rounds", "checkpoints"):
            saved[table] = connection.exec_driver_sql(f"SELECT * FROM {table}").all()
    for statement, finding in ALTERATIONS:
        alter(store, statement)
        verdicts = {verdict.experiment: verdict for verdict in store.verify()}
        verdict = verdicts[identity]
        assert not verdict.ok, statement
        assert finding in verdict.finding, (statement, verdict.finding)
        _put_back(store, saved)
    assert all(verdict.ok for verdict in store.verify())


def _put_back(store: Store, saved: dict[str, list[tuple[object, ...]]]) -> None:
    on_sqlite = store._database.file is not None
    mark = "?" if on_sqlite else "%s"
    with store._database.transaction() as transaction:
        connection, transaction.rows = transaction.connection, 1
        for table in reversed(saved):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        for table, rows in saved.items():
            if rows:
                override = "OVERRIDING SYSTEM VALUE " if table == "experiments" and not on_sqlite else ""
                marks = ",".join([mark] * len(rows[0]))
                connection.exec_driver_sql(f"INSERT INTO {table} {override}VALUES ({marks})", [tuple(r) for r in rows])


def test_a_forged_event_with_a_right_hash_is_found_by_replaying(store):
    identity = store.create({**SHOP, "units": None}).id
    store.perform(identity, Ask())
    (event,) = store.events(identity)["items"]
    body = {**event["body"], "arms": [(event["body"]["arms"][0] + 1) % 3]}
    with store._database.reading.connect() as connection:
        row = connection.exec_driver_sql("SELECT settings, created_at FROM experiments").one()
    before = event_log.first_hash(identity, row.settings, row.created_at)
    text = event_log.as_text(body)
    head = event_log.next_hash(before, 1, "ask", 1, None, text, event["at"])
    alter(store, f"UPDATE events SET body = '{text.replace('%', '%%')}', hash = '{head}'")
    alter(store, f"UPDATE experiments SET head = '{head}'")
    (verdict,) = store.verify(identity)
    assert not verdict.ok
    assert "event 1" in verdict.finding
    assert "replayed" in verdict.finding


def test_verdicts_come_in_pages_that_end_after_a_while(store, monkeypatch):
    made = [store.create({**SHOP, "seed": seed}).id for seed in range(5)]
    everything = store.verify()
    assert [verdict.experiment for verdict in everything] == made
    assert store.verify_page() == Page[Verdict](items=everything, next=None)
    first = store.verify_page(limit=2)
    assert first == Page[Verdict](items=everything[:2], next=made[1])
    assert store.verify_page(after=made[1], limit=3) == Page[Verdict](items=everything[2:], next=None)
    monkeypatch.setattr(verify, "PAGE_S", 0.0)
    assert store.verify_page(after=made[2]) == Page[Verdict](items=everything[3:4], next=made[3])
    assert store.verify_page(after=made[3]) == Page[Verdict](items=everything[4:], next=None)
