"""Make sure that there is a Chromium for the browser tests: the system's, else apt's, else playwright's own.

Ends with status 0 and the path of a browser that starts, else with 1 and what to do: a missing browser must fail the
tests, not skip them. `found` is also how the tests find theirs. Run it: python tests/service/install_chromium.py
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MINUTES = 10
HELP = (
    "The browser tests need a Chromium, and none of these starts: {tried}.\n"
    "Install one and run this again: `apt-get install chromium` as root, your system's own way, or, with a network,\n"
    "`{python} -m playwright install chromium`. Or set CHROMIUM to the path of one that is there."
)


def starts(browser: str) -> bool:
    """Say whether a browser answers with its version."""
    try:
        done = subprocess.run([browser, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def candidates() -> list[str]:
    """Return the browsers there may be: the one that CHROMIUM names alone, else the system's and playwright's."""
    named = os.environ.get("CHROMIUM")
    if named:
        return [named]
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return [*filter(None, map(shutil.which, NAMES)), own]


def found() -> str:
    """Return a browser that starts; FileNotFoundError says what to do where there is none."""
    tried = candidates()
    for browser in tried:
        if starts(browser):
            return browser
    raise FileNotFoundError(HELP.format(tried=", ".join(tried), python=sys.executable))


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
    missing = ""
    # Where CHROMIUM names one, that is wanted, and nothing that could be installed.
    for way in WAYS[:1] if os.environ.get("CHROMIUM") else WAYS:
        way()
        try:
            print(f"Chromium: {found()}")
        except FileNotFoundError as error:
            missing = str(error)
        else:
            return 0
    print(missing, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
