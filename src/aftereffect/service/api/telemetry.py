"""Prometheus metrics, and logs with one JSON object per line.

Neither contains client input: routes are recorded as templates, and headers, queries and bodies are never logged, so
tokens are not either.
"""

import datetime
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.types import Scope

from aftereffect.service.store.store import Store

LOGGER = logging.getLogger("aftereffect.service")
SLOW_SECONDS = 1.0
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


def route_of(scope: Scope) -> str:
    """Return the path template of the route that matched a request, or "unmatched"."""
    return getattr(scope.get("route"), "path_format", "unmatched")


class Telemetry:
    """The metrics of an app, in their own registry, and its request log."""

    def __init__(self, store: Store, log_requests: bool = False) -> None:
        self.registry = CollectorRegistry()
        self.log_requests = log_requests

        def gauge(name: str, words: str, read: Callable[[], float]) -> None:
            Gauge(f"aftereffect_{name}", words, registry=self.registry).set_function(read)

        gauge("jobs_waiting", "Jobs waiting for the writer", lambda: store.status().waiting)
        gauge("commit_seconds", "Duration of the last commit", lambda: store.status().commit_seconds)
        gauge("log_bytes", "Size of SQLite's write-ahead log", lambda: store.status().log_bytes)
        gauge("damaged_experiments", "Experiments that cannot be loaded", lambda: len(store.status().damaged))
        self._requests = Counter(
            "aftereffect_requests", "Requests answered", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "aftereffect_request_seconds", "Time to respond", ["route"], buckets=BUCKETS, registry=self.registry
        )
        self.in_flight = Gauge("aftereffect_requests_in_flight", "Requests in progress", registry=self.registry)
        self._items = Counter(
            "aftereffect_bulk_items", "Items of bulk requests", ["route", "outcome"], registry=self.registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a response; log it if it failed or was slow, or if every request is logged."""
        word = method if method in METHODS else "other"
        self._requests.labels(word, route, status).inc()
        self._seconds.labels(route).observe(seconds)
        if self.log_requests or status >= 500 or seconds > SLOW_SECONDS:
            level = logging.ERROR if status >= 500 else logging.INFO
            facts = {"method": word, "route": route, "status": status, "milliseconds": round(1000 * seconds, 3)}
            LOGGER.log(level, "request", extra={"facts": facts})

    def bulk(self, route: str, done: int, refused: int) -> None:
        """Count the items of a bulk request."""
        self._items.labels(route, "done").inc(done)
        self._items.labels(route, "refused").inc(refused)


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON: time, level, logger, message, and the fields in `facts`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


def configure_logging(level: str) -> None:
    """Send the logs of the service and of Uvicorn to stderr as JSON lines; called only in the server process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("aftereffect", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
