"""The reference at /docs: one page without scripts, made of the same table and examples as the OpenAPI document."""

import base64
import hashlib
import json
from html import escape
from typing import Any

from pydantic import BaseModel

from aftereffect.core import VERSION
from aftereffect.service.api.openapi import ABOUT, example_of, template
from aftereffect.service.api.operations import OPERATIONS, Operation
from aftereffect.service.errors import CODES

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#f4f4f4;padding:.75rem;overflow:auto}code{font-size:.9em}section{border-top:1px solid #ccc}"
    "th,td{text-align:left;padding:.2rem 1rem .2rem 0}"
)
# The one style is allowed by its hash, so that nothing else inline is.
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def _example(words: str, model: type[BaseModel] | None) -> str:
    if model is None:
        return ""
    shown: Any = json.dumps(example_of(model), indent=2, ensure_ascii=False)
    return f"<p>{words}</p><pre>{escape(shown)}</pre>"


def _section(operation: Operation) -> str:
    path = escape(template(operation.path))
    scope = f"Scope: {operation.scope}." if operation.scope else "Open to all."
    query = f" Query: {', '.join(operation.query)}." if operation.query else ""
    taken = _example("Body, for example:", operation.takes)
    model = None if isinstance(operation.answer, str) else operation.answer
    given = _example(f"Answer {operation.status}, for example:", model)
    return (
        f'<section id="{operation.name}"><h2><code>{operation.method} {path}</code></h2>'
        f"<p>{escape(operation.summary)}. {scope}{query}</p>{taken}{given}</section>"
    )


def page() -> str:
    """Return the page."""
    sections = "".join(_section(operation) for operation in OPERATIONS)
    codes = "".join(f"<tr><td><code>{code}</code></td><td>{status}</td><td>{escape(title)}</td></tr>"
                    for code, (status, title) in CODES.items())
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Aftereffect: reference</title><style>{STYLE}</style></head><body><main>"
        f"<h1>Aftereffect {escape(VERSION)}: reference</h1><p>{escape(ABOUT)}</p>"
        '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
        f"{sections}<section><h2>Codes of errors</h2><table><tr><th>code</th><th>status</th><th>meaning</th></tr>"
        f"{codes}</table></section></main></body></html>"
    )
