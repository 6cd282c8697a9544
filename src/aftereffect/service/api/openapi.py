"""Additions to FastAPI's OpenAPI document: the description, error responses and request bodies."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from aftereffect.service.api import problems
from aftereffect.service.messages import Problem
from aftereffect.service.operations import OPERATIONS

ABOUT = (
    "Ask for the arm to play in a round, then report the round's total: the sum of all effects observed in that round, "
    "from its own action and from earlier ones. A write is durable once it is answered. Errors are problem+json with a "
    "stable `code`. If tokens are required, the tag of an operation is the scope that the token must have; `admin` "
    "includes `play`, and `play` includes `read`."
)
REFERENCE = "#/components/schemas/{model}"
_PROBLEM = {
    "description": "Refused; `code` gives the reason. With 429 and 503, Retry-After is the number of seconds to wait.",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}


def add_bodies(document: dict[str, Any]) -> None:
    """Add the bodies of all operations to an OpenAPI document."""
    models: list[type[BaseModel]] = [Problem]
    for operation in OPERATIONS.values():
        if operation.body is not None:
            models.append(operation.body)
            content = {"application/json": {"schema": {"$ref": REFERENCE.format(model=operation.body.__name__)}}}
            described = document["paths"][operation.path.replace(":path", "")][operation.method.lower()]
            described["requestBody"] = {"required": not operation.optional, "content": content}
    _, schemas = models_json_schema([(model, "validation") for model in models], ref_template=REFERENCE)
    document["components"]["schemas"] |= schemas["$defs"]
