"""The serving process: where it listens, what it refuses, how it stops, and what comes over a real socket."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from tests.service.calling import SETTINGS, problem

import aftereffect
from aftereffect.core.errors import InvalidArgument
from aftereffect.service.api.server import address_of, serve
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.store.store import Store

PROGRAM = """
from functools import partial
from aftereffect.service.api.server import Config, serve
serve(Config(), partial(print, "Aftereffect is at", flush=True))
"""
HERE = str(Path(aftereffect.__file__).parents[1])
# No proxy, and time for a server on a busy machine.
PLAIN: dict[str, Any] = {"trust_env": False, "timeout": 60}


@contextlib.contextmanager
def process(store: str, program: str = PROGRAM, **settings: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve from a process of its own, set up by environment variables; yields it and its address."""
    wanted = {"port": "0", "store": store, **settings}
    variables = {**os.environ, "PYTHONPATH": HERE} | {f"AFTEREFFECT_{name.upper()}": wanted[name] for name in wanted}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], env=variables, **pipes) as running:
        try:
            line = running.stdout.readline()
            assert line.startswith("Aftereffect is at http://"), (line, running.stderr.read())
            yield running, line.split()[-1]
        finally:
            running.kill()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    store = f"sqlite:///{tmp_path_factory.mktemp('serving') / 'service.db'}"
    with process(store) as (_, address), httpx.Client(base_url=address, **PLAIN) as client:
        yield client


def test_a_body_of_20_mb_is_refused_over_a_socket(served):
    body = b'{"name": "' + b"x" * 20_000_000 + b'"}'
    problem(served.post("/v1/experiments", content=body), 413, "too_large")
    pieces = (b" " * 100_000 for _ in range(200))
    problem(served.post("/v1/experiments", content=pieces), 413, "too_large")
    assert served.get("/healthz").status_code == 200


@pytest.mark.parametrize("target", [
    b"/v1/experiments/%ff", b"/v1/experiments/%00", b"/v1/experiments/\xe9", b"//", b"/%2e%2e/", b"http://a/v1/x",
    b"/v1/experiments?after=\xe9", b"/v1/experiments?limit=%f0",
])
def test_odd_targets_are_refused_over_a_socket(served, target):
    address = served.base_url
    with socket.create_connection((address.host, address.port), timeout=60) as line:
        host = f"{address.host}:{address.port}".encode()
        line.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: " + host + b"\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    status = int(re.match(rb"HTTP/1.1 (\d+)", answer).group(1))
    assert 400 <= status < 500, answer
    assert b"server:" not in answer.lower()


def test_a_stop_finishes_and_lets_go_of_the_store(tmp_path):
    store = f"sqlite:///{tmp_path / 'service.db'}"
    with process(store, log_requests="true") as (running, address):
        made = httpx.post(f"{address}/v1/experiments", json=SETTINGS, **PLAIN).json()["id"]
        asked = httpx.post(f"{address}/v1/experiments/{made}/ask", **PLAIN).json()
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=120)
        assert running.returncode == 0, err
        assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert {"method": "POST", "route": "/v1/experiments", "status": 201}.items() <= next(
        line for line in lines if line["message"] == "request"
    ).items()
    with Store.open(store, wait=0.1) as opened:
        assert opened.rounds(made)["items"][0]["arm"] == asked["arm"]


def test_it_listens_elsewhere_only_with_tokens(tmp_path):
    store = f"sqlite:///{tmp_path / 'service.db'}"
    with pytest.raises(ValidationError, match=r"access must not be 'off' .* but got host '0.0.0.0'"):
        Config(host="0.0.0.0", access="off")
    with pytest.raises(Refused, match="aftereffect token create NAME --scope admin"):
        serve(Config(host="0.0.0.0", store=store, port=0), print)
    with Store.open(store) as opened:
        token = opened.create_token("first", ["admin"])
    with process(store, host="0.0.0.0") as (_, address):
        assert address.startswith("http://127.0.0.1:")
        problem(httpx.get(f"{address}/v1/experiments", **PLAIN), 401, "unauthorized")
        headers = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{address}/v1/experiments", headers=headers, **PLAIN).status_code == 200
        assert sent_of_an_endless_head(address) < 16 << 20


def sent_of_an_endless_head(address: str) -> int:
    """Send a head until the server closes the connection; return how many bytes that took."""
    sent, url = 0, httpx.URL(address)
    with contextlib.suppress(ConnectionError), socket.create_connection((url.host, url.port), timeout=60) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
        while sent < 64 << 20:
            line.sendall(b"x: " + b"y" * 60_000 + b"\r\n")
            sent += 60_005
    return sent


def test_a_revoked_token_is_not_a_token(tmp_path):
    store = f"sqlite:///{tmp_path / 'service.db'}"
    with Store.open(store) as opened:
        opened.create_token("first", ["play"])
        opened.revoke_token(opened.tokens()[0].id)
    with pytest.raises(Refused, match=r"must have a token before it listens on '127.0.0.1'"):
        serve(Config(access="required", store=store, port=0), print)


def test_what_cannot_be_served_is_said(tmp_path):
    store = f"sqlite:///{tmp_path / 'service.db'}"
    with pytest.raises(Refused, match="store must be sqlite:///PATH or postgresql://"):
        serve(Config(store="http://127.0.0.1:8000"), print)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidArgument, match=f"'127.0.0.1', {port} are not"):
            serve(Config(store=store, port=port), print)
    with pytest.raises(InvalidArgument, match=r"on this machine, but 'no.such.invalid', 8000 are not"):
        serve(Config(store=store, host="no.such.invalid"), print)


def test_addresses_are_those_of_this_machine():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert address_of(Config(host="0.0.0.0"), listener) == f"http://127.0.0.1:{port}"
        assert address_of(Config(host="localhost"), listener) == f"http://localhost:{port}"
        assert address_of(Config(host="::"), listener) == f"http://[::1]:{port}"


def test_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("AFTEREFFECT_PORT", "8123")
    monkeypatch.setenv("AFTEREFFECT_ALLOWED_HOSTS", "a.example,B.example")
    monkeypatch.setenv("AFTEREFFECT_STORE", "shop.db")
    config = Config(store="other.db")
    assert (config.port, config.allowed_hosts, config.store) == (8123, ("a.example", "b.example"), "other.db")
