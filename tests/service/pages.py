"""For tests of the dashboard: its pages read as tags and words, its forms sent as a browser sends them."""

from html.parser import HTMLParser
from urllib.parse import urlencode

import httpx
from tests.service.calling import BASE, Api

from aftereffect.service.experiment.commands import Ask, Tell

OWN = {"Origin": BASE}
MAIL = {"name": "Mailings", "arms": ["letter", "email"], "low": 0, "high": 50, "max_delay": 1, "seed": 7}
FORM = {"name": "Prices", "arms": "9.90\r\n10.90\r\n", "carry": "window", "length": "7 days", "high": "20"}


class Page(HTMLParser):
    """The tags of a page, with their attributes, and its words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data):
        self.words += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


def post(call: Api, path: str, fields: dict[str, str] | None = None, **options) -> httpx.Response:
    headers = {"Content-Type": "application/x-www-form-urlencoded", **OWN, **options.pop("headers", {})}
    return call("POST", path, content=urlencode(fields or {}), headers=headers, **options)


def get(call: Api, path: str, **options) -> Page:
    found = call("GET", path, **options)
    assert found.status_code == 200, found.text
    return Page(found.text)


def made(call: Api, **changes) -> str:
    return "/experiments/" + call.store.create({**MAIL, **changes}).id


def identity(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def played(call: Api, rounds: int, **changes) -> str:
    path = made(call, **changes)
    units = call.store.experiment(identity(path)).units
    for number in range(1, rounds + 1):
        call.store.perform(identity(path), Ask())
        for unit in units:
            call.store.perform(identity(path), Tell(number, float(number % 5), unit))
    return path
