"""What clients were told, kept outside the server, and what a server must hold because of it.

A key is (experiment, round, unit). Three things are written down: what was sent (`sending`), what was
acknowledged (`asked`, `told`), and every contradiction found (`problems`), in words. Rules held while
clients run:

- an ask of the same key always gives the same arm;
- an ask never gives a round whose totals were all acknowledged before it was sent;
- a key has one acknowledged total; another one accepted later is a contradiction;
- a total refused as a conflict, though no other total was ever sent for its key, is a contradiction.

`audit.py` holds the same ledger against what the server has stored.
"""

from typing import Any, NamedTuple

Total = float | None


class Key(NamedTuple):
    """A total belongs to one unit in one round of one experiment."""

    experiment: str
    round: int
    unit: str


class Ledger:
    """Acknowledgements and contradictions of any number of clients; memory only, it outlives every server."""

    def __init__(self) -> None:
        """Begin empty."""
        self.arms: dict[Key, str] = {}
        self.sent: dict[Key, set[Total]] = {}
        self.totals: dict[Key, Total] = {}
        self.amending: dict[Key, Total] = {}
        self.units: dict[str, int] = {}
        # By name: the experiments asked for with a key, and their ids once they are acknowledged.
        self.made: dict[str, str | None] = {}
        self.problems: list[str] = []
        self.acknowledged = 0
        self.refused: dict[int, int] = {}
        self._closed: dict[str, int] = {}
        self._told_units: dict[tuple[str, int], int] = {}

    def created(self, experiment: str, units: int = 1) -> None:
        """Note an experiment that the server said it has."""
        self.units[experiment] = units

    def make(self, name: str, identity: str) -> None:
        """Note an experiment that was created for a key; the same key again must give the same one."""
        self.acknowledged += 1
        known = self.made[name] = self.made[name] or identity
        if known != identity:
            self.problems.append(f"doubled: {name!r} was created as {known}, and then as {identity}")

    def closed(self, experiment: str) -> int:
        """Return the last round of which every unit's total was acknowledged, 0 before the first."""
        return self._closed.get(experiment, 0)

    def asked(self, experiment: str, answer: dict[str, Any], closed: int) -> Key:
        """Note an answered ask; closed is what `closed` said when the ask was sent."""
        self.acknowledged += 1
        key = Key(experiment, answer["round"], str(answer["unit"]))
        if key.round <= closed:
            self.problems.append(f"lost: an ask opened {key}, though the totals to round {closed} were acknowledged")
        arm = self.arms.setdefault(key, answer["arm"])
        if arm != answer["arm"]:
            self.problems.append(f"changed: {key} was asked as {arm!r}, and then as {answer['arm']!r}")
        return key

    def sending(self, key: Key, total: Total) -> None:
        """Note a total that is about to go out; from here on the server may have it."""
        self.sent.setdefault(key, set()).add(total)

    def told(self, key: Key, total: Total) -> None:
        """Note an acknowledged total."""
        self.acknowledged += 1
        if key in self.totals:
            if self.totals[key] != total:
                self.problems.append(f"changed: {key} has {self.totals[key]!r}, and {total!r} was accepted after it")
        else:
            self._close(key, total)

    def _close(self, key: Key, total: Total) -> None:
        if key not in self.totals:
            done = self._told_units[key[:2]] = self._told_units.get(key[:2], 0) + 1
            if done == self.units[key.experiment]:
                self._closed[key.experiment] = max(self.closed(key.experiment), key.round)
        self.totals[key] = total

    def amended(self, key: Key, total: Total, accepted: bool) -> None:
        """Note the answer to a correction that was noted in `amending` before it was sent."""
        del self.amending[key]
        if accepted:
            self.acknowledged += 1
            self.totals[key] = total

    def saw(self, key: Key, row: dict[str, Any]) -> None:
        """Note a stored row that was read: from here on it may not change either, acknowledged or not."""
        self.arms.setdefault(key, row["arm"])
        if row["status"] != "open":
            self._close(key, row["total"])

    def conflicted(self, key: Key, total: Total) -> None:
        """Note a total that was refused because the key is said to have another one."""
        self.refuse(409)
        if self.totals.get(key, total) == total and self.sent[key] == {total}:
            self.problems.append(f"refused: {key} can only have {total!r}, the one total sent, and refuses it")

    def refuse(self, status: int) -> None:
        """Count a refusal."""
        self.refused[status] = self.refused.get(status, 0) + 1

    def unexpected(self, what: str, status: int, body: Any) -> None:
        """Note an answer that no fault explains."""
        self.problems.append(f"unexpected: {what} was answered with {status}: {str(body)[:300]}")
