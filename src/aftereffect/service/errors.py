"""Errors of the service: each has a code, an HTTP status and a sentence (RFC 9457, problem details)."""

from collections.abc import Iterator, Mapping, Sequence
from http.client import responses
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from aftereffect.core.checks import shown
from aftereffect.core.errors import AftereffectError

CODES: dict[str, tuple[int, str]] = {
    "invalid": (422, "The request is invalid"),
    "not_found": (404, "Not found"),
    "conflict": (409, "The request conflicts with what is stored"),
    "closed": (409, "The block is closed"),
    "wrong_state": (409, "The experiment is not in the right state"),
    "ahead": (409, "The round is ahead of its date"),
    "not_open": (409, "The round is not open yet"),
    "unauthorized": (401, "A token is required"),
    "forbidden": (403, "The token does not allow this"),
    "too_large": (413, "The request is too large"),
    "too_many": (429, "Too many requests"),
    "busy": (503, "The store is busy"),
    "full": (507, "The store is full"),
    "corrupt": (500, "The stored data is damaged"),
    "bad_request": (400, "The request cannot be read"),
    "not_allowed": (405, "The path does not support this method"),
    "timeout": (408, "The body did not arrive in time"),
    "unsupported": (415, "The body is not JSON"),
    "internal": (500, "Internal error"),
    "unreachable": (503, "The server cannot be reached"),
    "unreadable": (502, "The answer cannot be read"),
}
"""Every code with its HTTP status and its title."""


class Refused(AftereffectError):
    """A request was not carried out; with status below 500, nothing has changed. `Local` and `Client` raise it alike.

    code: one of CODES, or that of a newer server. status: the HTTP status. detail: a sentence that names argument, rule
    and value. extra: further fields of the answer, as `field`: the name of the argument.

    >>> Refused("not_open", "round must be open to be reported, but got 7").problem()["status"]
    409
    """

    def __init__(self, code: str, detail: str, **extra: Any) -> None:
        super().__init__(detail)
        self.code, self.detail, self.extra = code, detail, extra
        self.status, self.title = CODES.get(code, (500, code))

    @classmethod
    def from_problem(cls, status: int, body: Any) -> "Refused":
        """Return the refusal that a problem document describes; `status` is used if the document has none.

        >>> Refused.from_problem(404, {"code": "not_found", "detail": "there is no experiment 'x'"}).status
        404
        """
        found = dict(body) if isinstance(body, Mapping) else {}
        title, code, detail, told, _ = (found.pop(name, None) for name in ("title", "code", "detail", "status", "type"))
        words = detail or title or f"the server answered with status {status}"
        refused = Refused(str(code or f"status_{status}"), str(words), **found)
        refused.status = told if isinstance(told, int) else status
        if code not in CODES:
            refused.title = responses.get(refused.status, f"Status {refused.status}")
        return refused

    @property
    def field(self) -> str:
        """The name of the argument that breaks a rule, with dots for parts of settings; "" if none does."""
        return str(self.extra.get("field", ""))

    def within(self, where: str, **extra: Any) -> "Refused":
        """Return the same refusal of a part of a request. where: which part, such as "report 3"."""
        return Refused(self.code, f"{where}: {self.detail}", **self.extra, **extra)

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
    """A stored log, state or row is not one that this service could have written."""

    def __init__(self, detail: str, **extra: Any) -> None:
        super().__init__("corrupt", detail, **extra)


class FieldError(ValueError):
    """A field breaks a rule that depends on others; raised by validators of whole models."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field} {rule}")
        self.field = field


Model = TypeVar("Model", bound=BaseModel)

RULES = {
    "string_type": "must be text",
    "string_unicode": "must be text without lone surrogates",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have at most {max_length} characters",
    **dict.fromkeys(("int_type", "int_parsing"), "must be an int"),
    **dict.fromkeys(("float_type", "finite_number"), "must be a finite number"),
    "bool_type": "must be true or false",
    **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have {min_length} or more items",
    "too_long": "must have at most {max_length} items",
    **dict.fromkeys(("dict_type", "model_type"), "must be a mapping"),
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""The rule for each type of pydantic error, formatted with the fields of its context."""


def checked(kind: type[Model], given: Any, what: str = "the body") -> Model:
    """Return `given` as a model of this kind, or raise Refused with the first rule it breaks.

    what: the name of `given` in the error.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        found = error.errors()
        missing = [str(each["loc"][0]) for each in found if each["type"] == "missing" and len(each["loc"]) == 1]
        if len(missing) > 1:
            detail = f"{', '.join(missing)} must be given, but they are missing"
            raise Refused("invalid", detail, field=missing[0], fields=missing) from None
        # A key that is wrong says more than that another one is missing.
        wrong = (each for each in found if each["type"] == "extra_forbidden" and len(each["loc"]) > 1)
        first = next(wrong, found[0])
        names, rule = [part for part in first["loc"] if isinstance(part, str)], first.get("ctx", {}).get("error")
        if isinstance(rule, FieldError):
            names.append(rule.field)
        field = {"field": ".".join(names)} if names else {}
        raise Refused("invalid", sentence(first, kind, what), **field) from None


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in the type of a field."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _keys(kind: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """Return the keys that a model allows at a place inside it."""
    for name in place:
        if isinstance(name, str) and name in kind.model_fields:
            kind = next(_models(kind.model_fields[name].annotation), kind)
    return list(kind.model_fields)


def _place(where: Sequence[str | int]) -> str:
    """Return the name of a value inside others, such as "items[0].round"."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).removeprefix(".")


def sentence(first: Mapping[str, Any], kind: type[BaseModel] = BaseModel, what: str = "the body") -> str:
    """Return a sentence with the argument, rule and value of a pydantic error. kind: the model that was expected.

    >>> class Person(BaseModel):
    ...     age: int
    >>> try:
    ...     Person(age="old")
    ... except ValidationError as error:
    ...     sentence(error.errors()[0])
    "age must be an int, but got 'old'"
    """
    where, context, value = first["loc"], first.get("ctx", {}), first["input"]
    name = _place(where) or what
    if first["type"] == "value_error":
        # Raised by our validators: a field validator states the rule, a model validator the complete sentence.
        return f"{name} {context['error']}" if where else str(context["error"])
    if first["type"] == "missing":
        return f"{name} must be given, but it is missing"
    if first["type"] == "extra_forbidden":
        *outer, key = where
        known = ", ".join(map(repr, _keys(kind, outer)))
        return f"{_place(outer) or what} must have no other keys than {known}, but got {shown(key)}"
    if first["type"] == "literal_error":
        context["expected"] = context["expected"].replace(" or ", ", ")
    rule = first["msg"].replace("Input should", "must")
    if first["type"] in RULES:
        rule = RULES[first["type"]].format(**context)
    if first["type"] == "model_type" and where:
        rule += f" with keys among {', '.join(map(repr, _keys(kind, where)))}"
    length = context.get("actual_length", len(value) if first["type"].startswith("string_too") else None)
    return f"{name} {rule}, but got {shown(value) if length is None else length}"
