"""What the service refuses, and how it says so: a code, an HTTP status and a sentence (RFC 9457, problem details)."""

from typing import Any

from aftereffect.core.errors import AftereffectError

CODES: dict[str, tuple[int, str]] = {
    "invalid": (422, "The request breaks a rule"),
    "not_found": (404, "There is no such thing"),
    "conflict": (409, "The round has another report already"),
    "closed": (409, "The block is closed and learned from"),
    "wrong_state": (409, "The experiment is not in the right state"),
    "not_open": (409, "The round is not open yet"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "The token does not allow this"),
    "too_large": (413, "The request is too large"),
    "too_many": (429, "Too many requests"),
    "busy": (503, "The store is busy"),
    "full": (507, "The store is full"),
    "corrupt": (500, "The store does not hold what was written"),
}
"""Every code with its HTTP status and its title."""


class Refused(AftereffectError):
    """A command that was not carried out; nothing has changed.

    code: one of CODES. detail: a sentence that names argument, rule and value. extra: further fields of the answer.

    >>> Refused("not_open", "round must be open to be told, but got 7").problem()["status"]
    409
    """

    def __init__(self, code: str, detail: str, **extra: Any) -> None:
        """Look up status and title."""
        super().__init__(detail)
        self.code = code
        self.status, self.title = CODES[code]
        self.detail = detail
        self.extra = extra

    def problem(self) -> dict[str, Any]:
        """Return the fields of a problem+json answer."""
        return {
            **self.extra,
            "type": f"urn:aftereffect:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
        }


class Corrupt(Refused):
    """A log, a state or a row that cannot have been written by this service."""

    def __init__(self, detail: str, **extra: Any) -> None:
        """Refuse with code "corrupt"."""
        super().__init__("corrupt", detail, **extra)
