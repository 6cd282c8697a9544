"""Figure 1 of the paper (Definition 1, Section 3) for any Boolean sequence: which rounds draw, stay and update.

Round t is an update round if the coins b_{t-2d}, ..., b_{t-1} are 0 and b_t is 1. Because of the zeros a block is at
least 2d+1 rounds long, so all effects of the previous block have arrived before round t-d, and the d+1 totals of rounds
t-d, ..., t contain effects of this block's arm only. The base algorithm is fed their sum divided by 2d+1 (Lemma 2).
"""

from collections.abc import Iterable

from aftereffect.core import checks
from aftereffect.core.errors import InvalidArgument
from aftereffect.players.wrapper.coins import update_rounds


def read_coins(text: str) -> list[bool]:
    """Return the Boolean sequence written as a string of the digits 0 and 1.

    >>> read_coins("101")
    [True, False, True]
    """
    if not text or set(text) - set("01"):
        raise InvalidArgument(f"coins must be one or more of the digits 0 and 1, but got {checks.shown(text)}")
    return [digit == "1" for digit in text]


def round_kinds(coins: Iterable[bool], max_delay: int) -> list[str]:
    """Return the kind of each round: "D" (draw) or "S" (stay), followed by "U" if it is an update round (Definition 1).

    Round t updates if t >= 2d+1, b_t = 1 and the 2d coins before it are 0. It draws if t = 1 or t-1 updated.

    >>> round_kinds([1, 0, 0, 1, 1, 0, 0], max_delay=1)
    ['D', 'S', 'S', 'SU', 'D', 'S', 'S']
    >>> round_kinds([1, 0, 1], max_delay=0)
    ['DU', 'D', 'SU']
    """
    d = checks.integer("max_delay", max_delay, low=0)
    b = list(coins)
    ends = set(update_rounds(b, d))
    return ["DS"[t > 1 and t - 1 not in ends] + "U" * (t in ends) for t in range(1, len(b) + 1)]


def text_diagram(coins: Iterable[bool], max_delay: int, rounds_per_line: int = 23) -> str:
    """Return Figure 1 as text: the coins, the kinds of rounds with `|` between blocks, and the basis of each update.

    The row "needed" repeats the coins that Definition 1 requires for an update; "summed" marks the totals that are fed.

    >>> print(text_diagram([1, 0, 0, 1, 1, 0, 0], max_delay=1))
    coins   1  0  0  1 |1  0  0
    rounds  D  S  S  SU|D  S  S
    needed     0  0  1 |
    summed        +  + |
    """
    b = list(coins)
    kinds = round_kinds(b, max_delay)
    needed, summed = [""] * len(b), [""] * len(b)
    for t in update_rounds(b, max_delay):
        needed[t - 2 * max_delay - 1 : t] = ["0"] * (2 * max_delay) + ["1"]
        summed[t - max_delay - 1 : t] = ["+"] * (max_delay + 1)
    rows = {"coins": [str(int(coin)) for coin in b], "rounds": kinds, "needed": needed, "summed": summed}
    lines = []
    for first in range(0, len(b), rounds_per_line):
        here = range(first, min(first + rounds_per_line, len(b)))
        for name, cells in rows.items():
            row = (f"{cells[t]:2}" + ("|" if kinds[t].endswith("U") else " ") for t in here)
            lines.append(f"{name:8}{''.join(row)}".rstrip())
        lines.append("")
    return "\n".join(lines[:-1])


# Dimensions of the drawing, in pixels: one column per round, in the proportions of the paper's figure.
COLUMN, ROW, LEFT, TOP = 32, 36, 92, 18
STYLE = (
    "text{font-family:'Latin Modern Math','STIX Two Text',Georgia,'DejaVu Serif',serif;font-size:17px;"
    "text-anchor:middle;fill:#222}"
    ".name{text-anchor:end}.note{font-size:14px;fill:#c2600a}.sum{font-size:14px;fill:#1d5f9e}"
    ".needed{fill:#ffe873}.block{fill:none;stroke:#e07b12;stroke-width:2}"
    ".window{fill:none;stroke:#1d5f9e;stroke-width:2}"
)


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    # y is the vertical centre of the text; its baseline is 6 pixels lower.
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y + 6:g}"{mark}>{words}</text>'


def _update_mark(t: int, d: int) -> list[str]:
    """Return the yellow shape around update round t and the coins it needs, and the bracket under its d+1 totals."""
    right, coins, rounds, foot = LEFT + t * COLUMN, TOP, TOP + ROW, TOP + 2 * ROW
    shape = f"M{right} {coins}V{foot}h{-COLUMN}V{rounds}h{-2 * d * COLUMN}V{coins}Z"
    start, stop, y = right - (d + 1) * COLUMN + 4, right - 4, foot + 8
    bracket = f"M{start} {y}v7H{stop}v-7"
    return [
        f'<path class="needed" d="{shape}"/>',
        f'<path class="window" d="{bracket}"/>',
        _text((start + stop) / 2, y + 19, "summed" if d else "Σ", "sum"),
    ]


def svg_diagram(coins: Iterable[bool], max_delay: int) -> str:
    """Return Figure 1 as SVG text.

    Orange: the blocks. Yellow: each update round and the 2d+1 coins it needs. Blue: the d+1 totals that are summed.
    """
    b = list(coins)
    kinds = round_kinds(b, max_delay)
    updates = update_rounds(b, max_delay)
    foot = TOP + 2 * ROW
    width, height = LEFT + len(b) * COLUMN + 14, foot + 72
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<title>Rounds of the wrapper for max_delay = {max_delay}</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for t in updates:
        parts += _update_mark(t, max_delay)
    for first, last in zip([0, *updates], updates, strict=False):
        x, wide = LEFT + first * COLUMN, (last - first) * COLUMN
        parts.append(f'<rect class="block" x="{x}" y="{TOP}" width="{wide}" height="{2 * ROW}"/>')
        # A narrow block has room for its length only.
        rule = " ≥ 2d+1" if last - first >= 3 else ""
        parts.append(_text(x + wide / 2, foot + 50, f"{last - first}{rule}", "note"))
    done = updates[-1] if updates else 0
    if done < len(b):
        # The last block is not complete: it has no right edge.
        x, edge = LEFT + done * COLUMN, LEFT + len(b) * COLUMN
        parts.append(f'<path class="block" d="M{edge} {TOP}H{x}V{foot}H{edge}"/>')
    parts.append(_text(LEFT - 14, TOP + ROW / 2, "B", "name"))
    parts.append(_text(LEFT - 14, TOP + 1.5 * ROW, "round", "name"))
    for t, (coin, kind) in enumerate(zip(b, kinds, strict=True)):
        middle = LEFT + (t + 0.5) * COLUMN
        parts += [_text(middle, TOP + ROW / 2, str(int(coin))), _text(middle, TOP + 1.5 * ROW, kind)]
    return "\n".join([*parts, "</svg>\n"])
