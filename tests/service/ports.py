"""Ports for servers that run in processes of their own, and end and start again while tests go on."""

import socket
import weakref


def kept_port(owner: object) -> int:
    """Return a port that nobody is given by chance while `owner` lives.

    One that is only looked up and let go may be another process's, or a client's end of a connection, before the
    server binds it. Here a socket stays bound to it and does not listen, so that a server which asks for the port by
    its number, with SO_REUSEADDR, gets it.
    """
    keeper = socket.socket()
    keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    keeper.bind(("127.0.0.1", 0))
    weakref.finalize(owner, keeper.close)
    return int(keeper.getsockname()[1])
