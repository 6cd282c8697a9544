"""What regret should be at sizes one can simulate: the terms of the proofs that lead, before they are rounded to rates.

A rate such as √((d+1)KT) is what is left at large sizes. What leads at all sizes, on losses that are drawn from one
law, is the price of telling arms apart at all, the penalty of the base's regulariser, carried from updates to rounds:

    (1/p) · (2d+1)/(d+1) · penalty        1/p rounds a block (Definition 1), and a window that holds d+1 of 2d+1 parts
    penalty = 2η(√K − 1)                  Tsallis FTRL: its regulariser at a corner less that at the middle (Theorem 6)
    penalty = ln K / η                    Exp3, the same for its own

with the rates η that Corollary 7 and Section 4 give. The labelled player of Zimmert and Seldin has two regularisers,
and with them the penalties 2√T(√K − 1) and √(2dT ln K). For K = 4 to 16 the power of K closest to √K − 1 is not 1/2 but
0.79: an exponent above 1/2 is what theory says there.
"""

import math

import polars as pl

from aftereffect import theory
from aftereffect.studies import views

NAMES = {
    "tsallis": "(2d+1)/((d+1)p) · 2η(√K − 1)",
    "exp3": "(2d+1)/((d+1)p) · ln K/η",
    "labelled": "2√T(√K − 1) + √(2dT ln K)",
}
"""The leading terms by whom they are of, as they are written."""

ORDERS = {"tsallis": "√((d+1)KT)", "exp3": "√((d+1)KT ln K)", "labelled": "√((d ln K + K)T)"}
"""Their orders at large sizes."""


def leading_term(whose: str, n_arms: int, max_delay: int, horizon: int) -> float:
    """Return the leading term of a wrapped base, or of Zimmert and Seldin's labelled player.

    >>> round(leading_term("tsallis", n_arms=4, max_delay=0, horizon=200), 9)       # 2·10·(2 − 1)
    20.0
    >>> leading_term("labelled", n_arms=9, max_delay=0, horizon=100)                # 2·10·(3 − 1)
    40.0
    """
    K, d, T = n_arms, max_delay, horizon
    if whose == "labelled":
        return 2.0 * math.sqrt(T) * (math.sqrt(K) - 1.0) + math.sqrt(2.0 * d * T * math.log(K))
    carried = (2 * d + 1) / (d + 1) / theory.update_rate(d, theory.best_update_probability(d))
    if whose == "exp3":
        return carried * math.log(K) / theory.exp3_learning_rate(K, d, T)
    return carried * 2.0 * theory.corollary_learning_rate(d, T) * (math.sqrt(K) - 1.0)


def whose(player: str, settings: str) -> str | None:
    """Return whose leading term is that of a player, by the name and settings in its rows; None where none is known.

    >>> whose("wrapper", '{"base":"exp3"}'), whose("wrapper", '{"base":"exp3","learning_rate_factor":2.0}')
    ('exp3', None)
    """
    if player == "wrapper":
        return {"{}": "tsallis", '{"base":"tsallis"}': "tsallis", '{"base":"exp3"}': "exp3"}.get(settings)
    return {"wrapper_exp3": "exp3", "zimmert_seldin_simple": "labelled"}.get(player)


def of_rows(rows: pl.DataFrame) -> tuple[str, str, list[float]] | None:
    """Return how the leading term of one player's rows is written, its order, and its value in each row.

    None where it is not known, or rows are of several players.
    """
    names = {whose(*pair) for pair in rows.select("player", "player_params").unique().iter_rows()}
    name = names.pop() if len(names) == 1 else None
    if name is None:
        return None
    return NAMES[name], ORDERS[name], [leading_term(name, K, d, T) for K, d, T in rows.select(views.SIZES).iter_rows()]
