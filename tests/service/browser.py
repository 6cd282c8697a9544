"""A real Chromium for tests: found, never skipped; and a watch over everything a page must not do."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.service.install_chromium import found

# Runs before any script of a page: what breaks the policy, and what an injected script would set.
WATCH = """
window.broken = [];
document.addEventListener("securitypolicyviolation", (event) => window.broken.push(
  `${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; as root it has no sandbox to use."""
    path = found()
    with sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def window(browser: Browser, address: str, width: int = 1280, **options: Any) -> Iterator["Watched"]:
    """Open a window of its own, with nothing remembered, and a page in it."""
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    try:
        yield Watched(context, address, scripts=options.get("java_script_enabled", True))
    finally:
        context.close()


class Watched:
    """A page of a browser, and everything it did that it must not do.

    Attributes:
        page: the playwright page.
        heard: errors on the console, uncaught errors, dialogs, requests to other places.
    """

    def __init__(self, context: BrowserContext, address: str, *, scripts: bool) -> None:
        """Open a page that goes to `address` only."""
        self.address, self.scripts, self.heard = address, scripts, list[str]()
        self.page: Page = context.new_page()
        self.page.add_init_script(WATCH)
        self.page.on("console", lambda said: self._hear(said.type == "error", f"console: {said.text}"))
        self.page.on("pageerror", lambda error: self.heard.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        own = urlsplit(address).netloc
        self.page.on("request", lambda sent: self._hear(urlsplit(sent.url).netloc != own, f"request: {sent.url}"))

    def _hear(self, bad: bool, words: str) -> None:
        if bad:
            self.heard.append(words)

    def _dialog(self, dialog: Any) -> None:
        self.heard.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def go(self, path: str) -> Page:
        """Open a path of the service and wait until it is loaded, and quiet where charts ask for their data."""
        self.page.goto(self.address + path)
        if self.scripts and self.page.locator("#charts").count():
            self.page.wait_for_load_state("networkidle")
        return self.page

    def drawn(self) -> Page:
        """Wait until the charts are drawn."""
        self.page.wait_for_selector("html[data-charts=drawn]", timeout=60_000)
        return self.page

    def faults(self) -> list[str]:
        """Return everything that went wrong so far, with what broke the content security policy."""
        broken: list[str] = self.page.evaluate("window.broken || []")
        return [*self.heard, *broken]
