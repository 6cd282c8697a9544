"""Files a page needs: style, scripts, and plotly's script as its wheel carries it. Nothing comes from elsewhere."""

import gzip
import hashlib
import importlib.util
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("dashboard.css", "plotly.css", "page.js", "charts.js", "mark.svg", "plotly.min.js")
YEAR = 31_536_000


@cache
def content(name: str) -> bytes:
    """Return a file's bytes; `name` is one of NAMES."""
    if name == "plotly.min.js":
        # Looked up without importing plotly, which takes longer than a page.
        found = importlib.util.find_spec("plotly")
        if found is None or found.origin is None:
            raise FileNotFoundError("plotly.min.js must be in the plotly package, but plotly is not installed")
        return (Path(found.origin).parent / "package_data" / name).read_bytes()
    return (files("aftereffect.service.dashboard") / "static" / name).read_bytes()


@cache
def packed(name: str) -> bytes:
    """Return a file's bytes, compressed once: plotly's script is 4.8 MB, and a third of that packed."""
    return gzip.compress(content(name), 6, mtime=0)


@cache
def address(name: str) -> str:
    """Return a file's address, with its digest so that a browser may keep it for good."""
    return f"/static/{name}?{hashlib.sha256(content(name)).hexdigest()[:12]}"


@cache
def left_out() -> tuple[str, ...]:
    """Return the ids of style elements that plotly's script writes into a page that does not have them.

    They belong to maps, which are not drawn here. A page with an element of that id gets no style written into it, and
    so needs no permission for styles within it.
    """
    found = re.findall(rb'getElementById\("([0-9a-f]{64})"\)', content("plotly.min.js"))
    return tuple(sorted({name.decode() for name in found}))


def add_assets(router: APIRouter) -> None:
    """Add a route for each file, and none for anything else: no name ever becomes a path."""
    for name in NAMES:
        router.add_api_route(f"/static/{name}", _route(name), methods=["GET"], include_in_schema=False)


def _route(name: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        headers = {
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Vary": "Accept-Encoding",
            "Cache-Control": f"public, max-age={YEAR}, immutable" if request.url.query else "no-cache",
        }
        kind = TYPES[name.rsplit(".", 1)[-1]]
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed(name), media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
        return Response(content(name), media_type=kind, headers=headers)

    return answer
