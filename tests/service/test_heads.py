"""Heads of requests on a real socket: whoever never ends one is cut off, by the clock or by its bytes, nobody else."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from aftereffect.service.api.heads import BoundedHeads


class Hasty(BoundedHeads):
    most_seconds = 0.4


class Patient(BoundedHeads):
    """So much time that a head in two pieces gets through on a busy machine."""

    most_seconds = 1.2


IDLE = 2
"""Seconds that uvicorn leaves an idle connection open."""


async def echo(scope, receive, send):
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    if scope["path"] == "/slow":
        await asyncio.sleep(1.5 * Patient.most_seconds)
    words = str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(words))]})
    await send({"type": "http.response.body", "body": words})


@contextlib.contextmanager
def listening(heads: type[BoundedHeads], idle: int) -> Iterator[int]:
    settings = uvicorn.Config(echo, http=heads, timeout_keep_alive=idle, log_config=None, lifespan="off", ws="none")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        running = uvicorn.Server(settings)
        thread = threading.Thread(target=running.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        running.should_exit = True
        thread.join(60.0)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def hasty():
    with listening(Hasty, IDLE) as port:
        yield port


@pytest.fixture(scope="module")
def patient():
    with listening(Patient, 60) as port:
        yield port


@pytest.fixture
def line(patient):
    with connected(patient) as opened:
        yield opened


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def answer(line: socket.socket) -> bytes:
    """Read one answer of `echo`, a digit or more, however it comes in pieces."""
    read = b""
    while not read.partition(b"\r\n\r\n")[2]:
        read += line.recv(65536)
    length = int(read.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(read.partition(b"\r\n\r\n")[2]) < length:
        read += line.recv(65536)
    return read.partition(b"\r\n\r\n")[2]


HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET", HEAD, b"\r\n"])
@pytest.mark.parametrize("before", [b"", HEAD + b"\r\n"])
def test_a_head_that_does_not_end_is_cut_off(hasty, before, sent):
    began = time.monotonic()
    with connected(hasty) as line:
        if before:
            line.sendall(before)
            assert answer(line) == b"0"
        line.sendall(sent)
        # Without the clock on heads it would stay open for ever.
        assert line.recv(1) == b""
    # Between requests nothing is sent, and uvicorn's own timeout holds.
    assert time.monotonic() - began > 0.9 * (IDLE if before and not sent else Hasty.most_seconds)


def test_a_head_without_end_is_cut_off_by_its_bytes(line):
    sent = 0
    with contextlib.suppress(ConnectionError):
        line.sendall(HEAD)
        while sent < 64 << 20:
            line.sendall(b"x: " + b"y" * 60_000 + b"\r\n")
            sent += 60_005
    assert sent < 16 << 20


def test_bodies_slow_answers_and_further_requests_are_not_cut_off(line):
    line.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n")
    for _ in range(3):
        line.sendall(b"x" * 1_000_000)
        time.sleep(0.4 * Patient.most_seconds)
    assert answer(line) == b"3000000"
    line.sendall(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer(line) == b"0"
    time.sleep(1.25 * Patient.most_seconds)
    line.sendall(HEAD)
    time.sleep(0.1 * Patient.most_seconds)
    line.sendall(b"\r\n")
    assert answer(line) == b"0"
