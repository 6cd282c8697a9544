"""The handlers: each reads a request, says it to the store as a command or a question, and answers in JSON.

They hold no rules. What a request may look like is said by `body.py`, `limits.py` and `settings.py`, what it
does by the domain; a refusal is raised through them and answered by `Endpoint`.
"""

import re
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from aftereffect.core.checks import choice, shown
from aftereffect.service.api.auth import SCOPES
from aftereffect.service.api.body import object_of, refuse, round_of, total_of, unit_of
from aftereffect.service.api.encoding import Json, encoded
from aftereffect.service.api.endpoint import Call
from aftereffect.service.api.limits import count, cursor
from aftereffect.service.api.telemetry import Telemetry
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.experiment import commands
from aftereffect.service.experiment.plan import planned
from aftereffect.service.store.store import Store

ID = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
STATES = ("draft", "running", "paused", "finished")
FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
LAST = 100_000


def answer(value: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    if headers is None:
        return Json(encoded(value), status)
    return Response(encoded(value), status, headers, "application/json")


def experiment_id(value: Any) -> str:
    """Return an experiment's id; what cannot be one is not looked for."""
    if not isinstance(value, str) or not ID.fullmatch(value):
        raise Refused("not_found", f"experiment must be the id of an experiment, but got {shown(value)}")
    return value


class Routes:
    """A handler for each operation, by its name."""

    def __init__(self, store: Store, config: Config, telemetry: Telemetry) -> None:
        """Answer for a store."""
        self.store, self.config, self.telemetry = store, config, telemetry

    async def create(self, call: Call) -> Response:
        """Make an experiment."""
        made = await self.store.acreate(call.body or {})
        return answer(made, 201, {"Location": f"/v1/experiments/{made['id']}"})

    async def experiments(self, call: Call) -> Response:
        """List experiments, a page at a time."""
        after, limit = cursor(call.query.get("after")), self._limit(call)
        state = call.query.get("state")
        wanted = None if state is None else choice("state", state, STATES)
        return answer(await run_in_threadpool(self.store.experiments, after=after, limit=limit, state=wanted))

    async def experiment(self, call: Call) -> Response:
        """Show one experiment."""
        return answer(await run_in_threadpool(self.store.experiment, experiment_id(call.path["id"])))

    async def ask(self, call: Call) -> Response:
        """Open the next round, or return the open one."""
        body = object_of(call.body or {}, "the body", ("unit",))
        return await self._perform(call, commands.Ask(unit_of(body.get("unit"))))

    async def tell(self, call: Call) -> Response:
        """Report a total."""
        return await self._perform(call, commands.Tell(*_report(call)))

    async def amend(self, call: Call) -> Response:
        """Correct a total."""
        return await self._perform(call, commands.Amend(*_report(call)))

    async def start(self, call: Call) -> Response:
        """Start a draft."""
        return await self._change(call, commands.Start())

    async def pause(self, call: Call) -> Response:
        """Open no more rounds."""
        return await self._change(call, commands.Pause())

    async def resume(self, call: Call) -> Response:
        """Go on."""
        return await self._change(call, commands.Resume())

    async def finish(self, call: Call) -> Response:
        """End an experiment."""
        return await self._change(call, commands.Finish())

    async def away(self, call: Call) -> Response:
        """Take an arm out for now."""
        return await self._change(call, commands.Away(call.path["arm"]))

    async def back(self, call: Call) -> Response:
        """Bring an arm back."""
        return await self._change(call, commands.Back(call.path["arm"]))

    async def rounds(self, call: Call) -> Response:
        """List rounds, a page at a time."""
        where, after, limit = experiment_id(call.path["id"]), cursor(call.query.get("after")), self._limit(call)
        return answer(await run_in_threadpool(self.store.rounds, where, after=after, limit=limit))

    async def events(self, call: Call) -> Response:
        """List events, a page at a time."""
        where, limit = experiment_id(call.path["id"]), self._limit(call)
        after = count("after", call.query.get("after"), 0, 0, 2**63 - 1)
        return answer(await run_in_threadpool(self.store.events, where, after=after, limit=limit))

    async def series(self, call: Call) -> Response:
        """Return the columns behind the charts."""
        where, last = experiment_id(call.path["id"]), count("last", call.query.get("last"), 2000, 1, LAST)
        return answer(await run_in_threadpool(self.store.series, where, last=last))

    async def export(self, call: Call) -> Response:
        """Return the record as a file."""
        where, form = experiment_id(call.path["id"]), choice("format", call.query.get("format", "csv"), tuple(FORMATS))
        content = await run_in_threadpool(self.store.export, where, form)
        headers = {"Content-Disposition": f'attachment; filename="{where}.{form}"', "Content-Type": FORMATS[form]}
        return Response(content, headers=headers)

    async def verify(self, call: Call) -> Response:
        """Replay the log."""
        found = await run_in_threadpool(self.store.verify, experiment_id(call.path["id"]))
        return answer(found[0])

    async def verify_all(self, call: Call) -> Response:
        """Replay every log, a page at a time."""
        after, limit = cursor(call.query.get("after")), self._limit(call)
        return answer(await run_in_threadpool(self.store.verify_page, after=after, limit=limit))

    async def plan(self, call: Call) -> Response:
        """Return what a carry-over leads to."""
        question = call.body or {}
        return answer(await run_in_threadpool(planned, question))

    async def create_token(self, call: Call) -> Response:
        """Make a token."""
        body = object_of(call.body, "the body", ("name", "scopes"), ("name", "scopes"))
        name, scopes = body["name"], body["scopes"]
        if not isinstance(scopes, list):
            refuse(f"scopes must be a list of scopes, but got {shown(scopes)}")
        token = await run_in_threadpool(self.store.create_token, name, scopes)
        return answer({"name": name, "scopes": [scope for scope in SCOPES if scope in scopes], "token": token}, 201)

    async def tokens(self, call: Call) -> Response:
        """List tokens."""
        return answer({"items": await run_in_threadpool(self.store.tokens)})

    async def revoke_token(self, call: Call) -> Response:
        """Make a token worthless."""
        token = call.path["token"]
        if not ID.fullmatch(token):
            raise Refused("not_found", f"token must be the id of a token, but got {shown(token)}")
        await run_in_threadpool(self.store.revoke_token, token)
        return Response(status_code=204)

    async def metrics(self, call: Call) -> Response:
        """Return the metrics."""
        return self.telemetry.metrics()

    def _limit(self, call: Call) -> int:
        most = self.config.page_limit
        return count("limit", call.query.get("limit"), min(100, most), 1, most)

    async def _perform(self, call: Call, command: commands.Command) -> Response:
        where = experiment_id(call.path["id"])
        return answer({"experiment": where, **await self.store.aperform(where, command)})

    async def _change(self, call: Call, command: commands.Command) -> Response:
        object_of(call.body or {}, "the body", ())
        where = experiment_id(call.path["id"])
        await self.store.aperform(where, command)
        return answer(await run_in_threadpool(self.store.experiment, where))


def _report(call: Call) -> tuple[int, float | None, str | None]:
    number = round_of(call.path["round"])
    body = object_of(call.body, "the body", ("total", "unit"), ("total",))
    return number, total_of(body["total"]), unit_of(body.get("unit"))
