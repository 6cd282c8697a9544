"""What one experiment, one long list or one client does to the others: nothing that they would notice.

Each of these was seen to fail once: a damaged page refused most asks of sound experiments, a list over experiments
that were not in memory held up a single ask until its end, and connections that never sent a whole request used up the
server's file descriptors without a word in its log.
"""

import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil
import pytest
from tests.service.calling import SETTINGS
from tests.service.faults.harness import SOAK
from tests.service.test_serving import PLAIN, PROGRAM, process

from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.store.store import Store

MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}
COLD = 5000 if SOAK else 500


def spoil_a_page(file: Path, number: int) -> None:
    """Overwrite a page that holds nothing but events of one experiment, which is played from its first event on."""
    with sqlite3.connect(file) as connection:
        connection.execute("DELETE FROM checkpoints WHERE experiment = ?", [number])
        events = connection.execute("SELECT hash FROM events WHERE experiment = ? ORDER BY seq", [number]).fetchall()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(file.read_bytes())
    places = [content.find(hash_.encode()) // size for (hash_,) in events]
    page = places[len(places) // 2]
    # Other experiments have events on the pages at both ends of this log at most.
    assert page not in (places[0], places[-1])
    content[page * size : (page + 1) * size] = b"\xff" * size
    file.write_bytes(content)


def test_one_damaged_page_is_the_fault_of_one_experiment(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "store.db"
    with Store.open(f"sqlite:///{file}") as store:
        ids = [store.create(MAIL).id for _ in range(50)]
        store.perform_many([(each, Ask()) for each in ids])
        for t in range(1, 51):
            store.perform_many([(ids[20], Ask()), (ids[20], Tell(t, 0.5))])
    spoil_a_page(file, 21)
    with Store.open(f"sqlite:///{file}") as store:
        answers = store.perform_many([(each, Ask()) for each in ids])
        assert [place for place, answer in enumerate(answers) if isinstance(answer, Refused)] == [20]
        # Together in one transaction and each alone, again and again.
        for _ in range(3):
            for place, each in enumerate(ids):
                if place != 20:
                    assert store.perform(each, Ask())["round"] == 1
            with pytest.raises(Refused, match="damaged"):
                store.perform(ids[20], Ask())
        store.check_health()
        assert store.status().damaged == [ids[20]]
        assert [one.ok for one in store.verify()] == [place != 20 for place in range(50)]
    assert "Traceback" not in caplog.text


def test_single_asks_come_in_between_a_list_over_experiments_that_are_not_in_memory(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with Store.open(url) as store, ThreadPoolExecutor(64) as threads:
        single, *ids = threads.map(lambda _: store.create(MAIL).id, range(COLD + 1))
    waits = []
    with Store.open(url) as store:
        store.perform(single, Ask())
        thread = threading.Thread(target=store.perform_many, args=([(each, Ask()) for each in ids],))
        thread.start()
        while thread.is_alive():
            began = time.monotonic()
            store.perform(single, Ask())
            waits.append(time.monotonic() - began)
            time.sleep(0.001)
    # One after another behind the list, there would be one or two.
    assert len(waits) > COLD // 50
    if SOAK:
        assert sorted(waits)[len(waits) * 99 // 100] < 0.2


def status(url: httpx.URL) -> int:
    """Return the status of an answer; 503 too where the connection is refused before the request is read."""
    try:
        return httpx.get(url, **PLAIN).status_code
    except httpx.TransportError:
        return 503


def test_connections_beyond_the_limit_are_refused_and_logged(tmp_path: Path) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); "
    with process(f"sqlite:///{tmp_path / 'store.db'}", limited + PROGRAM) as (running, address), ExitStack() as heads:
        url, server = httpx.URL(address), psutil.Process(running.pid)
        assert status(url.join("/healthz")) == 200
        # One process does everything: there is no other one that could hang.
        assert server.children() == []
        with httpx.Client(base_url=url, **PLAIN) as early:
            assert early.get("/healthz").status_code == 200
            for _ in range(300):
                head = heads.enter_context(socket.create_connection((url.host, url.port), timeout=60))
                with suppress(ConnectionError):
                    head.sendall(b"GET /healthz HTTP/1.1\r\nHost: a")
            assert status(url.join("/healthz")) == 503
            # Whoever was connected before is served: the store has the descriptors that it needs.
            assert early.post("/v1/experiments", json=SETTINGS).status_code == 201
            assert server.num_fds() < 200
        heads.close()
        until = time.monotonic() + 60
        while status(url.join("/healthz")) != 200:
            assert time.monotonic() < until
            time.sleep(0.05)
        running.kill()
        assert "a connection was refused" in running.stderr.read()
