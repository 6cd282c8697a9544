"""The calendar date of a round: the start date plus the rounds before it, moved on by the days of every pause."""

import datetime
import functools

_LAST = datetime.date.max.toordinal()


class Dates:
    """start: the date of round 1, None to take the day on which a round is asked for. round_length: in days."""

    __slots__ = ("_first", "_length", "paused_at", "shift")

    def __init__(self, start: str | None, round_length: float) -> None:
        """Begin without pauses."""
        self._first = None if start is None else datetime.date.fromisoformat(start).toordinal()
        self._length = round_length
        self.shift = 0
        self.paused_at: str | None = None

    def of(self, number: int, at: str) -> str | None:
        """Return the date of a round that is asked for at a moment; None if there is no such date."""
        if self._first is None:
            return at[:10] if moment(at) is not None else None
        day = self._first + int((number - 1) * self._length) + self.shift
        return datetime.date.fromordinal(day).isoformat() if day <= _LAST else None

    def pause(self, at: str) -> None:
        """Note when a pause began."""
        self.paused_at = at

    def resume(self, at: str) -> None:
        """Move all later rounds on by the whole days the pause took."""
        begun, ended = moment(self.paused_at or ""), moment(at)
        if begun is not None and ended is not None:
            self.shift += max((ended - begun).days, 0)
        self.paused_at = None


@functools.lru_cache(256)
def moment(at: str) -> datetime.datetime | None:
    """Return an ISO time, None if the text is none; a time without a zone is taken as UTC."""
    try:
        found = datetime.datetime.fromisoformat(at)
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)
