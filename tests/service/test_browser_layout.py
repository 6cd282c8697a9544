"""How the dashboard looks in a real Chromium: on a phone and a store, in the light and in the dark, to tired eyes."""

import time

import pytest
from playwright.sync_api import Page
from tests.service.browser import window
from tests.service.server import server

from aftereffect.service.client import Client

LONG = "Anunbrokennamethatgoesonandonandonandonandonandonandonandonandonandonandonandonandonandonandon"

# Every text on the page: its colour against the first ground behind it that is not see-through (WCAG 2.2, 1.4.3).
FAINT = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = read(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !element.checkVisibility() || element.closest("script")) continue;
    const style = getComputedStyle(element);
    const text = read(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(text), light(ground(element))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 600);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${walker.currentNode.textContent.trim()}`);
  }
  return faint;
}
"""
SMALL = """
() => [...document.querySelectorAll(
  "main button, main input:not([type=hidden]):not([type=radio]):not([type=checkbox]), main select, main label.pick")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 44).map((each) => each.outerHTML)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with server(f"sqlite:///{tmp_path_factory.mktemp('layout') / 'store.db'}") as found:
        fill(found)
        yield found


def fill(address: str) -> None:
    """Make an experiment of each kind, with names nobody would choose."""
    with Client(address) as client:
        common = {"low": 0, "high": 9, "seed": 5}
        several = client.create(name=LONG, arms=[LONG, "B", "C"], max_delay=1, units=[LONG, "south"], **common)
        plain = client.create(name="Plain", arms=["A", "B"], max_delay=3, start_date="2026-01-01", **common)
        done = client.create(name="Done", arms=["A", "B"], max_delay=0, horizon=30, **common)
        client.create(name="Draft", arms=["A", "B"], max_delay=2, draft=True, **common)
        for number in range(1, 31):
            for one in (several, plain, done):
                client.ask(one.id)
                for unit in one.units:
                    client.tell(one.id, number, 99999.0 if number == 9 else float(number % 4), unit)
        client.ask(several.id)
        client.away(plain.id, "B")
        client.ask(plain.id)
        client.pause(plain.id)


def every_page(address: str) -> list[str]:
    with Client(address) as client:
        found = [f"/experiments/{one.id}" for one in client.experiments().items]
    compared = "&".join(f"id={path.rpartition('/')[2]}" for path in found)
    further = ["/docs", f"/compare?{compared}", f"{found[0]}/correct", "/?search=nothing"]
    return ["/", "/experiments/new", "/experiments/nosuchexperiment", *found, *further]


def faint(page: Page, seconds: float = 20.0) -> list[str]:
    """Return what is hard to read; charts get some time to be drawn again in the colours of another scheme."""
    until = time.monotonic() + seconds
    while (found := page.evaluate(FAINT)) and time.monotonic() < until:
        page.wait_for_timeout(50)
    return found


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_their_window_and_can_be_read(browser, address, width):
    with window(browser, address, width) as seen:
        for path in every_page(address):
            page = seen.go(path)
            page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
            grounds = set()
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
                assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, (path, scheme)
                assert faint(page) == [], (path, scheme)
                assert page.evaluate(SMALL) == [], (path, scheme)
            assert page.locator("#charts-problem:visible").all_inner_texts() == [], path
            assert len(grounds) == 2, path
        assert [fault for fault in seen.faults() if "404" not in fault] == []


def test_the_eyes_of_the_test_see_faint_text_and_small_buttons(browser, address):
    with window(browser, address, 390) as seen:
        page = seen.go("/experiments/new")
        page.evaluate("document.querySelector('h1').style.color = '#ccc'")
        page.evaluate("document.querySelector('main button').style.minHeight = '10px'")
        page.evaluate("document.querySelector('main button').style.padding = '0'")
        assert page.evaluate(FAINT) == ["1.49 New experiment"]
        assert len(page.evaluate(SMALL)) == 1


def test_pages_without_scripts_fit_a_phone_too(browser, address):
    with window(browser, address, 390, java_script_enabled=False) as seen:
        for path in every_page(address):
            page = seen.go(path)
            box = page.locator("main").bounding_box()
            assert box["width"] <= 390, path
