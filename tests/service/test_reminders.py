"""Reminders against a local receiver: signed, retried, logged, once per round, to allowed addresses only."""

import base64
import contextlib
import hashlib
import hmac
import json
import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pydantic import ValidationError
from tests.service.calling import SETTINGS, api, problem
from tests.service.pages import get, post
from tests.service.server import command

from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Pause, Tell
from aftereffect.service.local import Local
from aftereffect.service.reminders import ATTEMPTS, Reminders
from aftereffect.service.store.store import Store

SECRET = "a secret of the operator"


class Receiver(HTTPServer):
    """Answers with the statuses given, then with 200, and keeps what it was sent."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.got = list(statuses), []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def allowed(receiver):
    address = f"sales=http://127.0.0.1:{receiver.server_port}/hook"
    return Config(webhooks=address, webhook_secret=SECRET)


def made(store, **changes):
    """Make an experiment with a reminder 12 hours after a round, on the evening of 2026-03-02."""
    store.now = lambda: "2026-03-02T18:00:00.000Z"
    settings = {"name": "Mail", "arms": ["a", "b"], "high": 9, "max_delay": 3, "seed": 1, "start_date": "2026-03-02"}
    one = store.create({**settings, **changes}).id
    store.perform(one, Ask())
    store.remind(one, "sales", 0.5)
    return one


def at(store, moment):
    store.now = lambda: f"{moment}:00.000Z"


def test_a_round_that_waits_is_told_once_and_signed(sqlite_url, receiver, caplog):
    with Store.open(sqlite_url) as store:
        one = made(store)
        reminders = Reminders(store, allowed(receiver))
        at(store, "2026-03-03T11:59")
        assert (reminders.look(), receiver.got) == (0, [])
        arm = store.perform(one, Ask())["arm"]
        at(store, "2026-03-03T12:00")
        with caplog.at_level(logging.INFO, "aftereffect.service"):
            assert (reminders.look(), reminders.look()) == (1, 0)
        [(path, headers, body)] = receiver.got
        wanted = f"Mail: round 1 of 2026-03-02 waits for its total. It plays {arm}."
        assert (path, json.loads(body)) == ("/hook", {"text": wanted})
        # The signature of Standard Webhooks, computed here by hand.
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        wanted = base64.b64encode(hmac.digest(SECRET.encode(), signed, hashlib.sha256)).decode()
        assert headers["webhook-signature"] == f"v1,{wanted}"
        assert (headers["webhook-id"], headers["webhook-timestamp"]) == (f"{one}.1", "1772539200")
        [record] = [record for record in caplog.records if record.message == "reminder"]
        assert record.facts == {"experiment": one, "round": 1, "webhook": "sales", "attempt": 1, "outcome": "sent"}
        assert str(receiver.server_port) not in caplog.text
        # Reported: the next round waits from its own date on, whether or not it is opened.
        store.perform(one, Tell(1, 2.0))
        assert reminders.look() == 0
        at(store, "2026-03-04T12:00")
        assert reminders.look() == 1
        assert "round 2 of 2026-03-03 has not been opened" in json.loads(receiver.got[-1][2])["text"]
        store.perform(one, Pause())
        at(store, "2026-03-09T12:00")
        assert reminders.look() == 0
        # A corrected experiment goes on reminding.
        new = store.correct(one, {"high": 20}).id
        assert [(each.webhook, each.after) for each in store.reminders(new)] == [("sales", 0.5)]


def test_every_morning_says_what_to_play_and_what_is_overdue(sqlite_url, receiver):
    with Store.open(sqlite_url) as store:
        one = made(store)
        store.remind(one, "sales", -16 / 24)
        reminders = Reminders(store, allowed(receiver))

        def told(moment):
            at(store, moment)
            before = len(receiver.got)
            assert reminders.look() + reminders.look() == len(receiver.got) - before
            return [json.loads(body)["text"] for _, _, body in receiver.got[before:]]

        arm = store.perform(one, Ask())["arm"]
        assert told("2026-03-02T07:59") == []
        assert told("2026-03-02T08:00") == [f"Mail: play {arm} in round 1 of 2026-03-02."]
        store.perform(one, Tell(1, 2.0))
        assert store.experiment(one).open_round is None
        assert told("2026-03-03T07:59") == []
        # The round is opened, so that its arm is known; d = 3, so the block cannot end before round 4.
        assert told("2026-03-03T08:00") == [f"Mail: play {arm} in round 2 of 2026-03-03."]
        assert store.experiment(one).open_round == 2
        assert told("2026-03-04T08:00") == [f"Mail: round 2 of 2026-03-03 waits for its total. It plays {arm}."]
        late = f"Mail: round 2 of 2026-03-03 waits for its total. It plays {arm}. 2 rounds are overdue."
        assert told("2026-03-05T12:00") == [late]
        # Reported the same morning: the next message is that of the next day, with an alarm (9 (d + 1) = 36).
        store.perform_many([(one, Tell(2, 400.0)), (one, Ask()), (one, Tell(3, 1.0)), (one, Ask())])
        store.perform(one, Tell(4, 1.0))
        assert told("2026-03-05T23:00") == []
        [text] = told("2026-03-06T08:00")
        assert text.startswith("Mail: play ")
        assert " in round 5 of 2026-03-06. Attention: 1 of 4 totals (25.0%) is outside [0, 36]" in text


def test_what_units_play_is_said_unit_by_unit(sqlite_url, receiver):
    with Store.open(sqlite_url) as store:
        one = made(store, units=["north", "south"])
        store.remind(one, "sales", -0.5)
        arms = store.perform(one, Ask())["arms"]
        at(store, "2026-03-02T12:00")
        assert Reminders(store, allowed(receiver)).look() == 1
        wanted = f"Mail: play {arms['north']} in north, {arms['south']} in south in round 1 of 2026-03-02."
        assert json.loads(receiver.got[0][2])["text"] == wanted


def test_a_call_that_fails_is_repeated_and_then_given_up(sqlite_url, receiver):
    receiver.statuses = [503, 302]
    with Store.open(sqlite_url) as store:
        one = made(store)
        reminders = Reminders(store, allowed(receiver))
        calls = []
        for moment in ("12:00", "12:00", "12:01", "12:04", "12:05", "12:06"):
            at(store, f"2026-03-03T{moment}")
            calls.append(reminders.look())
        assert calls == [1, 0, 1, 0, 1, 0]
        assert [path for path, _, _ in receiver.got] == ["/hook"] * 3
        [known] = store.reminders(one)
        assert (known.outcome, known.attempts, known.next_at) == ("sent", 3, None)
        shown = Local(store).reminder(one)
        assert (shown.webhook, shown.round, shown.outcome) == ("sales", 1, "sent")
        assert shown.data.keys() == type(shown).model_fields.keys()
        store.perform(one, Tell(1, 2.0))
        receiver.statuses = [500] * 99
        days = [f"2026-03-{day:02}T12:00" for day in range(4, 20)]
        total = 0
        for moment in days:
            at(store, moment)
            total += reminders.look()
        assert (total, store.reminders(one)[0].outcome) == (ATTEMPTS, "failed: status 500")


def test_an_address_that_is_not_allowed_is_never_called(sqlite_url, receiver):
    with Store.open(sqlite_url) as store:
        one = made(store)
        at(store, "2026-03-03T12:00")
        other = Config(webhooks=f"ops=http://127.0.0.1:{receiver.server_port}/hook", webhook_secret=SECRET)
        Reminders(store, other).look()
        assert receiver.got == []
        assert store.reminders(one)[0].outcome == "failed: the operator does not allow this webhook"


@pytest.mark.parametrize("gone", ["http://127.0.0.1:9/x", f"http://{'a' * 70}.example"])
def test_a_receiver_that_is_gone_is_a_failure_like_any_other(sqlite_url, gone):
    with Store.open(sqlite_url) as store:
        one = made(store, start_date=None)
        at(store, "2026-03-04T06:00")
        assert Reminders(store, Config(webhooks={"sales": gone}, webhook_secret=SECRET)).look() == 1
        assert store.reminders(one)[0].outcome.startswith("failed: ")


def test_a_receiver_that_never_answers_delays_neither_others_nor_the_end(sqlite_url, receiver, monkeypatch):
    monkeypatch.setattr("aftereffect.service.reminders.TIMEOUT", 0.2)
    with Store.open(sqlite_url) as store, socket.create_server(("127.0.0.1", 0)) as silent:
        many = [made(store) for _ in range(4)]
        store.remind(many[-1], "ops", 0.5)
        at(store, "2026-03-03T12:00")
        heard = allowed(receiver).webhooks["sales"]
        webhooks = {"sales": f"http://127.0.0.1:{silent.getsockname()[1]}", "ops": heard}
        config = Config(webhooks=webhooks, webhook_secret=SECRET)
        with Reminders(store, config) as reminders:
            assert reminders.look() == 2
        assert [store.reminders(one)[0].outcome for one in many] == ["failed: ReadTimeout", None, None, "sent"]
        assert reminders.look() == 0


def test_an_answer_without_end_is_not_read(sqlite_url):
    def answer(listener):
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                connection.sendall(b"1\r\nx\r\n")

    with Store.open(sqlite_url) as store, socket.create_server(("127.0.0.1", 0)) as listener:
        one = made(store)
        at(store, "2026-03-03T12:00")
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        webhooks = {"sales": f"http://127.0.0.1:{listener.getsockname()[1]}"}
        assert Reminders(store, Config(webhooks=webhooks, webhook_secret=SECRET)).look() == 1
        assert store.reminders(one)[0].outcome == "sent"
        thread.join(10.0)
        assert not thread.is_alive()


def test_a_round_at_the_end_of_the_calendar_is_never_due(sqlite_url, receiver):
    with Store.open(sqlite_url) as store:
        for date in ("9999-12-31", "9999-12-30"):
            one = made(store, start_date=date)
            store.remind(one, "sales", 36525.0)
        assert store.experiment(one).due.at == "9999-12-31T00:00:00.000Z"
        store.perform_many([(one, Tell(1, 1.0)), (one, Ask())])
        assert store.experiment(one).due is None
        assert Reminders(store, allowed(receiver)).look() == 0


def test_two_servers_call_once(store, receiver):
    one = made(store)
    at(store, "2026-03-03T12:00")
    [known] = store.reminders(one)
    claim = {"round": 1, "attempts": 1}
    assert store.change_reminder(known._mapping, claim)
    assert not store.change_reminder(known._mapping, claim)


def test_the_thread_looks_by_itself_and_stops(sqlite_url, receiver):
    with Store.open(sqlite_url) as store:
        made(store)
        at(store, "2026-03-03T12:00")
        with Reminders(store, allowed(receiver), every=0.01):
            for _ in range(500):
                if receiver.got:
                    break
                threading.Event().wait(0.01)
        assert len(receiver.got) == 1


@pytest.mark.parametrize(("given", "words"), [
    ({"webhooks": "sales=ftp://x", "webhook_secret": SECRET}, "must be names with addresses"),
    ({"webhooks": "https://x", "webhook_secret": SECRET}, "must be names with addresses"),
    ({"webhooks": "sales=https://x"}, "webhook_secret must have 16 or more characters"),
    ({"webhook_secret": "whsec_not-base64!"}, "webhook_secret must be base64 after whsec_"),
])
def test_the_configuration_of_webhooks_is_checked(given, words):
    with pytest.raises(ValidationError, match=words):
        Config(**given)
    config = Config(webhooks={"sales": "https://x/key"}, webhook_secret=SECRET)
    assert "https://x/key" not in repr(config)
    assert SECRET not in repr(config)


def test_reminders_are_set_by_rest_page_and_command(tmp_path, monkeypatch):
    with api(tmp_path, webhooks="sales=https://chat.example/key", webhook_secret=SECRET) as call:
        path = call.create()
        refused = call("PUT", f"{path}/reminder", json={"webhook": "other"})
        assert "webhook must be allowed by the operator (sales), but got 'other'" in problem(refused, 422, "invalid")
        found = call("PUT", f"{path}/reminder", json={"webhook": "sales", "after": "6 hours"}).json()
        assert (found["webhook"], found["after"], found["webhooks"]) == ("sales", 0.25, ["sales"])
        page = path.removeprefix("/v1")
        assert "https://chat.example" not in call("GET", page).text
        assert "Reminder: sales" in get(call, page).words
        assert post(call, f"{page}/reminder", {"webhook": "other", "after": "1"}).status_code == 422
        assert post(call, f"{page}/reminder", {"webhook": "sales", "after": "soon"}).status_code == 422
        assert post(call, f"{page}/reminder", {"webhook": "sales", "after": "2 days"}).status_code == 303
        assert call("GET", f"{path}/reminder").json()["after"] == 2.0
        before = {"webhook": "sales", "after": "16 hours", "when": "before"}
        assert post(call, f"{page}/reminder", before).status_code == 303
        assert call("GET", f"{path}/reminder").json()["after"] == -16 / 24
        assert "16 hours" in call("GET", page).text
        assert call("PUT", f"{path}/reminder", json={"webhook": "sales", "before": 0.5}).json()["after"] == -0.5
        both = {"webhook": "sales", "before": "soon"}
        assert "before" in problem(call("PUT", f"{path}/reminder", json=both), 422, "invalid")
        assert call("DELETE", f"{path}/reminder").status_code == 204
        assert call("GET", f"{path}/reminder").json()["webhook"] is None
        call.store.backup(tmp_path / "copy.db")
    store = ("--store", str(tmp_path / "copy.db"))
    assert command("remind", *store).out == "There is no reminder.\n"
    refused = command("remind", "--to", "sales", *store)
    assert (refused.code, refused.err) == (
        2, "aftereffect: webhook must be allowed by the operator (none are), but got 'sales'\n"
    )
    monkeypatch.setenv("AFTEREFFECT_WEBHOOKS", "sales=https://chat.example/key")
    monkeypatch.setenv("AFTEREFFECT_WEBHOOK_SECRET", SECRET)
    said = command("remind", "--to", "sales", "--after", "1 day", *store).out
    assert said == "The webhook sales is called 1 day after a round without a report.\n"
    said = command("remind", "--to", "sales", "--before", "16 hours", *store).out
    assert said == "The webhook sales is called 16 hours before the end of every round.\n"
    assert command("remind", "--off", *store).out == "There is no reminder.\n"


def test_a_server_without_webhooks_offers_none(tmp_path):
    with api(tmp_path) as call:
        path = call.create(**SETTINGS)
        assert problem(call("PUT", f"{path}/reminder", json={"webhook": "sales"}), 422, "invalid")
        assert "has not allowed any address" in get(call, path.removeprefix("/v1")).words


def test_a_configuration_that_breaks_a_rule_is_refused_without_a_server_too(sqlite_url, monkeypatch):
    monkeypatch.setenv("AFTEREFFECT_WEBHOOKS", "sales=https://chat.example/key")
    with Store.open(sqlite_url) as store, pytest.raises(Refused, match="webhook_secret must have 16 or more") as caught:
        Local(store).remind(made(store), "sales")
    assert "chat.example" not in str(caught.value)
