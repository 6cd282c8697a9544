"""Requests repeated with their key: answered as the first time, by any server, and carried out once."""

import threading

import pytest
from tests.service.calling import SETTINGS, problem

from aftereffect.service.errors import Refused
from aftereffect.service.store import keys
from aftereffect.service.store.store import Store

KEY = {"Idempotency-Key": "a-key-of-16-chars"}


def names(store: Store) -> list[str]:
    return [one["name"] for one in store.experiments()["items"]]


def test_what_creates_is_carried_out_once_and_answered_alike(call):
    one = call.create(seed=None)
    call.play(one, 3)
    steps = [
        ("/v1/experiments", {**SETTINGS, "name": "second", "seed": None}),
        (f"{one}/reports", {"items": [{"total": 1.0, "arm": None}]}),
        ("/v1/tokens", {"name": "till", "scopes": ["play"]}),
        (f"{one}/correct", {"high": 60}),
    ]
    for place, (path, body) in enumerate(steps):
        headers = {"Idempotency-Key": f"request-{place}"}
        if path.endswith("reports"):
            # The arm of the next round is not known before it is opened.
            call("POST", f"{one}/ask")
        first, again = (call("POST", path, json=body, headers=headers) for _ in range(2))
        assert first.status_code == again.status_code == (200 if path.endswith("reports") else 201), first.text
        assert first.json() == again.json()
        assert first.headers.get("location") == again.headers.get("location")
    assert names(call.store) == ["Mailings", "second", "Mailings (corrected)"]
    assert len(call.store.tokens()) == 1
    corrected = call.store.experiments()["items"][2]["id"]
    made = call("POST", f"/v1/experiments/{corrected}/continue", json={"add": ["b"]}, headers=KEY).json()
    call("POST", f"/v1/experiments/{made['id']}/ask")
    # The answer of the first request, not the state of today.
    assert call("POST", f"/v1/experiments/{corrected}/continue", json={"add": ["b"]}, headers=KEY).json() == made
    assert call.store.experiment(one.rpartition("/")[2]).round == 4
    assert all(verdict.ok for verdict in call.store.verify())


def test_a_key_belongs_to_one_request(call):
    assert call("POST", "/v1/experiments", json=SETTINGS, headers=KEY).status_code == 201
    others = {"/v1/experiments": {**SETTINGS, "high": 51}, "/v1/tokens": {"name": "a", "scopes": ["read"]}}
    for path, body in others.items():
        detail = problem(call("POST", path, json=body, headers=KEY), 409, "conflict")
        assert detail.startswith("Idempotency-Key must be new")
    assert names(call.store) == ["Mailings"]
    assert call.store.tokens() == []


@pytest.mark.parametrize("key", ["short", "x" * 101, "with space", ""])
def test_a_key_must_be_a_word(call, key):
    answer = call("POST", "/v1/experiments", json=SETTINGS, headers={"Idempotency-Key": key})
    assert problem(answer, 422, "invalid").startswith("Idempotency-Key must match")
    assert names(call.store) == []


def test_a_refused_request_may_be_mended_under_its_key(call):
    one = call.create()
    call.play(one, 2)
    bad = call("POST", f"{one}/correct", json={"arms": ["a", "b"]}, headers=KEY)
    assert "arms" in problem(bad, 422, "invalid")
    assert call("POST", f"{one}/correct", json={"high": 60}, headers=KEY).status_code == 201


def test_a_token_made_twice_for_a_key_is_one_and_neither_key_nor_token_is_stored(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(f"sqlite:///{path}") as store:
        first, again = (store.create_token("till", ["play"], key="a-secret-key") for _ in range(2))
        other = store.create_token("till", ["play"], key="another-key")
        assert first == again != other
        assert store.scopes_of(first) == {"play"}
        assert len(store.tokens()) == 2
    content = path.read_bytes()
    assert not any(secret.encode() in content for secret in (first, other, "a-secret-key"))


def test_answers_are_kept_for_thirty_days(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        store.now = lambda: "2026-01-01T00:00:00.000Z"
        first = store.create(SETTINGS, key="january-key")
        store.now = lambda: "2026-01-30T00:00:00.000Z"
        store.create(SETTINGS, key="a-later-key")
        assert store.create(SETTINGS, key="january-key") == first
        store.now = lambda: "2026-02-01T00:00:00.000Z"
        store.create(SETTINGS, key="another-key")
        assert store.create(SETTINGS, key="january-key").id != first.id


def race(stores: list[Store], clients: int) -> set[str]:
    """Have clients send one request with one key to all servers at once; return the ids that were answered."""
    made: set[str] = set()
    ready = threading.Barrier(clients)

    def send(store: Store) -> None:
        ready.wait()
        made.add(store.create(SETTINGS, key="one-key-for-all").id)

    threads = [threading.Thread(target=send, args=(stores[i % len(stores)],)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made


def test_a_race_on_one_key_makes_one_experiment(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        assert len(race([store], 16)) == 1
        assert len(names(store)) == 1


def test_a_race_on_one_key_over_two_servers_makes_one_experiment(fresh_postgres_url):
    with Store.open(fresh_postgres_url) as one, Store.open(fresh_postgres_url) as other:
        for _ in range(3):
            assert len(race([one, other], 16)) == 1
        assert len(names(one)) == 1


def test_a_repeat_in_a_transaction_that_fails_is_not_acknowledged(tmp_path, monkeypatch):
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as store:
        taken = threading.Event()
        original = keys.keep

        def broken(connection, *given):
            original(connection, *given)
            taken.set()
            connection.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

        monkeypatch.setattr(keys, "keep", broken)
        with pytest.raises(Refused):
            store.create(SETTINGS, key="one-key-for-all")
        monkeypatch.setattr(keys, "keep", original)
        assert taken.is_set()
        assert names(store) == []
        assert store.create(SETTINGS, key="one-key-for-all").id
        assert len(names(store)) == 1
