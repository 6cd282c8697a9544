"""One kit over both ways to the service, a client of a real server and the database itself: they answer alike."""

import csv
import io
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.service.server import server

from aftereffect.core.errors import AftereffectError
from aftereffect.service.client import Client
from aftereffect.service.errors import Refused
from aftereffect.service.local import Local, open_local
from aftereffect.service.messages import Overview, Page, Report, Row, Turn, Verdict
from aftereffect.service.protocol import Service

SETTINGS: dict[str, Any] = {"name": "mailings", "arms": ["letter", "email"], "high": 50.0, "max_delay": 2, "seed": 7}


@pytest.fixture(params=["client", "local"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    store = str(tmp_path / "shop.db")
    if request.param == "client":
        with server(store) as address, Client(address) as client:
            yield client
    else:
        with Local.open(store) as local:
            yield local


def refused(code: str, status: int, call: Any, *arguments: Any, **named: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*arguments, **named)
    assert (caught.value.code, caught.value.status) == (code, status)
    return caught.value


def test_ask_and_tell_are_typed_and_repeatable(service: Service) -> None:
    made = service.create(**SETTINGS)
    assert isinstance(made, Overview)
    assert (made.name, made.state, made.arms, made.units) == ("mailings", "running", ["letter", "email"], ["1"])
    turn = service.ask(made.id)
    assert turn == service.ask(made.id)
    assert isinstance(turn, Turn)
    assert (turn.experiment, turn.round, turn.draw, turn.block, turn.probability) == (made.id, 1, True, 0, 0.5)
    report = service.tell(made.id, 1, 31.5)
    assert isinstance(report, Report)
    assert (report.round, report.total, report.status, report.repeated) == (1, 31.5, "reported", False)
    assert service.tell(made.id, 1, 31.5).repeated is True
    refused("conflict", 409, service.tell, made.id, 1, 32.0)
    assert service.amend(made.id, 1, 32.0).total == 32.0
    assert service.amend(made.id, 1, 32.0).repeated is True
    assert service.experiment(made.id).counts["amended"] == 1


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_table_is_reported_as_a_file_is(service: Service, library: Any) -> None:
    made = service.create(**SETTINGS, start_date="2026-03-02")
    days = [date(2026, 3, 2), date(2026, 3, 3), date(2026, 3, 4)]
    arm = service.ask(made.id).arm
    done = service.tell_many(made.id, library({"date": days, "total": [31.5, None, 28], "arm": [arm] * 3}))
    assert [(row.round, row.total, row.status) for row in done.items] == [
        (1, 31.5, "reported"), (2, None, "missing"), (3, 28.0, "reported")
    ]  # fmt: skip
    found = refused("invalid", 422, service.tell_many, made.id, library({"date": days, "sales": [1, 2, 3]}))
    assert "'sales'" in found.detail


def test_an_amend_names_the_total_it_corrects(service: Service) -> None:
    made = service.create(**SETTINGS, units=["n", "s"])
    service.ask(made.id)
    service.tell(made.id, 1, 5.0, "n")
    service.tell(made.id, 1, None, "s")
    assert service.amend(made.id, 1, 6.0, "n", was=5.0).total == 6.0
    # It holds already: whether this is a repetition or another's amend makes no difference.
    assert service.amend(made.id, 1, 6.0, "n", was=5.0).repeated is True
    refusal = refused("conflict", 409, service.amend, made.id, 1, 7.0, "n", was=5.0)
    assert "6.0" in refusal.detail
    refused("conflict", 409, service.amend, made.id, 1, 7.0, "s", was=0.0)
    assert service.amend(made.id, 1, 7.0, "s", was=None).total == 7.0
    refused("invalid", 422, service.amend, made.id, 1, 7.0, "s", was="much")
    rows = service.rounds(made.id).items
    assert [(row.unit, row.total) for row in rows] == [("n", 6.0), ("s", 7.0)]


def test_a_unit_whose_name_is_zero_is_amended_as_any_other(service: Service) -> None:
    made = service.create(**SETTINGS, units=["1", "0"])
    service.ask(made.id)
    service.tell_many(made.id, [{"round": 1, "unit": "1", "total": 5.0}, {"round": 1, "unit": "0", "total": 8.0}])
    assert service.amend(made.id, 1, 7.0, 0).total == 7.0
    assert [row.total for row in service.rounds(made.id).items] == [5.0, 7.0]


def test_what_is_refused_is_refused_alike(service: Service) -> None:
    made = service.create(**SETTINGS)
    for many in (partial(service.tell_many, made.id), service.bulk_ask, service.bulk_tell):
        assert refused("invalid", 422, many, 5).detail == "items must be a list, but got 5"
    assert refused("invalid", 422, service.tell_many, made.id, [5]).detail.startswith("items[0] must be a mapping")
    assert "a setting to correct must be given" in refused("invalid", 422, service.correct, made.id).detail
    refused("not_found", 404, service.ask, "nobody")
    refused("not_found", 404, service.experiment, "../../etc/passwd")
    refused("invalid", 422, service.create, name="x", arms=["one"], max_delay=1)
    refused("invalid", 422, service.create, **SETTINGS, colour="red")
    refused("not_open", 409, service.tell, made.id, 1, 3.0)
    refused("not_found", 404, service.away, made.id, "fax")
    service.pause(made.id)
    refused("wrong_state", 409, service.ask, made.id)
    assert service.experiment(made.id).round == 0


def test_states(service: Service) -> None:
    made = service.create(**SETTINGS, draft=True)
    assert made.state == "draft"
    assert service.start(made.id).state == "running"
    assert service.pause(made.id).state == "paused"
    assert service.resume(made.id).state == "running"
    assert service.away(made.id, "email").away == ["email"]
    assert service.back(made.id, "email").away == []
    done = service.finish(made.id)
    assert done.state == "finished"
    assert service.learned(made.id).sentences == ["No unit has reported two totals yet."]


def test_units_as_numbers_and_as_names(service: Service) -> None:
    made = service.create(**SETTINGS, units=2)
    refused("invalid", 422, service.ask, made.id, "west")
    assert service.ask(made.id, 2).unit == "2"
    assert set(service.ask(made.id).arms or ()) == {"1", "2"}
    assert service.tell(made.id, 1, None, unit=1).status == "missing"
    assert service.tell(made.id, 1, 3.0, unit="2").open_round is None


def test_lists_come_page_by_page(service: Service) -> None:
    ids = [service.create(**{**SETTINGS, "name": f"number {n}"}).id for n in range(5)]
    first = service.experiments(limit=3)
    second = service.experiments(after=first.next, limit=3)
    assert [one.id for one in (*first.items, *second.items)] == ids
    assert second.next is None
    service.pause(ids[2])
    assert [one.id for one in service.experiments(state="paused").items] == [ids[2]]


def test_the_record_can_be_read_exported_and_verified(service: Service) -> None:
    made = service.create(**SETTINGS)
    for day in range(1, 8):
        service.ask(made.id)
        service.tell(made.id, day, day / 2)
    page = service.rounds(made.id, limit=5)
    rest = service.rounds(made.id, after=page.next, limit=5)
    rows = [*page.items, *rest.items]
    assert all(isinstance(row, Row) for row in rows)
    assert [(row.round, row.total) for row in rows] == [(day, day / 2) for day in range(1, 8)]
    table = list(csv.DictReader(io.StringIO(service.export(made.id).decode())))
    assert [(row["round"], float(row["total"])) for row in table] == [(str(day), day / 2) for day in range(1, 8)]
    assert service.export(made.id, "parquet")[:4] == b"PAR1"
    assert [event.seq for event in service.events(made.id, after=10).items] == [11, 12, 13, 14]
    (verdict,) = service.verify(made.id)
    assert isinstance(verdict, Verdict)
    assert (verdict.experiment, verdict.ok, verdict.rounds) == (made.id, True, 7)
    service.create(**SETTINGS)
    assert [one.ok for one in service.verify()] == [True, True]


def test_bulk_is_answered_item_by_item(service: Service) -> None:
    one, two = service.create(**SETTINGS).id, service.create(**SETTINGS, units=["n", "s"]).id
    asked = service.bulk_ask([one, {"experiment": two, "unit": "s"}, "nobody"])
    assert [turn.unit for turn in asked[:2] if isinstance(turn, Turn)] == ["1", "s"]
    assert isinstance(asked[2], Refused)
    assert asked[2].code == "not_found"
    told = service.bulk_tell([
        {"experiment": one, "round": 1, "total": 3.5},
        {"experiment": two, "round": 1, "total": None, "unit": "s"},
        {"experiment": one, "round": 1, "total": 4.5},
    ])
    assert [(report.experiment, report.total) for report in told[:2] if isinstance(report, Report)] == [
        (one, 3.5),
        (two, None),
    ]
    assert isinstance(told[2], Refused)
    assert told[2].code == "conflict"


@pytest.mark.parametrize("limit", [0, 1001, "many", True, 1.0])
def test_parameters_have_the_same_rules_with_and_without_a_server(service: Service, limit: Any) -> None:
    made = service.create(**SETTINGS).id
    for call in (service.experiments, partial(service.rounds, made), partial(service.events, made)):
        with pytest.raises(Refused, match="limit must be"):
            call(limit=limit)
    with pytest.raises(Refused, match="format must be one of"):
        service.export(made, "xml")
    with pytest.raises(Refused, match="state must be one of"):
        service.experiments(state="asleep")
    with pytest.raises(Refused, match="round must be at least 1"):
        service.tell(made, 0, 1.0)
    with pytest.raises(AftereffectError, match="round must be an int, but got True"):
        service.amend(made, True, 1.0, was=2.0)
    with pytest.raises(AftereffectError, match="surrogates"):
        service.experiments(search="\ud800")
    refused("not_found", 404, service.compare, [made, None])


def test_series(service: Service) -> None:
    one = service.create(**SETTINGS).id
    service.ask(one)
    service.tell(one, 1, 2.5)
    assert service.series(one).data["total"] == [2.5]


def test_plan(service: Service) -> None:
    found = service.plan(3, carry_over={"half_life": "2 days"}, units=4)
    assert (found.max_delay, found.shortest_block) == (6, 7)
    refused("invalid", 422, service.plan, 3, player="advised")
    assert service.plan(3).sentences[0].startswith("Every total counts.")


def test_tokens(service: Service) -> None:
    made = service.create_token("till", ["play"])
    (listed,) = service.tokens()
    assert (listed.name, listed.scopes) == ("till", ["play"])
    assert made.token not in str(listed)
    service.revoke_token(listed.id)
    refused("not_found", 404, service.revoke_token, "nobody")


@pytest.mark.parametrize("data", [None, [], "text", {}, {"round": 1}])
def test_an_answer_that_lacks_what_it_must_have_is_an_error(data: Any) -> None:
    with pytest.raises(Refused, match="must"):
        Turn.read(data)


@pytest.mark.parametrize("data", [None, {}, {"items": None}, {"items": [{}]}])
def test_a_page_that_is_none_is_an_error(data: Any) -> None:
    with pytest.raises(Refused, match="must"):
        Page[Row].read(data)


def test_a_server_that_has_the_file_is_spoken_to(tmp_path: Path) -> None:
    store = str(tmp_path / "shop.db")
    with server(store) as address:
        found = open_local(store)
        assert isinstance(found, Client)
        assert found.url == address
        made = found.create(**SETTINGS)
        found.close()
    with Local.open(store) as local:
        assert local.experiment(made.id).name == "mailings"
