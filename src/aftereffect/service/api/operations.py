"""The table of routes: for each its method, path, scope, shapes, and the words that describe it.

Everything that has to know the routes reads it here: the app (who answers), access (which scope), the OpenAPI document,
the reference page, and the tests that try every route with every scope.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from aftereffect.service.api import lists, shapes

Body = Literal["none", "optional", "required", "bulk"]
EXPERIMENT = "/v1/experiments/{id}"
ASK = f"{EXPERIMENT}/ask"
ARM = "/arms/{arm:path}"
ROUND = f"{EXPERIMENT}/rounds/{{round}}"


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    name: that of the handler in `Routes`, and the operationId. scope: None lets anybody in. body: whether a JSON object
    must, may or must not come. answer: the shape of success, or a media type. query: the parameters that may come.
    refusals: statuses beyond those every route can answer with.
    """

    method: str
    path: str
    name: str
    scope: str | None
    summary: str
    answer: type[BaseModel] | str
    takes: type[BaseModel] | None = None
    body: Body = "none"
    status: int = 200
    query: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()


def _change(verb: str, summary: str, below: str = "") -> Operation:
    path = f"{EXPERIMENT}{below}/{verb}"
    return Operation("POST", path, verb, "admin", summary, shapes.Experiment, None, "optional", refusals=(404, 409))


def _read(path: str, name: str, summary: str, answer: type[BaseModel] | str, *query: str) -> Operation:
    return Operation("GET", path, name, "read", summary, answer, query=query, refusals=(404,))


# Asks and tells come first: the router tries routes in order, and these are nearly all requests.
OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", ASK, "ask", "play", "Open the next round, or return the open one",
        shapes.Turn, shapes.Ask, "optional", refusals=(404, 409),
    ),
    Operation(
        "PUT", ROUND, "tell", "play", "Report the total of a round, or that it is missing",
        shapes.Report, shapes.Tell, "required", refusals=(404, 409),
    ),
    Operation(
        "POST", f"{ROUND}/amend", "amend", "play", "Correct a total, or bring a late one, while its block is open",
        shapes.Report, shapes.Tell, "required", refusals=(404, 409),
    ),
    Operation(
        "POST", "/v1/bulk/ask", "bulk_ask", "play", "Ask for many experiments, each answered on its own",
        lists.BulkTurns, lists.BulkAsk, "bulk",
    ),
    Operation(
        "POST", "/v1/bulk/tell", "bulk_tell", "play", "Report for many experiments, each answered on its own",
        lists.BulkReports, lists.BulkTell, "bulk",
    ),
    Operation(
        "POST", "/v1/experiments", "create", "admin", "Make an experiment; it runs at once unless it is a draft",
        shapes.Experiment, shapes.NewExperiment, "required", 201,
    ),
    Operation(
        "GET", "/v1/experiments", "experiments", "read", "List the experiments", lists.Experiments,
        query=("after", "limit", "state"), refusals=(404,),
    ),
    _read(EXPERIMENT, "experiment", "Show an experiment: state, probabilities, guarantee", shapes.Experiment),
    _change("start", "Start a draft"),
    _change("pause", "Open no more rounds until resumed"),
    _change("resume", "Go on, with max_delay rounds of warm-up"),
    _change("finish", "End an experiment for good"),
    _change("away", "Say that an arm cannot be played for now; the guarantee is void from then on", ARM),
    _change("back", "Say that an arm can be played again", ARM),
    _read(f"{EXPERIMENT}/rounds", "rounds", "List the rounds, a row for each unit", lists.Rounds, "after", "limit"),
    _read(f"{EXPERIMENT}/events", "events", "List the log's events", lists.Events, "after", "limit"),
    _read(f"{EXPERIMENT}/series", "series", "The columns behind the charts", lists.Series, "last"),
    _read(f"{EXPERIMENT}/export", "export", "The record as a CSV or Parquet file", "text/csv", "format"),
    # A replay takes as long as the log is, so it is not for every reader.
    Operation(
        "GET", f"{EXPERIMENT}/verify", "verify", "admin", "Replay the log and compare with what is stored",
        lists.Verdict, refusals=(404,),
    ),
    Operation(
        "GET", "/v1/verify", "verify_all", "admin", "Replay every log, also those whose experiment is gone",
        lists.Verdicts, query=("after", "limit"), refusals=(404,),
    ),
    Operation(
        "POST", "/v1/plan", "plan", "read", "What a carry-over leads to: blocks, decisions, the guarantee",
        shapes.Plan, shapes.PlanQuestion, "required",
    ),
    Operation(
        "POST", "/v1/tokens", "create_token", "admin", "Make a token; it is shown this once",
        shapes.Token, shapes.NewToken, "required", 201,
    ),
    Operation("GET", "/v1/tokens", "tokens", "admin", "List the tokens, not what they are", lists.Tokens),
    Operation(
        "DELETE", "/v1/tokens/{token}", "revoke_token", "admin", "Make a token worthless", "", status=204,
        refusals=(404,),
    ),
    Operation("GET", "/healthz", "health", None, "Whether the store answers and takes writes", shapes.Health),
    Operation("GET", "/metrics", "metrics", "read", "Metrics in Prometheus' text format", "text/plain"),
    Operation("GET", "/openapi.json", "openapi", None, "This document", "application/json"),
    Operation("GET", "/docs", "docs", None, "The reference as a page", "text/html"),
)
