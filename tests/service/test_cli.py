"""The verbs: the same output on a file, on a server by URL and beside a server; stable exit statuses."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.service.server import Ended, command, server
from tests.service.shell import ROOT

from aftereffect.service.cli import VERBS
from aftereffect.service.cli.output import exit_status
from aftereffect.service.errors import CODES, Refused

INIT = ("init", "mailings", "--arm", "letter", "--arm", "email", "--high", "50", "--window", "2 days", "--seed", "7")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, store: str) -> Iterator[str]:
    """A store to give to --store: a file, or a server's address."""
    if request.param == "file":
        yield store
        return
    with server(store) as address:
        yield address


def ok(*words: str) -> str:
    done = command(*words)
    assert done.code == 0, done.err
    assert done.err == ""
    return done.out


def told(*words: str) -> Any:
    return json.loads(ok(*words, "-f", "json"))


def refused(code: int, *words: str) -> Ended:
    done = command(*words)
    assert done.code == code, done.out + done.err
    assert done.out == ""
    assert done.err.startswith("aftereffect: ")
    return done


def test_text_answers_are_the_same_wherever_the_store_is(tmp_path: Path, fresh_postgres_url: str) -> None:
    """One script, four ways to a store; ids and moments differ, words do not."""
    script = "ask, start, ask, tell 1 31.5, tell 1 31.5, tell 1 30, amend 1 30, ask, tell 2 -5, tell 3 4, ask, "
    script += "tell 3 missing, away email, away letter, away fax, back email, pause, ask, resume, ask, status, export, "
    script += "finish, ask, status nothing, verify"
    seen: list[list[tuple[int, str, str]]] = []
    for kind in ("file", "server", "beside", "postgres"):
        store = fresh_postgres_url if kind == "postgres" else str(tmp_path / f"{kind}.db")
        with server(store) if kind in ("server", "beside") else nullcontext("") as address:
            place = address if kind == "server" else store
            name = told(*INIT, "--draft", "--store", place)["id"]
            ended = [command(*words.split(), "--store", place) for words in script.split(", ")]
        seen.append([(done.code, _lasting(done.out, name), _lasting(done.err, name)) for done in ended])
    assert seen[0] == seen[1] == seen[2] == seen[3]
    codes = [code for code, _, _ in seen[0]]
    assert codes == [4, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 3, 0, 0, 4, 0, 0, 0, 0, 0, 4, 3, 0]


def _lasting(text: str, name: str) -> str:
    """Return a text without the id and the moments in it."""
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.+Z]+", "MOMENT", text.replace(name, "ID"))


# Written out by hand, as docs/guides/operate.md promises them.
EXITS = {"internal": 1, "not_found": 3, "corrupt": 6}
EXITS |= dict.fromkeys(("invalid", "unauthorized", "forbidden", "too_large", "bad_request", "not_allowed"), 2)
EXITS |= dict.fromkeys(("timeout", "unsupported"), 2)
EXITS |= dict.fromkeys(("conflict", "closed", "wrong_state", "not_open", "ahead"), 4)
EXITS |= dict.fromkeys(("too_many", "busy", "full", "unreachable", "unreadable"), 5)


def test_every_refusal_has_its_exit_status() -> None:
    assert {code: exit_status(Refused(code, "no")) for code in CODES} == EXITS
    assert exit_status(Refused.from_problem(503, {"code": "of_a_newer_server"})) == 5


def test_asking_in_the_wrong_folder_makes_no_store(store: str) -> None:
    for words in (["ask"], ["tell", "1", "2"], ["status"], ["verify"], ["export"], ["token", "list"]):
        done = refused(3, *words, "--store", store)
        assert "there is no file" in done.err
        assert list(Path(store).parent.iterdir()) == []


def test_nobody_answers_at_the_address() -> None:
    done = command("ask", "--store", "http://127.0.0.1:9")
    assert done.code == 5
    assert "must be a running server" in done.err


def test_the_store_comes_from_the_environment(store: str) -> None:
    assert command(*INIT, env={"AFTEREFFECT_STORE": store}).code == 0
    assert told("ask", "--store", store)["round"] == 1


def test_which_experiment_is_meant(place: str) -> None:
    first = told(*INIT, "--store", place)["id"]
    other = told(*INIT[:1], "prices", *INIT[2:], "--store", place)["id"]
    done = refused(2, "ask", "--store", place)
    assert first in done.err
    assert other in done.err
    assert told("ask", "prices", "--store", place)["experiment"] == other
    second = told(*INIT, "--store", place)["id"]
    done = refused(2, "tell", "mailings", "1", "2", "--store", place)
    assert f"{first} (mailings, running), {second} (mailings, running)" in done.err
    assert told("ask", second, "--store", place)["experiment"] == second
    assert "no experiment" not in refused(3, "ask", "../mailings", "--store", place).err
    assert len(told("status", "--store", place)["items"]) == 3


def test_a_name_may_look_like_an_option_or_a_path(store: str) -> None:
    name = "a/b ?c=..&é"
    told("init", name, *INIT[2:], "--store", store)
    told(*INIT, "--store", store)
    with server(store) as address:
        for place in (store, address):
            assert told("ask", name, "--store", place)["round"] == 1


def test_totals_may_be_negative_and_are_never_guessed(place: str) -> None:
    told(*INIT, "--low", "-100", "--store", place)
    ok("ask", "--store", place)
    for bad in ("nan", "inf", "1e999", "1_000", "0x10", "two", "", "1,500", "True", "１"):
        done = refused(2, "tell", "1", bad, "--store", place)
        assert "TOTAL (or the word missing) must be a number like 8421 or 0.5, but" in done.err
    assert told("tell", "1", "-12.5", "--store", place)["total"] == -12.5
    ok("ask", "--store", place)
    assert told("tell", "mailings", "2", "-1e1", "--store", place)["total"] == -10.0


@pytest.mark.parametrize("bad", ["0", "-1", "1.5", "first", "", "99999999999999999999"])
def test_a_round_is_a_whole_number(store: str, bad: str) -> None:
    told(*INIT, "--store", store)
    assert "ROUND must be " in refused(2, "tell", bad, "5", "--store", store).err


@pytest.mark.parametrize("words", ["tell 1", "tell 1 -inf", "tell a b 1 2", "tell 1 2 --untt x", "ask a b", "asks"])
def test_bad_usage_ends_in_two(store: str, words: str) -> None:
    told(*INIT, "--store", store)
    assert command(*words.split(), "--store", store).code == 2


@pytest.mark.parametrize(("changed", "message"), [
    (["--max-delay", "3"], "max_delay must be omitted if carry_over (a window or half-life) is given"),
    (["--units", "north,north"], "units must be distinct"),
    (["--start-date", "tomorrow"], "start_date must be a date"),
])
def test_what_init_refuses_makes_no_store(store: str, changed: list[str], message: str) -> None:
    assert message in refused(2, *INIT, *changed, "--store", store).err
    assert list(Path(store).parent.iterdir()) == []


def test_carry_over_is_said_in_one_way_or_learned(store: str) -> None:
    words = ["init", "a", "--arm", "x", "--arm", "y", "--high", "1", "--store", store]
    made = told("init", "a", "--arm", "x", "--arm", "y", "--store", store)
    assert (made["player"], made["max_delay"], made["high"]) == ("model", None, None)
    assert told(*words, "--half-life", "2 days")["max_delay"] == 6
    assert told(*words, "--window", "3 weeks", "--round-length", "1 week")["max_delay"] == 3
    assert told(*words, "--max-delay", "0")["max_delay"] == 0


def test_export_as_csv_and_parquet(place: str, tmp_path: Path) -> None:
    told(*INIT, "--store", place)
    for day in (1, 2, 3):
        ok("ask", "--store", place)
        ok("tell", str(day), str(day / 4), "--store", place)
    assert pl.read_csv(ok("export", "--store", place).encode())["total"].to_list() == [0.25, 0.5, 0.75]
    out = tmp_path / "rounds.parquet"
    ok("export", "--out", str(out), "--store", place)
    assert pl.read_parquet(out)["total"].to_list() == [0.25, 0.5, 0.75]
    refused(2, "export", "-f", "parquet", "--store", place)


def in_a_process(*words: str, out: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a person does; out: the file its output goes to."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with open(out, "w") if out else nullcontext(subprocess.PIPE) as stdout:
        return subprocess.run(
            [sys.executable, "-m", "aftereffect", *words],
            env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120,
        )


def test_a_file_that_cannot_be_written_is_named(store: str, tmp_path: Path) -> None:
    told(*INIT, "--store", store)
    for out, code, words in (
        ("/dev/full", 5, "No space left on device"),
        (str(tmp_path / "nowhere" / "a.csv"), 3, "No such file or directory"),
        (str(tmp_path), 2, "Is a directory"),
    ):
        done = refused(code, "export", "--out", out, "--store", store)
        assert done.err == f"aftereffect: {out!r} could not be written or read: {words}\n"


def test_an_output_that_cannot_be_written_is_an_error_and_no_traceback(store: str) -> None:
    told(*INIT, "--store", store)
    for words in (["export"], ["status"]):
        done = in_a_process(*words, "--store", store, out="/dev/full")
        assert done.returncode == 5, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "the output could not be written or read: No space left on device" in done.stderr


def test_every_verb_answers_in_json() -> None:
    """The export's format is that of its file."""
    verbs = [verb.__name__.rstrip("_").replace("_", "-") for verbs in VERBS.values() for verb in verbs]
    for words in [*verbs, "token create", "token list", "token revoke"]:
        listed = command(*words.split(), "--help").out
        assert "--format" in listed, words
        assert ("json" in listed) == (words != "export"), words


def test_backups_in_json(store: str, tmp_path: Path) -> None:
    identity, copy = told(*INIT, "--store", store)["id"], str(tmp_path / "copy.db")
    assert told("backup", copy, "--store", store) == {"file": copy, "bytes": Path(copy).stat().st_size}
    done = command("backup", copy, "--store", store, "-f", "json")
    assert (done.code, json.loads(done.err)["code"]) == (4, "conflict")
    found = told("restore-backup", copy, "--store", str(tmp_path / "new.db"))
    assert [one["experiment"] for one in found["items"]] == [identity]
    assert found["tokens"] == 0
    done = command("restore-backup", copy, "--store", str(tmp_path / "new.db"), "-f", "json")
    assert (done.code, json.loads(done.err)["code"]) == (4, "conflict")


def test_serve_says_where_it_is_in_json(store: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = ["serve", "--port", "0", "--store", store, "-f", "json"]
    with subprocess.Popen(
        [sys.executable, "-m", "aftereffect", *words], env=environment, stdout=subprocess.PIPE, text=True
    ) as running:
        address = json.loads(running.stdout.readline())["address"]
        assert told("status", "--store", address)["items"] == []
        running.terminate()


def test_a_refusal_in_json_is_all_there_is_to_read(store: str) -> None:
    """Also where the log would have something to say."""
    told(*INIT, "--store", store)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'not today'); END")
    done = in_a_process("ask", "--store", store, "-f", "json")
    assert json.loads(done.stderr)["detail"].endswith("not today")
    done = in_a_process("ask", "--store", store)
    assert len(done.stderr.splitlines()) == 1


def test_tokens_come_back_with_a_backup_and_it_is_said(store: str, tmp_path: Path) -> None:
    told(*INIT, "--store", store)
    for name in ("till", "screen", "old"):
        ok("token", "create", name, "--scope", "play", "--store", store)
    ids = {one["name"]: one["id"] for one in told("token", "list", "--store", store)["items"]}
    ok("token", "revoke", ids["old"], "--store", store)
    copy, new, none = (str(tmp_path / name) for name in ("copy.db", "new.db", "none.db"))
    ok("backup", copy, "--store", store)
    ok("token", "revoke", ids["till"], "--store", store)
    said = ok("restore-backup", copy, "--store", new)
    assert "2 tokens are valid as at the time of the backup, even if revoked since" in said
    found = told("token", "list", "--store", new)["items"]
    assert {one["name"]: one["revoked_at"] is None for one in found} == {"till": True, "screen": True, "old": False}
    assert "token" not in ok("restore-backup", copy, "--store", none, "--without-tokens")
    assert told("token", "list", "--store", none)["items"] == []
    assert told("verify", "--store", none)[0]["ok"]
    # A token that was there before is none of the backup's.
    own = str(tmp_path / "own.db")
    ok("token", "create", "own", "--scope", "play", "--store", own)
    assert "token" not in ok("restore-backup", copy, "--store", own, "--without-tokens")
    assert [one["name"] for one in told("token", "list", "--store", own)["items"]] == ["own"]


def test_plan_says_what_carry_over_leads_to() -> None:
    lines = ok("plan", "--arms", "3", "--window", "7 days").splitlines()
    assert any("at least 8 rounds" in line for line in lines)
    assert told("plan", "--arms", "3", "--max-delay", "7")["shortest_block"] == 8
    paper = ("--player", "paper", "--horizon", "100")
    assert told("plan", "--arms", "3", "--max-delay", "7", *paper)["shortest_block"] == 15
    gains, costs = told("plan", "--max-delay", "7"), told("plan", "--max-delay", "7", "--direction", "minimize")
    assert costs["mean_block"] < gains["mean_block"]
    assert refused(2, "plan", "--arms", "1", "--max-delay", "2").err == (
        "aftereffect: arms must be at least 2, but got 1\n"
    )


def test_a_server_with_tokens_lets_in_who_has_one(store: str) -> None:
    told(*INIT, "--store", store)
    play = ok("token", "create", "till", "--scope", "play", "--store", store).strip()
    read = ok("token", "create", "screen", "--scope", "read", "--store", store).strip()
    with server(store, access="required") as address:
        assert command("ask", "--store", address).code == 2
        assert command("ask", "--store", address, env={"AFTEREFFECT_TOKEN": read}).code == 2
        assert command("status", "--store", address, env={"AFTEREFFECT_TOKEN": read}).code == 0
        assert command("ask", "--store", address, env={"AFTEREFFECT_TOKEN": play}).code == 0
        assert command("ask", "--store", store, env={"AFTEREFFECT_TOKEN": play}).code == 0


@pytest.mark.parametrize("odd", ["\udcff", "\x00", "a\x1b[31mb", " ", "\n", "x" * 100_000, "%", "'; DROP TABLE x;"])
def test_odd_words_are_refused_and_change_nothing(place: str, odd: str) -> None:
    told(*INIT, "--store", place)
    before = told("ask", "--store", place)
    for words in (["ask", odd], ["ask", "--unit", odd], ["tell", odd, "1", "2"], ["token", "revoke", odd]):
        done = command(*words, "--store", place)
        assert done.code in (2, 3), (words, done.out, done.err)
        assert "\x1b" not in done.err
    assert told("ask", "--store", place) == before


def test_without_the_extra_plan_works_and_the_others_say_what_to_install(tmp_path: Path) -> None:
    absent = ("sqlalchemy", "fastapi", "starlette", "uvicorn", "pydantic_settings", "httpx", "polars")
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({absent!r})); import typer; "
        "from aftereffect.service.cli import mount; app = typer.Typer(); mount(app); "
        "app(sys.argv[1:], prog_name='aftereffect')"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-c", program, *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)

    assert run("plan", "--max-delay", "2").returncode == 0
    done = run(*INIT)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the decision service needs sqlalchemy; install the extra: pip install 'aftereffect[service]'" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert "needs httpx" in run("ask", "--store", "http://127.0.0.1:9").stderr
