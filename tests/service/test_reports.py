"""Reports as people make them: separators, several days at once, CSV files, one step a round, rounds ahead of time."""

import random
from decimal import Decimal

import httpx
import pytest
from tests.refusals import refuses
from tests.service.calling import api, problem
from tests.service.pages import Page, get, identity, made, post
from tests.service.server import command, server

from aftereffect.service import totals
from aftereffect.service.client import Client
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask, Tell
from aftereffect.service.local import Local
from aftereffect.service.messages import MOST_ITEMS, ReportItem, Reports
from aftereffect.service.store.store import Store
from aftereffect.service.totals import MOST_TEXT, number, reports


@pytest.fixture
def call(tmp_path):
    with api(tmp_path) as opened:
        opened.store.now = lambda: "2026-03-04T18:00:00.000Z"
        yield opened


@pytest.mark.parametrize(("text", "value"), [
    ("8421", 8421.0), ("-12.5", -12.5), (" .5 ", 0.5), ("1e3", 1000.0), ("+7", 7.0), ("0,125", 0.125),
    ("12,5", 12.5), ("-0,5", -0.5), ("8421,500", 8421.5), ("8,421.50", 8421.5), ("8.421,50", 8421.5),
    ("1,234,567", 1234567.0), ("1.234.567", 1234567.0), ("8 421", 8421.0), ("8\u00a0421,5", 8421.5),
    ("8\u202f421.5", 8421.5), ("8'421.5", 8421.5), ("8.421", 8.421), ("1,234,567.8", 1234567.8),
])
def test_numbers_are_read_as_people_write_them(text, value):
    assert number("total", text) == value


@pytest.mark.parametrize("text", ["8,421", "-1,000", "999,999"])
def test_a_number_with_two_meanings_is_refused_with_both(text):
    with pytest.raises(Refused) as caught:
        number("total", text)
    bare = text.replace(",", "")
    assert caught.value.detail.endswith(f"but '{text}' can mean {bare} or {text.replace(',', '.')}")


@pytest.mark.parametrize(
    "text", ["", "1_000", "nan", "inf", "1e400", "0x10", "١٢", "12 34", "--1", "1,23,4", "1.2.3", "1,2345,6", "1,,5"]
)
def test_what_is_no_number_is_refused(text):
    with pytest.raises(Refused, match=r"total must be a number like 8421 or 0\.5, but got"):
        number("total", text)


def test_every_way_of_writing_gives_the_same_number():
    """Against Python's own formatting of thousands, for numbers of all lengths."""
    rng = random.Random(4)
    for _ in range(500):
        value = Decimal(rng.randrange(10 ** rng.randrange(1, 9))).scaleb(-2)
        english = f"{value:,.2f}"
        german = english.translate(str.maketrans(",.", ".,"))
        for text in (english, german, english.replace(",", " "), str(value)):
            assert number("total", text) == float(value), text


def items(text):
    return [(each.total, each.round, each.date, each.unit, each.arm) for each in totals.items(text)]


def test_files_in_all_their_forms():
    assert items("31.5\n28\nmissing\n\n") == [(31.5, *[None] * 4), (28.0, *[None] * 4), (None, *[None] * 4)]
    dated = [(31.5, None, "2026-03-02", None, None), (8421.25, None, "2026-03-03", None, None)]
    assert items("date,total\r\n2026-03-02,31.5\r\n2026-03-03,8421.25\r\n") == dated
    assert items("\ufeffDate;Total\n2026-03-02;31,5\n2026-03-03;8.421,25\n") == dated
    assert items('date,total\n2026-03-02,"31,5"\n2026-03-03,"8.421,25"\n') == dated
    assert items("2026-03-02\t31.5\n2026-03-03\t8421.25") == dated
    assert items("round;total\n3;8,421\n4;1,5") == [(8.421, 3, None, None, None), (1.5, 4, None, None, None)]
    full = "unit,arm,round,total,why,\nnorth,letter,3,1,rain,\nsouth,email,3,2,sun,\nnorth,,4,,,\n"
    assert items(full) == [(1.0, 3, None, "north", "letter"), (2.0, 3, None, "south", "email")]
    assert items("total\n12,5\n13") == [(12.5, *[None] * 4), (13.0, *[None] * 4)]


test_a_file_that_cannot_be_understood_is_refused = refuses([
    ("", "1 to 1,000 totals, but has 0"),
    ("\n".join(["1"] * (MOST_ITEMS + 1)), "1 to 1,000 totals, but has 1,001"),
    ("1" * (MOST_TEXT + 1), "at most 1,048,576 characters"),
    ("total\n1\nmany\n2", "report 2: total must be a number like 8421 or 0.5, but got 'many'"),
    ("date;total\n2026-03-02;\n2026-03-03;4", "report 1: total must be a number or the word missing, but it is"),
    ("total\n1.5\n2,5", "must use one decimal separator"),
    ("total\n8,421", "can mean 8421 or 8.421"),
    ("date,total\n2026-03-02,31,5", "line 1 of the totals must have 2 cells, but has 3"),
    ("3,31\n4,28", "the first line must name the columns"),
    ("date,total\n02.03.2026,5", "date must be a date like 2026-01-31"),
    ("²,5\n³,5", "total must be a number"),
    (f"{'9' * 5000},5\n{'9' * 5000},6", "total must be a number"),
    ("round,total\nfirst,5", "report 1: round must be a whole number, but got 'first'"),
    ("Datum,Region,total\n2026-03-02,Nord,5", "got 'Datum': it looks like a date: name it date, or remove it"),
    ("date,Region,total\n2026-03-02,Nord,5", "got 'Region': it may be a unit or an arm: name it unit or arm, or"),
    ("Woche;total\n1;5\n2;6", "got 'Woche': it may be the round: name it round, or remove it"),
    ("date;Umsatz\n2026-03-02;5,5", "got 'Umsatz': it may be the total: name it total, or remove it"),
    ("date,arm\n2026-03-02,a", "the file must have a column total, but has date, arm"),
    ("total\n5\n6", "a file must have the round or date of every total, or first must be given"),
    ("round,total\n1,5\n,6", "but 1 of 2 have neither: the same file again would report further rounds"),
    ("round,total\n1,5\n1,6", "report 2: a round and unit must be reported once in a file, but report 1 has them"),
], lambda text: reports(Reports(csv=text)), error=Refused, plain=True)


def test_items_and_csv_exclude_each_other():
    for given in ({}, {"csv": "1", "items": [{"total": 1}]}):
        with pytest.raises(Refused, match="exactly one of items and csv"):
            reports(Reports.model_validate(given))


def told(call, path, **body):
    return call("POST", f"{path}/reports", json=body)


@pytest.mark.usefixtures("unadvised")
def test_several_rounds_are_reported_in_one_request(call):
    path = call.create(max_delay=3, start_date="2026-03-01")
    arm = call("POST", f"{path}/ask").json()["arm"]
    done = told(call, path, csv="date,total\n2026-03-01,5\n2026-03-02,missing\n2026-03-03,7.5\n", next=True).json()
    assert [(one["round"], one["total"], one["status"], one["arm"]) for one in done["items"]] == [
        (1, 5.0, "reported", arm),
        (2, None, "missing", arm),
        (3, 7.5, "reported", arm),
    ]
    assert (done["next"]["round"], done["next"]["date"]) == (4, "2026-03-04")
    # The same file again, and longer by a day: what is known counts once.
    again = told(call, path, csv="date,total\n2026-03-01,5\n2026-03-02,missing\n2026-03-03,7.5\n2026-03-04,1").json()
    assert [one["repeated"] for one in again["items"]] == [True, True, True, False]
    assert again["next"] is None
    view = call("GET", path).json()
    assert (view["round"], view["sum_of_totals"], view["counts"]["missing"]) == (4, 13.5, 1)
    assert call.store.verify()[0].ok


def test_a_fault_in_any_report_leaves_all_of_them_out(call):
    path = call.create(max_delay=3)
    call("POST", f"{path}/ask")
    before = call.snapshot()
    for given, status, code, words in (
        ([{"total": 1}, {"total": 2, "round": 4}], 409, "not_open", "report 2: rounds must be reported in order"),
        ([{"total": 1}, {"total": 2, "unit": "9"}], 422, "invalid", "report 2: unit must be one of"),
        ([{"total": 1}, {"total": 2, "arm": "flowers"}], 409, "conflict", "report 2: arm must be "),
        ([{"total": 1}, {"total": 2, "round": 1}], 409, "conflict", "report 2: total must equal the earlier report"),
        ([{"total": 1}, {"total": 2, "date": "1999-01-01"}], 422, "invalid", "report 2: date must be that of"),
        ([{"total": 1}, {"total": True}], 422, "invalid", "items[1].total must be a finite number"),
    ):
        assert words in problem(told(call, path, items=given), status, code)
        assert call.snapshot() == before


def test_days_after_a_change_of_the_arm_need_the_arm_that_was_played(call):
    path = call.create(max_delay=0, arms=["a", "b"], seed=1)
    assert "no round had been opened" in problem(told(call, path, items=[{"total": 1}]), 409, "conflict")
    arms = [call("POST", f"{path}/ask").json()["arm"]]
    plays = [{"total": 1.0}] * 30
    detail = problem(told(call, path, items=plays), 409, "conflict")
    place = int(detail.split()[1].rstrip(":"))
    other = ({"a", "b"} - {*arms}).pop()
    assert f"round 1 played another arm, but it is missing: this round was to play {other!r}" in detail
    assert told(call, path, items=plays[: place - 1]).status_code == 200
    wrong = problem(told(call, path, items=[{"total": 1, "arm": arms[0]}]), 409, "conflict")
    assert f"arm must be {other!r}, which this round was to play, but got {arms[0]!r}" in wrong
    assert told(call, path, items=[{"total": 1, "arm": other}]).json()["items"][0]["arm"] == other


def test_units_are_reported_together(call):
    path = call.create(max_delay=2, units=["north", "south"])
    call("POST", f"{path}/ask")
    rows = [{"total": float(t), "unit": unit} for t in (1, 2) for unit in ("north", "south")]
    assert [one["round"] for one in told(call, path, items=rows).json()["items"]] == [1, 1, 2, 2]
    assert call("GET", path).json()["open_round"] is None


def test_rounds_beyond_memory_are_repeated_too(call):
    path = call.create(max_delay=0)
    call.play(path, 30, 2.0)
    done = told(call, path, items=[{"round": t, "total": 2.0} for t in range(1, 31)]).json()["items"]
    assert all(one["repeated"] for one in done)
    other = told(call, path, items=[{"round": 1, "total": 3.0}])
    assert "report 1: total must equal" in problem(other, 409, "conflict")


def test_a_report_may_bring_the_next_round_with_it(call):
    path = call.create(horizon=2)
    call("POST", f"{path}/ask")
    done = call("PUT", f"{path}/rounds/1", json={"total": 5, "next": True}).json()
    assert (done["round"], done["next"]["round"], done["next"]["experiment"]) == (1, 2, done["experiment"])
    # Repeated after a lost answer: the same next round, and no other one is opened.
    for again in (
        call("PUT", f"{path}/rounds/1", json={"total": 5, "next": True}).json(),
        told(call, path, items=[{"round": 1, "total": 5}], next=True).json(),
    ):
        assert again["next"] == done["next"]
    assert call("GET", path).json()["round"] == 2
    last = call("PUT", f"{path}/rounds/2", json={"total": 5, "next": True}).json()
    assert (last["state"], "next" in last) == ("finished", False)


def test_a_round_ahead_of_its_date_is_refused_unless_it_is_meant(call):
    path = call.create(start_date="2026-03-05")
    call("POST", f"{path}/ask")
    for refused in (
        call("PUT", f"{path}/rounds/1", json={"total": 5, "ahead": False}),
        told(call, path, items=[{"total": 5}], ahead=False),
    ):
        assert "round 1 has the date 2026-03-05, but today is 2026-03-04" in problem(refused, 409, "ahead")
    assert call("PUT", f"{path}/rounds/1", json={"total": 5}).status_code == 200
    assert call.store.verify()[0].ok
    # Today's round is not ahead, and without a start date rounds have the date of their opening.
    for start in ("2026-03-04", None):
        other = call.create(start_date=start)
        call("POST", f"{other}/ask")
        assert call("PUT", f"{other}/rounds/1", json={"total": 5, "ahead": False}).status_code == 200


def test_client_and_local_report_alike(tmp_path):
    with server(f"sqlite:///{tmp_path / 'a.db'}") as address:
        for service in (Client(address), Local.open(str(tmp_path / "b.db"))):
            with service:
                one = service.create(name="x", arms=["a", "b"], high=9, max_delay=3, seed=1, start_date="2999-01-01").id
                service.ask(one)
                with pytest.raises(Refused) as caught:
                    service.tell(one, 1, 2.0, ahead=False)
                assert caught.value.code == "ahead"
                assert [service.tell(one, 1, 2.0, next=True).next.round for _ in range(2)] == [2, 2]
                with pytest.raises(Refused) as caught:
                    service.tell_many(one, csv="3\n4")
                assert (caught.value.code, caught.value.field) == ("invalid", "csv")
                for _ in range(2):
                    done = service.tell_many(one, csv="3\n4", first=2, next=True)
                    assert ([each.total for each in done.items], done.next.round) == ([3.0, 4.0], 4)
                assert service.tell_many(one, [{"total": 5}]).next is None


def test_the_command_line_uploads_a_file(tmp_path):
    store, file = ("--store", str(tmp_path / "a.db")), tmp_path / "totals.csv"
    command("init", "mail", "--arm", "a", "--arm", "b", "--high", "50", "--max-delay", "3", "--seed", "7", *store)
    shown = command("ask", *store).out
    arm = shown.partition("play ")[2].partition(".")[0]
    done = command("tell", "1", "31,5", "--next", *store).out
    assert done.startswith(f"Round 1: 31.5 is recorded for {arm}.\nRound 2 (")
    assert f"): play {arm}." in done
    file.write_text("total\n28\n400\n", encoding="utf-8")
    assert "or first must be given" in command("upload", "mail", str(file), *store).err
    done = command("upload", "mail", str(file), "--first", "2", "--next", *store)
    assert "2 reports of rounds 2 to 3 are recorded." in done.out
    assert "Round 3: 400 is outside [0, 200]" in done.out
    assert f"play {arm}." in done.out
    assert command("upload", str(tmp_path / "none.csv"), *store).code == 3
    file.write_bytes(b"total\n\xff\n")
    assert "FILE must be UTF-8 text, but byte 6 is not" in command("upload", str(file), *store).err
    later = ("--high", "1", "--max-delay", "1", "--start-date", "2999-01-01")
    command("init", "later", "--arm", "a", "--arm", "b", *later, *store)
    command("ask", "later", *store)
    assert command("tell", "later", "1", "0.5", *store).code == 4
    assert command("tell", "later", "1", "0.5", "--ahead", *store).code == 0


def test_the_page_takes_the_lines_of_a_file(call):
    path = made(call, max_delay=3, start_date="2026-03-01")
    call.store.perform(identity(path), Ask())
    sent = post(call, f"{path}/reports", {"lines": "date;total\r\n2026-03-01;31,5\r\n2026-03-02;28\r\n"})
    assert sent.headers["location"] == f"{path}?told=2&since=1"
    words = get(call, sent.headers["location"]).words
    assert "2 reports of rounds 1 to 2 are recorded. Round 3 (2026-03-03): play" in words
    # The form names the round it was shown for, so that sent twice it counts once.
    assert [tag["value"] for tag in get(call, path).all("input") if tag.get("name") == "first"] == ["3"]
    sent = [post(call, f"{path}/reports", {"lines": "7", "first": "3"}) for _ in range(2)]
    assert [each.headers["location"] for each in sent] == [f"{path}?told=3&since=3"] * 2
    refused = post(call, f"{path}/reports", {"lines": "7\nviel"})
    assert refused.status_code == 422
    page = Page(refused.text)
    assert "Report 2: total must be a number like 8421 or 0.5, but got 'viel'." in page.words
    assert "7\nviel" in page.words
    assert call.store.experiment(identity(path)).open_round == 4
    assert "Please fill in Totals." in Page(post(call, f"{path}/reports", {"lines": ""}).text).words
    assert post(call, f"{path}/reports", {"lines": "1" * (1 << 20)}).status_code == 413


def test_the_page_asks_before_a_round_ahead_of_its_date(call):
    path = made(call, start_date="2026-03-04")
    call.store.perform(identity(path), Ask())
    sent = post(call, f"{path}/tell", {"round": "1", "total": "31,5"})
    assert "Round 1: 31.5 is recorded for" in get(call, sent.headers["location"]).words
    assert "Round 2 (2026-03-05): play" in get(call, sent.headers["location"]).words
    for word, fields in (("tell", {"total": "5"}), ("missing", {})):
        asked = post(call, f"{path}/{word}", {"round": "2", **fields})
        assert asked.status_code == 409
        assert "Round 2 has the date 2026-03-05, but today is 2026-03-04" in Page(asked.text).words
        assert {"name": "anyway", "value": "yes", "class": "quiet"} in Page(asked.text).all("button")
    assert not [button for button in get(call, path).all("button") if button.get("name") == "anyway"]
    assert post(call, f"{path}/tell", {"round": "2", "total": "5", "anyway": "yes"}).status_code == 303
    assert call.store.experiment(identity(path)).round == 3


def test_an_empty_form_names_every_missing_field_by_its_label(call):
    empty = {"name": "", "arms": "", "length": "", "round_length": "", "low": "", "high": " ", "carry": "window"}
    page = Page(post(call, "/experiments/new", empty).text)
    labels = ["Name", "Arms", "Length", "One round lasts"]
    labels += ["Smallest effect of one action", "Largest effect of one action"]
    assert f"Please fill in {', '.join(labels[:-1])} and {labels[-1]}." in page.words
    marked = {tag["id"] for _, tag in page.tags if tag.get("aria-invalid")}
    assert marked == {f"field-{name}" for name in ("name", "arms", "length", "round_length", "low", "high")}
    words = " ".join(page.words.split())
    assert all(label in words.partition("Please fill in")[2].partition(".")[2] for label in labels)
    path = made(call)
    call.store.perform(identity(path), Ask())
    told = post(call, f"{path}/tell", {"round": "1", "total": " "})
    assert "Please fill in Total of round 1." in Page(told.text).words
    units = made(call, units=["north", "south"])
    call.store.perform_many([(identity(units), Ask()), (identity(units), Tell(1, 1.0, "north"))])
    assert "Please fill in Total of unit south." in Page(post(call, f"{units}/tell", {"round": "1"}).text).words
    detail = problem(call("POST", "/v1/experiments", json={"max_delay": 1}), 422, "invalid")
    assert detail == "arms, name must be given, but they are missing"


def test_reports_that_name_no_rounds_are_numbered_for_each_unit():
    given = Reports(items=[ReportItem(total=1.0, unit=unit) for unit in ("n", "s", "n")], first=7)
    assert [item.round for item in reports(given).items] == [7, 7, 8]
    assert [item.round for item in reports(Reports(csv="5\n6", first=3)).items] == [3, 4]
    dated = "date,total\n2026-03-01,5"
    assert reports(Reports(csv=dated, first=7)) == reports(Reports(csv=dated))


def test_an_export_can_be_sent_back(sqlite_url):
    with Store.open(sqlite_url) as store:
        one = store.create({"name": "x", "arms": ["a", "b"], "high": 9, "max_delay": 2, "units": ["n", "s"]}).id
        store.perform_many([(one, Ask()), (one, Tell(1, 3.0, "n")), (one, Tell(1, 4.0, "s"))])
        text = b"".join(store.export(one, "csv")).decode()
        done = store.perform(one, reports(Reports(csv=text, restate=True)))
    assert [(item["total"], item["repeated"]) for item in done["items"]] == [(3.0, True), (4.0, True)]


def test_reports_are_sent_again_with_their_key():
    sent = []

    def lose(request):
        sent.append(request)
        raise httpx.ReadError("lost")

    for items in ([{"total": 5}], [{"total": 5, "round": 2}], None):
        sent.clear()
        client = Client("http://x", retries=2, transport=httpx.MockTransport(lose), sleep=lambda _: None)
        with client, pytest.raises(Refused):
            client.tell_many("a", items, csv=None if items else "5")
        assert len(sent) == 3
        assert len({request.headers["Idempotency-Key"] for request in sent}) == 1

