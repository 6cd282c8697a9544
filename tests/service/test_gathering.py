"""One write an answer: heads wait for bodies, at most a turn of the loop, and nothing is lost or reordered."""

import asyncio
from collections.abc import Callable, Iterable
from typing import cast

from aftereffect.service.api.gathering import Gathering

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


class Wire:
    """Notes the calls it gets."""

    def __init__(self) -> None:
        self.calls: list[tuple[bytes, ...]] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.calls.append((data,))

    def writelines(self, lines: Iterable[bytes]) -> None:
        self.calls.append(tuple(lines))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def sent(*steps: Callable[[Gathering], object]) -> Wire:
    """Return what went over the wire when each step was done in a turn of its own."""
    wire = Wire()

    async def all_steps() -> None:
        gathering = Gathering(cast(asyncio.Transport, wire), asyncio.get_running_loop())
        for step in steps:
            step(gathering)
            await asyncio.sleep(0)

    asyncio.run(all_steps())
    return wire


def test_a_head_and_the_body_of_the_same_turn_go_together() -> None:
    assert sent(lambda it: (it.write(HEAD), it.write(b"{}"))).calls == [(HEAD, b"{}")]


def test_a_head_without_a_body_goes_by_itself() -> None:
    assert sent(lambda it: it.write(HEAD)).calls == [(HEAD,)]


def test_a_body_that_takes_time_follows_its_head() -> None:
    wire = sent(lambda it: it.write(HEAD), lambda it: it.write(b"{"), lambda it: it.write(b"}"))
    assert wire.calls == [(HEAD,), (b"{",), (b"}",)]


def test_two_answers_in_one_turn_stay_in_order() -> None:
    wire = sent(lambda it: [it.write(part) for part in (HEAD, b"ab", HEAD, b"cd", b"ef")])
    assert b"".join(b"".join(call) for call in wire.calls) == HEAD + b"ab" + HEAD + b"cdef"


def test_a_head_is_sent_before_the_connection_is_closed() -> None:
    wire = Wire()

    async def closing() -> None:
        gathering = Gathering(cast(asyncio.Transport, wire), asyncio.get_running_loop())
        gathering.write(HEAD)
        gathering.close()
        assert (wire.calls, wire.closed, gathering.is_closing()) == ([(HEAD,)], True, True)

    asyncio.run(closing())
    assert wire.calls == [(HEAD,)]
