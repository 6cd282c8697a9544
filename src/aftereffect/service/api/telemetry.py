"""What the service says about itself: Prometheus metrics, and logs of one JSON object a line.

Neither holds what a client sent: routes are named by their template, and no header, query or body is ever logged, so no
token can be.
"""

import bisect
import datetime
import itertools
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

LOGGER = logging.getLogger("aftereffect.service")
SLOW_SECONDS = 1.0
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
UNMATCHED = "unmatched"


class Answers(Collector):
    """Counts answers, and their times in buckets; always from one thread, so it needs no lock, as the library's do."""

    def __init__(self) -> None:
        """Have no answers yet."""
        self._counts: dict[tuple[str, str, int], int] = {}
        # By route: how many answers took at most as long as each bucket says but not the one before, and their sum.
        self._times: dict[str, tuple[list[int], list[float]]] = {}

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        key = method, route, status
        self._counts[key] = self._counts.get(key, 0) + 1
        times = self._times.get(route)
        if times is None:
            times = self._times[route] = [0] * (len(BUCKETS) + 1), [0.0]
        times[0][bisect.bisect_left(BUCKETS, seconds)] += 1
        times[1][0] += seconds

    def collect(self) -> Iterator[Metric]:
        """Yield both metrics, as the library wants them."""
        counts = CounterMetricFamily("aftereffect_requests", "Requests answered", labels=["method", "route", "status"])
        for (method, route, status), count in list(self._counts.items()):
            counts.add_metric([method, route, str(status)], count)
        yield counts
        times = HistogramMetricFamily("aftereffect_request_seconds", "Time to an answer", labels=["route"])
        limits = [*(str(limit) for limit in BUCKETS), "+Inf"]
        for route, (found, (whole,)) in list(self._times.items()):
            times.add_metric([route], list(zip(limits, itertools.accumulate(found), strict=True)), whole)
        yield times


class Telemetry:
    """The metrics of one app, in a registry of its own, and its log of requests."""

    def __init__(self, log_requests: bool = False, in_flight: Callable[[], float] = lambda: 0.0) -> None:
        """Start every count at 0; in_flight: how many requests are in work."""
        self.registry = CollectorRegistry()
        self.log_requests = log_requests
        self._answers = Answers()
        self.registry.register(self._answers)
        working = Gauge("aftereffect_requests_in_flight", "Requests in work", registry=self.registry)
        working.set_function(in_flight)
        self._items = Counter(
            "aftereffect_bulk_items", "Items of bulk requests", ["route", "outcome"], registry=self.registry
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer; log it if it failed, was slow, or all are logged."""
        word = method if method in METHODS else "other"
        self._answers.add(word, route, status, seconds)
        if self.log_requests or status >= 500 or seconds > SLOW_SECONDS:
            level = logging.ERROR if status >= 500 else logging.INFO
            facts = {"method": word, "route": route, "status": status, "milliseconds": round(1000 * seconds, 3)}
            LOGGER.log(level, "request", extra={"facts": facts})

    def bulk(self, route: str, done: int, refused: int) -> None:
        """Count the items of a bulk request."""
        self._items.labels(route, "done").inc(done)
        self._items.labels(route, "refused").inc(refused)

    def refused(self, route: str, error: Exception) -> None:
        """Log what the store could not do (it is busy, full or corrupt), in its own words."""
        LOGGER.error("refused", extra={"facts": {"route": route, "detail": str(error)}})

    def failed(self, route: str, error: BaseException) -> None:
        """Log a fault of the service, with where it happened."""
        LOGGER.error("fault", exc_info=error, extra={"facts": {"route": route}})

    def metrics(self) -> Response:
        """Return all metrics in Prometheus' text format."""
        return Response(generate_latest(self.registry), media_type=None, headers={"Content-Type": CONTENT_TYPE_LATEST})


class JsonLines(logging.Formatter):
    """A log record as one line of JSON: time, level, logger, message, and the facts given with it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, Any] = {
            "at": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        facts = getattr(record, "facts", None)
        if isinstance(facts, dict):
            line.update(facts)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


def configure_logging(level: str) -> None:
    """Send the logs of service and server to stderr as JSON lines; only for the process that serves."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("aftereffect", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
