"""A gate before chosen system calls of a server: let them pass, hold them, or answer them with an error.

`kill -9` leaves the page cache in place, so it cannot tell a server that syncs before it answers from one
that does not. Here the server's own process asks the kernel (seccomp, with a listener) to hand every
`fdatasync`, `fsync` and `pwrite64` to the test *before* it happens. While a sync is held, no
acknowledgement may leave; a write answered with ENOSPC is a full disk; a sync answered with EIO is a dying
one. Needs neither root nor a tracer, but Linux 5.5 or later.

    server process                     kernel                    test process
    install(channel)  ── filter ──►  hands calls over ── fd ──►  Gate
    fdatasync(wal)    ───────────►   stopped           ───────►  note, then pass | hold | error
"""

import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import threading
import time
from typing import NamedTuple

# Numbers of the calls: (x86_64, aarch64); `seccomp` itself last.
NUMBERS = {"pwrite64": (18, 68), "fsync": (74, 82), "fdatasync": (75, 83), "seccomp": (317, 277)}
RECEIVE, SEND, CONTINUE = 0xC0502100, 0xC0182101, 1
ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000


def number(name: str) -> int:
    """Return a system call's number on this machine."""
    return NUMBERS[name][{"x86_64": 0, "aarch64": 1}[platform.machine()]]


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Step)))


def install(channel: int) -> None:
    """In the server, before its first thread: gate the calls, and send the listener through a socket."""
    calls = [number(name) for name in NUMBERS if name != "seccomp"]
    jumps = [_Step(0x15, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    steps = [_Step(0x20, 0, 0, 0), *jumps, _Step(0x06, 0, 0, ALLOW), _Step(0x06, 0, 0, NOTIFY)]
    program = _Program(len(steps), (_Step * len(steps))(*steps))
    libc = ctypes.CDLL(None, use_errno=True)
    # No new privileges (prctl 38): what makes a filter possible without root.
    libc.prctl(38, 1, 0, 0, 0)
    listener = libc.syscall(number("seccomp"), 1, 8, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "this kernel must allow seccomp with a listener")
    with socket.socket(fileno=channel) as sender:
        socket.send_fds(sender, [b"."], [listener])
    os.close(listener)


class Call(NamedTuple):
    """A gated call: its name, its file, when it came (monotonic seconds), and the error it was given."""

    name: str
    path: str
    at: float
    error: int


class Gate:
    """The test's side; one gate for one server process, all its calls noted in `calls`."""

    def __init__(self) -> None:
        """Begin open."""
        self._ours, self.theirs = socket.socketpair()
        self.calls: list[Call] = []
        self.errors: dict[str, int] = {}
        self.every = 1
        self._free = threading.Event()
        self._free.set()
        self._waiting = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many calls are held now."""
        return self._waiting

    def hold(self) -> None:
        """From now on, stop every sync until `release`; writes pass."""
        self._free.clear()

    def release(self) -> None:
        """Let what is held go on, and everything after it."""
        self._free.set()

    def fail(self, every: int = 1, **errors: int) -> None:
        """Answer calls, by name, with an error number, one in so many; without arguments all pass again."""
        self.errors, self.every = errors, every

    def close(self) -> None:
        """End, after the server has."""
        self._ended.set()
        self._free.set()
        self._thread.join()
        self._ours.close()
        self.theirs.close()

    def _serve(self) -> None:
        while not select.select([self._ours], [], [], 0.05)[0]:
            if self._ended.is_set():
                return
        _, (listener, *_), _, _ = socket.recv_fds(self._ours, 1, 1)
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        held: list[int] = []
        while not self._ended.is_set():
            if self._free.is_set():
                for notice in held:
                    self._answer(listener, notice, 0)
                held = []
                self._waiting = 0
            ready = poll.poll(2 if held else 20)
            if ready and ready[0][1] & select.POLLIN:
                held += self._one(listener)
                self._waiting = len(held)
            elif ready:
                break
        os.close(listener)

    def _one(self, listener: int) -> list[int]:
        """Take one call; return its notice if it is held."""
        buffer = bytearray(80)
        try:
            fcntl.ioctl(listener, RECEIVE, buffer)
            notice, pid, _, called, _, _, descriptor = struct.unpack_from("<QIIiIQQ", buffer)
            path = os.readlink(f"/proc/{pid}/fd/{descriptor}")
        except OSError as gone:
            if gone.errno in {errno.ENOENT, errno.ESRCH, errno.EINTR}:
                return []
            raise
        name = next(name for name in NUMBERS if number(name) == called)
        error = self.errors.get(name, 0) if len(self.calls) % self.every == 0 else 0
        self.calls.append(Call(name, path, time.monotonic(), error))
        if name != "pwrite64" and not error and not self._free.is_set():
            return [notice]
        self._answer(listener, notice, error)
        return []

    def _answer(self, listener: int, notice: int, error: int) -> None:
        answer = struct.pack("<QqiI", notice, 0, -error, 0 if error else CONTINUE)
        try:
            fcntl.ioctl(listener, SEND, answer)
        except OSError as gone:
            # The server was killed while it waited.
            if gone.errno != errno.ENOENT:
                raise
