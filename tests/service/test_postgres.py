"""What only PostgreSQL brings: several processes at once, and a server that goes away and comes back."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import event
from tests.service.postgres import kill

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}
CLIENT = """
import sys
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store.store import Store
from aftereffect.service.errors import Refused
url, ids, rounds = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
done = 0
with Store.open(url) as store:
    while done < rounds:
        for identity in ids:
            asked = store.perform(identity, Ask())
            try:
                done += not store.perform(identity, Tell(asked["round"], 0.5))["repeated"]
            except Refused as refused:
                assert refused.code == "conflict", refused
print(done)
"""


def test_several_processes_share_experiments(fresh_postgres_url):
    with Store.open(fresh_postgres_url) as store:
        ids = [store.create({**MAIL, "seed": i}).id for i in range(3)]
        orders = (ids, ids[::-1], [ids[1], ids[2], ids[0]])
        calls = [[sys.executable, "-c", CLIENT, fresh_postgres_url, ",".join(order), "40"] for order in orders]
        clients = [subprocess.Popen(call, stdout=subprocess.PIPE, text=True) for call in calls]
        told = [int(client.communicate(timeout=300)[0]) for client in clients]
        assert [client.returncode for client in clients] == [0, 0, 0]
        assert all(verdict.ok for verdict in store.verify())
        assert sum(store.experiment(identity).round for identity in ids) == sum(told)


def test_a_store_takes_up_what_another_has_moved(fresh_postgres_url):
    with Store.open(fresh_postgres_url) as one, Store.open(fresh_postgres_url) as two:
        identity = one.create(MAIL).id
        for t in range(1, 40):
            ask, tell = (one, two) if t % 2 else (two, one)
            assert ask.perform(identity, Ask())["round"] == t
            tell.perform(identity, Tell(t, 0.5))
            assert one.experiment(identity).round == two.experiment(identity).round == t
        assert one.verify(identity)[0].ok


def test_another_history_of_the_same_length_is_noticed(fresh_postgres_url):
    """As after a restore, or when a standby takes over that lacked the last commits."""
    tables = ("events", "rounds", "checkpoints")
    with Store.open(fresh_postgres_url) as store, psycopg.connect(fresh_postgres_url, autocommit=True) as admin:
        identity = store.create(MAIL).id
        store.perform(identity, Ask())
        for table in ("experiments", *tables):
            admin.execute(f"CREATE TABLE old_{table} AS SELECT * FROM {table}")
        store.perform(identity, Tell(1, 0.5))
        assert store.experiment(identity).open_round is None
        with admin.transaction():
            for table in tables:
                admin.execute(f"DELETE FROM {table}")
                admin.execute(f"INSERT INTO {table} SELECT * FROM old_{table}")
            admin.execute("UPDATE experiments SET seq = old.seq, head = old.head FROM old_experiments AS old")
        assert store.experiment(identity).open_round == 1
        with Store.open(fresh_postgres_url) as other:
            assert other.perform(identity, Tell(1, 0.25))["status"] == "reported"
        # Both histories have two events; what this store has in memory is the one that is gone.
        assert store.experiment(identity).open_round is None
        assert store.perform(identity, Tell(1, 0.25))["repeated"]
        with pytest.raises(Refused, match=r"reported as 0\.25"):
            store.perform(identity, Tell(1, 0.5))
        assert store.perform(identity, Ask())["round"] == 2
        assert store.verify(identity)[0].ok


def test_batches_in_opposite_orders_do_not_block_each_other(fresh_postgres_url):
    with Store.open(fresh_postgres_url) as one, Store.open(fresh_postgres_url) as two:
        ids = [one.create({**MAIL, "seed": i}).id for i in range(20)]

        def client(store: Store, order: list[str]) -> list[str]:
            answers = [answer for _ in range(10) for answer in store.perform_many([(i, Ask()) for i in order])]
            return [answer.code for answer in answers if isinstance(answer, Refused)]

        with ThreadPoolExecutor(2) as pair:
            found = [pair.submit(client, one, ids), pair.submit(client, two, ids[::-1])]
            assert [each.result() for each in found] == [[], []]


def test_connections_that_were_cut_are_made_again(fresh_postgres_url):
    with Store.open(fresh_postgres_url) as store:
        identity = store.create(MAIL).id
        store.perform(identity, Ask())
        store.experiment(identity)
        with psycopg.connect(fresh_postgres_url, autocommit=True) as admin:
            cut = admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).rowcount
        assert cut >= 2
        assert store.perform(identity, Tell(1, 0.5))["status"] == "reported"
        assert store.experiment(identity).open_round is None
        assert store.verify(identity)[0].ok


def test_a_commit_whose_answer_is_lost_may_have_been_kept_and_is_said_to(fresh_postgres_url, caplog):
    with Store.open(fresh_postgres_url) as store:
        identity = store.create(MAIL).id
        asked = store.perform(identity, Ask())

        def lose(connection):
            """Commit, and let the connection be gone when the caller does."""
            driver = connection.connection.driver_connection
            driver.commit()
            (pid,) = driver.execute("SELECT pg_backend_pid()").fetchone()
            with psycopg.connect(fresh_postgres_url, autocommit=True) as admin:
                admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))

        event.listen(store._database.writing, "commit", lose, once=True)
        with pytest.raises(Refused, match=r"not known whether this was kept; .* to repeat them is safe") as refused:
            store.perform(identity, Tell(asked["round"], 0.5))
        assert refused.value.status == 503
        assert "not kept" not in caplog.text + refused.value.detail
        assert store.perform(identity, Tell(asked["round"], 0.5))["repeated"]
        assert store.verify(identity)[0].ok


def test_a_row_locked_for_ever_is_not_waited_for_for_ever(fresh_postgres_url, monkeypatch):
    monkeypatch.setattr("aftereffect.service.store.database.POSTGRES_OPTIONS", "-c lock_timeout=300ms")
    with Store.open(fresh_postgres_url) as store:
        identity = store.create(MAIL).id
        with psycopg.connect(fresh_postgres_url) as other:
            other.execute("SELECT * FROM experiments FOR UPDATE")
            with pytest.raises(Refused, match="lock timeout") as refused:
                store.perform(identity, Ask())
            assert refused.value.code == "busy"
        assert store.perform(identity, Ask())["round"] == 1


def test_a_server_that_is_not_there_is_a_refusal_without_the_password(tmp_path):
    with pytest.raises(Refused, match="did not answer") as refused:
        Store.open(f"postgresql://me:hunter2@/nothing?host={tmp_path}")
    assert refused.value.code == "busy"
    assert "hunter2" not in refused.value.detail


def test_a_server_killed_and_started_again_goes_on(own_postgres_server):
    server = own_postgres_server
    with Store.open(server.get_uri()) as store:
        identity = store.create(MAIL).id
        store.perform_many([(identity, Ask()), (identity, Tell(1, 0.5))])
        kill(server)
        with pytest.raises(Refused) as refused:
            store.perform(identity, Ask())
        assert refused.value.code == "busy"
        with pytest.raises(Refused, match="try again"):
            store.experiment(identity)
        with pytest.raises(Refused, match="try again"):
            store.check_health()
        server.start()
        store.check_health()
        asked = store.perform(identity, Ask())
        assert asked["round"] == 2
        store.perform(identity, Tell(asked["round"], 0.5))
        assert store.verify(identity)[0].ok
