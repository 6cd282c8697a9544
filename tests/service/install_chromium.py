"""Make sure that there is a Chromium for the browser tests: the system's, else apt's, else playwright's own.

Ends with status 0 and the path of a browser that starts, else with 1: a missing browser must fail the tests, not
skip them. Run it: python tests/service/install_chromium.py
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MINUTES = 10


def starts(browser: str | None) -> bool:
    """Say whether a browser answers with its version."""
    if not browser:
        return False
    try:
        done = subprocess.run([browser, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def of_the_system() -> str | None:
    """Return a browser that is there: the one CHROMIUM names, else one on the path."""
    for browser in (os.environ.get("CHROMIUM"), *map(shutil.which, NAMES)):
        if starts(browser):
            return browser
    return None


def of_playwright() -> str | None:
    """Return playwright's own browser, where it has been installed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.executable_path
    return browser if Path(browser).exists() and starts(browser) else None


def by_apt() -> None:
    """Install the distribution's browser, where that is allowed."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        run(["apt-get", "update", "-qq"])
        run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"])


def by_playwright() -> None:
    """Install playwright's own browser for this user."""
    run([sys.executable, "-m", "playwright", "install", "chromium"])


def run(command: list[str]) -> None:
    """Run a command; what it did is judged by whether there is a browser afterwards."""
    print("$", *command, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        subprocess.run(command, env=environment, timeout=60 * MINUTES)
    except subprocess.TimeoutExpired:
        print(f"gave up after {MINUTES} minutes", flush=True)


def nothing() -> None:
    """Install nothing: perhaps a browser is there already."""


WAYS: tuple[Callable[[], None], ...] = (nothing, by_apt, by_playwright)


def main() -> int:
    """Try one way after another until a browser starts."""
    for way in WAYS:
        way()
        browser = of_the_system() or of_playwright()
        if browser is not None:
            print(f"Chromium: {browser}")
            return 0
    print("No Chromium, and none could be installed: install one, or set CHROMIUM to its path.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
