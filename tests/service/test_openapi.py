"""The OpenAPI document: complete, with examples that hold, and true of what the service does."""

import json
import os
import re
from types import SimpleNamespace
from typing import Any

import httpx
import hypothesis
import pytest
import schemathesis
from pydantic import BaseModel, ValidationError
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks
from tests.service.calling import SETTINGS, Api, api, example_of, path_of
from tests.service.server import server

from aftereffect.service import messages, settings
from aftereffect.service.api.app import create_app
from aftereffect.service.operations import OPERATIONS

DOCUMENT = create_app(SimpleNamespace()).openapi()
MODELS = [
    model for model in (*vars(messages).values(), settings.CarryOver, settings.ExperimentSettings)
    if isinstance(model, type) and issubclass(model, BaseModel) and "json_schema_extra" in model.model_config
]
CREATING = {"create", "correct", "continue_with", "create_token", "reports"}
SOAK = bool(os.environ.get("AFTEREFFECT_SOAK"))
EXAMPLES = 500 if SOAK else 6
schema = schemathesis.openapi.from_dict(DOCUMENT)

FRAMING = ("transfer-encoding", "content-length", "connection", "upgrade")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with server(f"sqlite:///{tmp_path_factory.mktemp('openapi') / 'service.db'}") as found:
        yield found


@pytest.fixture(scope="module")
def experiment(address):
    """An experiment with an open round, for what schemathesis sends."""
    made = httpx.post(f"{address}/v1/experiments", json=SETTINGS, trust_env=False, timeout=60).json()["id"]
    assert httpx.post(f"{address}/v1/experiments/{made}/ask", trust_env=False, timeout=60).status_code == 200
    return made


@pytest.fixture
def call(tmp_path):
    with api(tmp_path, webhooks="sales=https://chat.example/x", webhook_secret="0123456789abcdef") as client:
        yield client


def walk(part: Any):
    yield part
    for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from walk(below)


def test_every_operation_is_described():
    described_paths = 0
    for name, operation in OPERATIONS.items():
        path = operation.path.replace(":path", "")
        described = DOCUMENT["paths"][path][operation.method.lower()]
        assert described["operationId"] == name
        assert described["description"]
        assert described["tags"] == [operation.scope]
        parameters = {(parameter["in"], parameter["name"]) for parameter in described.get("parameters", ())}
        assert {each for where, each in parameters if where == "path"} == set(re.findall(r"{(\w+)}", path))
        assert (("header", "Idempotency-Key") in parameters) == (name in CREATING)
        assert all(parameter["description"] for parameter in described.get("parameters", ()))
        assert ("requestBody" in described) == (operation.method in ("POST", "PUT"))
        assert described["security"]
        assert {"4XX", "5XX"} < set(described["responses"])
        replied = described["responses"][str(operation.status)].get("content", {})
        kinds = {bytes: {"text/csv", "application/vnd.apache.parquet"}, None: set()}
        assert set(replied) == kinds.get(operation.reply, {"application/json"})
        assert all("$ref" in each["schema"] for kind, each in replied.items() if kind == "application/json")
        described_paths += 1
    # And what is about the service itself: health, reference, metrics.
    assert sum(len(each) for each in DOCUMENT["paths"].values()) == described_paths + 3


def test_every_reference_leads_somewhere():
    references = {part["$ref"] for part in walk(DOCUMENT) if isinstance(part, dict) and "$ref" in part}
    assert len(references) > 10
    for reference in references:
        part = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            part = part[step]


def test_the_document_is_served_as_it_is(call: Api):
    answer = call("GET", "/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.text) == DOCUMENT


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_examples_hold(model: type[BaseModel]):
    [example] = model.model_json_schema()["examples"]
    model.model_validate(example)


# The others have no body, or the example of its model will do.
BODIES_IN_ORDER = {
    "create": SETTINGS, "ask": {}, "reports": {"items": [{"total": 1, "unit": 1}]}, "tell": {"total": 1, "unit": 2},
    "amend": {"total": 2, "unit": 2}, "start": {}, "pause": {}, "resume": {},
    # A short plan: one without a horizon simulates a year.
    "plan": {"arms": 2, "max_delay": 3, "horizon": 20},
    "bulk_ask": {"items": [{"experiment": "ID"}, {"experiment": "nobody"}]},
    "bulk_tell": {"items": [{"experiment": "ID", "round": 1, "total": 1, "unit": 1}, {"experiment": "ID"}]},
}
LAST = {"note": {"note": "holiday", "unit": 1}, "correct": {"high": 60}, "continue_with": {"add": ["b"]}, "finish": {}}


def test_every_reply_is_as_described(call: Api):
    one = call.create(units=2).rpartition("/")[2]
    described = {name: operation for name, operation in OPERATIONS.items() if operation.reply not in (None, bytes)}
    others = {name: example_of(described[name]) for name in sorted(described.keys() - BODIES_IN_ORDER - LAST.keys())}
    for name, given in (BODIES_IN_ORDER | others | LAST).items():
        operation = described[name]
        path = path_of(operation, id=one)
        body = json.loads(json.dumps(given).replace("ID", one))
        path += f"?ids={one}" if name == "compare" else ""
        answer = call(operation.method, path, **({} if operation.method == "GET" else {"json": body}))
        assert answer.status_code in (200, 201), (name, answer.text)
        operation.reply.model_validate(answer.json(), strict=True)
    messages.Problem.model_validate(call("GET", "/v1/experiments/nobody").json(), strict=True)


@pytest.mark.parametrize("change", [
    {}, {"units": 3}, {"units": ["a"]}, {"max_delay": None, "carry_over": {"half_life": "2 days"}}, {"draft": True},
    {"max_delay": None}, {"pilot": {"max_lag": 2}},
    {"player": "paper", "horizon": 1000}, {"direction": "minimize"}, {"start_date": "2026-01-31"}, {"seed": None},
    {"prior": {"means": {"letter": 1, "email": 2, "nothing": 0}, "updates": 1}}, {"prior": {"means": {}, "updates": 1}},
    {"arms": ["one"]}, {"arms": "a"}, {"max_delay": -1}, {"max_delay": "2"}, {"horizon": 0}, {"units": 0}, {"typo": 1},
    {"direction": "up"}, {"seed": -1}, {"seed": 2**64}, {"name": ""}, {"name": None}, {"low": "0"}, {"units": 1001},
], ids=str)
def test_model_and_service_agree_on_settings(call: Api, change):
    given = {**SETTINGS, **change}
    try:
        settings.ExperimentSettings.model_validate(given)
        fits = True
    except ValidationError:
        fits = False
    assert (call("POST", "/v1/experiments", json=given).status_code == 201) == fits


@schema.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES, deadline=None, derandomize=not SOAK, suppress_health_check=list(hypothesis.HealthCheck)
)
def test_nothing_that_the_document_allows_or_forbids_breaks_the_service(case, address, experiment):
    if "id" in case.path_parameters:
        case.path_parameters["id"] = experiment
    # How a message is framed is for the HTTP server, which refuses what it cannot read before the service sees it.
    for name in [name for name in case.headers or {} if name.lower() in FRAMING]:
        del case.headers[name]
    wanted = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    case.call_and_validate(base_url=address, checks=[not_a_server_error, *wanted], timeout=60)
