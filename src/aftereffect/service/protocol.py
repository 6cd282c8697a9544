"""What one can do with the service, wherever it is: `Client` talks to a server, `Local` to a database itself.

The verbs of the command line are written against this, so that they behave alike on both.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from aftereffect.service.errors import Refused
from aftereffect.service.replies import Json, Overview, Page, Report, Turn, Verdict


class Service(Protocol):
    """Experiments by id; everything refused is a `Refused`, everything answered durable."""

    def create(self, **settings: Any) -> Overview:
        """Make an experiment."""

    def experiment(self, experiment: str) -> Overview:
        """Return one experiment."""

    def experiments(self, after: str | None = None, limit: int = 100, state: str | None = None) -> Page:
        """Return a page of experiments."""

    def ask(self, experiment: str, unit: str | int | None = None) -> Turn:
        """Open the next round, or return the open one."""

    def tell(self, experiment: str, round: int, total: float | None, unit: str | int | None = None) -> Report:
        """Report the total of a round; None closes it as missing."""

    def amend(self, experiment: str, round: int, total: float | None, unit: str | int | None = None) -> Report:
        """Correct a total, or bring a late one, while the round's block is open."""

    def start(self, experiment: str) -> Overview:
        """Start a draft."""

    def pause(self, experiment: str) -> Overview:
        """Pause: no round opens until `resume`."""

    def resume(self, experiment: str) -> Overview:
        """Go on, with max_delay rounds of warm-up."""

    def finish(self, experiment: str) -> Overview:
        """End it for good."""

    def away(self, experiment: str, arm: str) -> Overview:
        """Say that an arm cannot be played for now."""

    def back(self, experiment: str, arm: str) -> Overview:
        """Say that an arm can be played again."""

    def rounds(self, experiment: str, after: str | int | None = None, limit: int = 100) -> Page:
        """Return a page of the record."""

    def events(self, experiment: str, after: int = 0, limit: int = 100) -> Json:
        """Return a page of the log."""

    def export(self, experiment: str, form: str = "csv") -> bytes:
        """Return the record as a CSV or Parquet file."""

    def verify(self, experiment: str | None = None) -> list[Verdict]:
        """Replay the log and compare bit for bit with what is stored."""

    def series(self, experiment: str, last: int = 2000) -> Json:
        """Return the columns behind the charts."""

    def bulk_ask(self, items: Iterable[Mapping[str, Any] | str]) -> Sequence[Turn | Refused]:
        """Ask for many experiments at once, each answered on its own."""

    def bulk_tell(self, items: Iterable[Mapping[str, Any]]) -> Sequence[Report | Refused]:
        """Report many totals at once, each answered on its own."""

    def plan(self, n_arms: int, **question: Any) -> Json:
        """Return what a choice of carry-over leads to."""

    def create_token(self, name: str, scopes: Sequence[str]) -> Json:
        """Make a token, shown this once."""

    def tokens(self) -> list[Json]:
        """List the tokens, not what they are."""

    def revoke_token(self, token_id: str) -> None:
        """Make a token worthless."""

    def close(self) -> None:
        """Let go of connections and locks."""
