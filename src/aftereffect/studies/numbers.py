"""How reports, tables and sentences write numbers."""

import math


def number(value: float | None, digits: int = 0) -> str:
    """Return a number as tables show it; a dash for none.

    >>> number(12345.6), number(None), number(0.1234, 2)
    ('12,346', '–', '0.12')
    """
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return "–" if value is None or not math.isfinite(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def plus_minus(value: float | None, error: float | None) -> str:
    """Return a mean with its standard error."""
    return number(value) if error is None else f"{number(value)} ± {number(error, 0 if error >= 9.5 else 1)}"


def large(count: float) -> str:
    """Return a large count in words.

    >>> large(1_250_000_000), large(40_000), large(3e12)
    ('1.25 billion', '40,000', '3 trillion')
    """
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:.3g} {word}"
    return f"{count:,.0f}"


def short(value: float) -> str:
    """Return a number that fits under a tick of an axis.

    >>> short(2_000_000.0), short(50_000.0), short(0.5)
    ('2M', '50k', '0.5')
    """
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e4 else f"{value:g}"


def several(values: list[int]) -> str:
    """Return whole numbers in ascending order, each once.

    >>> several([4, 1000, 4])
    '4, 1,000'
    """
    return ", ".join(f"{value:,}" for value in sorted(set(values)))
