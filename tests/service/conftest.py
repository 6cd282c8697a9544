"""Stores to test on: a SQLite file each time, and databases of one PostgreSQL server for the whole session."""

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.service.calling import Api, api
from tests.service.postgres import running_postgres

from aftereffect.service.settings import Design
from aftereffect.service.store.store import Store

_numbers = itertools.count(1)


@pytest.fixture
def unadvised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an adviser, as with more than 20 arms: blocks begin in round 1."""
    monkeypatch.setattr(Design, "advised", property(lambda design: False))


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    """The PostgreSQL server of the session."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def own_postgres_server() -> Iterator[Any]:
    """A PostgreSQL server that a test may kill."""
    with running_postgres() as server:
        yield server


@contextmanager
def _new_database(server: Any) -> Iterator[str]:
    name = f"fresh_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield str(server.get_uri(database=name))
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def fresh_postgres_url(postgres_server: Any) -> Iterator[str]:
    """An empty database of its own for each test."""
    with _new_database(postgres_server) as url:
        yield url


@pytest.fixture
def other_postgres_url(postgres_server: Any) -> Iterator[str]:
    """A second empty database."""
    with _new_database(postgres_server) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """An empty store of each kind."""
    name = "sqlite_url" if request.param == "sqlite" else "fresh_postgres_url"
    return str(request.getfixturevalue(name))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An open, empty store of each kind."""
    with Store.open(store_url) as opened:
        yield opened


@pytest.fixture
def call(tmp_path: Path) -> Iterator[Api]:
    """A client of an app with an empty store."""
    with api(tmp_path) as client:
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser; closed with its module, as its driver keeps an event loop in this thread."""
    from tests.service.browser import chromium

    with chromium() as opened:
        yield opened
