"""The OpenAPI document, which FastAPI makes of the routes, and the reference page at /docs made of the document.

FastAPI's own pages load scripts from elsewhere; this one has none, and works offline.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from typing import Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from aftereffect.service.api import problems
from aftereffect.service.api.body import JsonBody
from aftereffect.service.errors import CODES
from aftereffect.service.messages import Problem

ABOUT = (
    "Ask for the arm to play in a round, report the one total that was seen, and go on. A round's total is the sum of "
    "whatever arrived in it, from this round's action and from earlier ones. Every answer to a write is durable. "
    "Errors are problem+json with a stable `code`."
)
TAGS = [
    {"name": "play", "description": "Needs a token with the scope `play` (or `admin`) where tokens are needed."},
    {"name": "read", "description": "Needs a token with the scope `read` (or `play`, `admin`)."},
    {"name": "admin", "description": "Needs a token with the scope `admin`."},
    {"name": "open", "description": "Needs no token."},
]
REFERENCE = "#/components/schemas/{model}"
_PROBLEM = {
    "description": "Refused; `code` says why. With 429 and 503, Retry-After holds the seconds to wait.",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#f4f4f4;padding:.75rem;overflow:auto}code{font-size:.9em}section{border-top:1px solid #ccc}"
    "th,td{text-align:left;padding:.2rem 1rem .2rem 0}"
)
# The one style is allowed by its hash, so that nothing else inline is.
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def add_bodies(document: dict[str, Any], routers: Iterable[APIRouter]) -> None:
    """Add the bodies that `JsonBody` reads to an OpenAPI document."""
    models: list[type[BaseModel]] = [Problem]
    for route in (route for router in routers for route in router.routes if isinstance(route, APIRoute)):
        for body in (each.call for each in route.dependant.dependencies if isinstance(each.call, JsonBody)):
            models.append(body.model)
            content = {"application/json": {"schema": {"$ref": REFERENCE.format(model=body.model.__name__)}}}
            for method in route.methods or ():
                described = document["paths"][route.path_format][method.lower()]
                described["requestBody"] = {"required": not body.optional, "content": content}
    _, schemas = models_json_schema([(model, "validation") for model in models], ref_template=REFERENCE)
    document["components"]["schemas"] |= schemas["$defs"]


def reference(document: dict[str, Any]) -> str:
    """Return the page at /docs."""
    sections = "".join(
        _section(method.upper(), path, operation, document["components"]["schemas"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    codes = "".join(
        f"<tr><td><code>{code}</code></td><td>{status}</td><td>{escape(title)}</td></tr>"
        for code, (status, title) in CODES.items()
    )
    info = document["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Aftereffect: reference</title><style>{STYLE}</style></head><body><main>"
        f"<h1>Aftereffect {escape(info['version'])}: reference</h1><p>{escape(info['description'])}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{sections}<section><h2>Codes of errors</h2><table><tr><th>code</th><th>status</th><th>meaning</th></tr>"
        f"{codes}</table></section></main></body></html>"
    )


def _section(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    query = [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"]
    words = f"{operation['description']} Scope: {operation['tags'][0]}."
    parts = [f"<h2><code>{method} {escape(path)}</code></h2><p>{escape(words)}"]
    parts.append(f" Query: {', '.join(query)}.</p>" if query else "</p>")
    status, success = next(iter(operation["responses"].items()))
    for title, described in (("Body", operation.get("requestBody", {})), (f"Answer {status}", success)):
        schema = described.get("content", {}).get("application/json", {}).get("schema", {})
        model = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
        if examples := model.get("examples"):
            shown = json.dumps(examples[0], indent=2, ensure_ascii=False)
            parts.append(f"<p>{title}, for example:</p><pre>{escape(shown)}</pre>")
    return f'<section id="{operation["operationId"]}">{"".join(parts)}</section>'
