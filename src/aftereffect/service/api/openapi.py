"""The OpenAPI 3.1 document of the service, made of the table of operations and the shapes, each with an example."""

import re
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from aftereffect.core import VERSION
from aftereffect.service.api import problems, shapes
from aftereffect.service.api.operations import OPERATIONS, Operation
from aftereffect.service.config import Config
from aftereffect.service.errors import CODES

TEXT = {"type": "string"}
ABOUT = (
    "Ask for the arm to play in a round, report the one total that was seen, and go on. A round's total is the sum of "
    "whatever arrived in it, from this round's action and from earlier ones. Every answer to a write is durable. "
    "Errors are problem+json with a stable `code`."
)
PATHS = {
    "id": ("The id of an experiment.", TEXT),
    "arm": ("The name of an arm.", TEXT),
    "round": ("The number of a round, from 1.", {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}),
    "token": ("The id of a token (not the token).", TEXT),
}
EXAMPLES = {"id": "pZk2Yt0nQ9vLr8sXw1aBcA", "arm": "email", "round": 17, "token": "3fQ"}


def _queries(config: Config) -> dict[str, tuple[str, dict[str, Any]]]:
    page = {"type": "integer", "minimum": 1, "maximum": config.page_limit, "default": min(100, config.page_limit)}
    return {
        "after": ("The `next` of the page before; left out for the first.", TEXT),
        "limit": ("How many items at most.", page),
        "state": ("Only experiments in this state.", {"enum": ["draft", "running", "paused", "finished"]}),
        "last": ("How many rounds at most.", {"type": "integer", "minimum": 1, "maximum": 100_000, "default": 2000}),
        "format": ("The kind of file.", {"enum": ["csv", "parquet"], "default": "csv"}),
    }


def template(path: str) -> str:
    """Return a route's path as OpenAPI writes it.

    >>> template("/v1/experiments/{id}/arms/{arm:path}/away")
    '/v1/experiments/{id}/arms/{arm}/away'
    """
    return re.sub(r"{(\w+):\w+}", r"{\1}", path)


def _parameters(operation: Operation, config: Config) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for name in re.findall(r"{(\w+)}", template(operation.path)):
        words, schema = PATHS[name]
        found.append({"name": name, "in": "path", "required": True, "description": words, "schema": schema,
                      "example": EXAMPLES[name]})
    for name in operation.query:
        words, schema = _queries(config)[name]
        found.append({"name": name, "in": "query", "required": False, "description": words, "schema": schema})
    return found


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def example_of(model: type[BaseModel]) -> Any:
    """Return the example that a shape carries."""
    extra = model.model_config.get("json_schema_extra")
    examples = extra.get("examples") if isinstance(extra, dict) else None
    return examples[0] if isinstance(examples, list) and examples else {}


def _answers(operation: Operation) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done" if operation.method != "GET" else "Found"}
    if isinstance(operation.answer, str):
        if operation.answer:
            kinds = [operation.answer]
            if operation.name == "export":
                kinds.append("application/vnd.apache.parquet")
            success["content"] = {kind: {"schema": TEXT if kind.startswith("text/") else {}} for kind in kinds}
    else:
        content = {"schema": _ref(operation.answer), "example": example_of(operation.answer)}
        success["content"] = {"application/json": content}
    statuses = {403, 422, 429, 500, 503, *operation.refusals}
    if operation.scope is not None:
        statuses.add(401)
    if operation.method != "GET":
        statuses.add(507)
    if operation.body != "none":
        statuses |= {400, 408, 413, 415}
    answers = {str(operation.status): success}
    for status in sorted(statuses):
        answers[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    return answers


def _problems() -> dict[str, Any]:
    titles: dict[int, list[tuple[str, str]]] = {}
    for code, (status, title) in [*CODES.items(), *problems.TITLES.items()]:
        titles.setdefault(status, []).append((code, title))
    found: dict[str, Any] = {}
    for status, kinds in sorted(titles.items()):
        words = "; ".join(f"`{code}`: {title}" for code, title in kinds)
        code, title = kinds[0]
        example = problems.fields(code, title, status, "a sentence that names argument, rule and value")
        content = {problems.MEDIA_TYPE: {"schema": _ref(shapes.Problem), "example": example}}
        answer: dict[str, Any] = {"description": words, "content": content}
        if status in (429, 503):
            seconds = {"type": "integer", "minimum": 1}
            answer["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": seconds}}
        found[f"Problem{status}"] = answer
    return found


def _described(operation: Operation, config: Config) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [template(operation.path).split("/")[2 if operation.path.startswith("/v1/") else 1]],
        "responses": _answers(operation),
    }
    needs = f"Needs the scope `{operation.scope}` where tokens are asked for." if operation.scope else "Open to all."
    described["description"] = needs
    if parameters := _parameters(operation, config):
        described["parameters"] = parameters
    if operation.takes is not None:
        content = {"schema": _ref(operation.takes), "example": example_of(operation.takes)}
        required = operation.body != "optional"
        described["requestBody"] = {"required": required, "content": {"application/json": content}}
    described["security"] = [{"bearer": []}, {"cookie": []}] if operation.scope else []
    return described


def openapi(config: Config) -> dict[str, Any]:
    """Return the document."""
    models = {operation.answer for operation in OPERATIONS if not isinstance(operation.answer, str)}
    models |= {operation.takes for operation in OPERATIONS if operation.takes is not None}
    models.add(shapes.Problem)
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schemas = models_json_schema(
        [(model, "validation") for model in ordered], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(template(operation.path), {})[operation.method.lower()] = _described(operation, config)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Aftereffect", "version": VERSION, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "responses": _problems(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "aftereffect_token"},
            },
        },
    }
