"""Reminders: a webhook is called when a round waits for its report, or in every round with what to play.

The operator lists the addresses that may be called, each under a name; users choose among the names, so that no request
can make the server call another address. The body is {"text": "..."}, which chat tools show as a message. It is signed
as in Standard Webhooks: with the headers webhook-id, webhook-timestamp and webhook-signature, an HMAC-SHA256 of
"id.timestamp.body" under the operator's secret.

A call that fails is repeated after 1, 4, 16, 64 and 256 minutes; each call is logged. Several servers on one database
call once.
"""

import base64
import datetime
import hashlib
import hmac
import json
import logging
import threading
from typing import Any, Self

import httpx
from sqlalchemy import Row

from aftereffect.core.text import utc_text
from aftereffect.service import words
from aftereffect.service.config import Config
from aftereffect.service.errors import Refused
from aftereffect.service.experiment.commands import Ask
from aftereffect.service.messages import Due, Overview, Turn
from aftereffect.service.store.store import Store

LOGGER = logging.getLogger("aftereffect.service")
ATTEMPTS = 6
FIRST_WAIT = 60.0
TIMEOUT = 10.0


def signature(secret: str, identity: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a call. A secret that begins with whsec_ is base64, any other one is taken as it is.

    >>> signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
    ...           b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    digest = hmac.new(key, f"{identity}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


class Reminders:
    """Calls webhooks for rounds that wait: in a `with` statement a thread looks every minute; `look` looks once."""

    def __init__(self, store: Store, config: Config, every: float = 60.0) -> None:
        self._store, self._config, self._every = store, config, every
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="aftereffect-reminders", daemon=True)

    def __enter__(self) -> Self:
        """Begin, if the operator allows any address."""
        if self._config.webhooks:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End after the call in progress, or without it if the receiver is too slow."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(TIMEOUT)

    def _loop(self) -> None:
        while not self._stopped.wait(self._every):
            try:
                self.look()
            except Exception:
                # A store that is busy now may not be in a minute.
                LOGGER.exception("reminders failed")

    def look(self) -> int:
        """Call the webhooks of all rounds that wait now; return the number of calls.

        After a call that was not answered in time, others to the same webhook wait for the next look.
        """
        now, calls, silent = datetime.datetime.fromisoformat(self._store.now()), 0, set[str]()
        for reminder in self._store.reminders():
            if self._stopped.is_set():
                break
            if reminder.webhook in silent:
                continue
            if reminder.next_at is not None and now < datetime.datetime.fromisoformat(reminder.next_at):
                continue
            try:
                view = self._store.experiment(reminder.id)
            except Refused as refused:
                facts = {"experiment": reminder.id, "outcome": refused.detail}
                LOGGER.warning("reminder", extra={"facts": facts})
                continue
            if (due := view.due) is None:
                continue
            over = now - datetime.datetime.fromisoformat(due.at) - datetime.timedelta(days=reminder.after)
            late = over // datetime.timedelta(days=view.round_length)
            if late < 0:
                continue
            # What to play is said in every round of the calendar, also while an earlier one waits.
            round_ = due.round + (late if reminder.after < 0.0 and due.date else 0)
            if reminder.round != round_ or reminder.next_at is not None:
                outcome = self._remind(reminder, view, due, round_, now)
                calls += outcome is not None
                if outcome is not None and outcome.endswith("Timeout"):
                    silent.add(reminder.webhook)
        return calls

    def _remind(self, reminder: Row[Any], view: Overview, due: Due, round_: int, now: datetime.datetime) -> str | None:
        """Call a webhook, and return the outcome; None if another server calls it."""
        attempts = 1 + (reminder.attempts if reminder.round == round_ else 0)
        # Written first: if this process ends now, the call is repeated later, and no other server makes it meanwhile.
        later = now + datetime.timedelta(seconds=FIRST_WAIT * 4.0 ** (attempts - 1))
        known, claim = dict(reminder._mapping), {"round": round_, "attempts": attempts, "next_at": utc_text(later)}
        if not self._store.change_reminder(known, claim):
            return None
        # What to play is known once the round is open.
        opened = reminder.after < 0.0 or view.open_round is not None
        turn = Turn.read(self._store.perform(view.id, Ask())) if opened else None
        text = words.reminder(view, due, turn, now.isoformat())
        outcome = self._call(reminder.webhook, f"{view.id}.{round_}", text, now)
        over = outcome == "sent" or attempts >= ATTEMPTS
        called = {"next_at": None if over else claim["next_at"], "outcome": outcome, "outcome_at": utc_text(now)}
        self._store.change_reminder(known | claim, called)
        facts = {"experiment": view.id, "round": round_, "webhook": reminder.webhook, "attempt": attempts}
        level = logging.INFO if outcome == "sent" else logging.WARNING
        LOGGER.log(level, "reminder", extra={"facts": facts | {"outcome": outcome}})
        return outcome

    def _call(self, name: str, identity: str, text: str, now: datetime.datetime) -> str:
        """Call a webhook and return "sent", or why it failed; the address, which may hold a key, is not part of it."""
        address = self._config.webhooks.get(name)
        if address is None:
            return "failed: the operator does not allow this webhook"
        body, timestamp = json.dumps({"text": text}).encode(), str(int(now.timestamp()))
        signed = signature(self._config.webhook_secret, identity, timestamp, body)
        headers = {"Content-Type": "application/json", "webhook-id": identity, "webhook-timestamp": timestamp}
        try:
            headers["webhook-signature"] = signed
            # Redirects are not followed: they could lead to an address that is not allowed. The body of the answer,
            # which may have no end, is not read.
            with httpx.stream("POST", address, content=body, headers=headers, timeout=TIMEOUT) as answer:
                return "sent" if answer.is_success else f"failed: status {answer.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            return f"failed: {type(error).__name__}"
