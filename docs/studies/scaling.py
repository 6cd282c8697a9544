"""How regret grows with d+1, K and T: fitted exponents, the rates of Section 1, and the leading terms of the proofs.

For a theoretical rate, such as √((d+1)KT), only the constant is fitted; the scatter of the measured values about it
shows how well it describes them.

A rate describes large sizes. On losses drawn from one law, the leading term at all sizes is the penalty of the base's
regulariser, converted from updates to rounds:

    (1/p) · (2d+1)/(d+1) · penalty        1/p rounds per block (Definition 1), and a window with d+1 of 2d+1 parts
    penalty = 2η(√K − 1)                  Tsallis FTRL: its regulariser at a corner minus that at the centre (Theorem 6)
    penalty = ln K / η                    Exp3, likewise

with the learning rates η of Corollary 7 and Section 4. The labelled player of Zimmert and Seldin has two regularisers,
with the penalties 2√T(√K − 1) and √(2dT ln K). For K = 4 to 16 the power of K closest to √K − 1 is 0.79, not 1/2:
there, theory itself predicts an exponent above 1/2.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from aftereffect import theory
from aftereffect.core.checks import FloatArray
from aftereffect.engines.simulation import Z95
from aftereffect.studies.report import frames
from aftereffect.studies.report.charts import GREY, Drawing, drawn, looks, ticked
from aftereffect.studies.report.page import Page, Shaded, TableEntry
from aftereffect.studies.report.power_laws import VARIABLES, Exponent, PowerLaw, fitted, power_law, variables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TERMS = {
    "tsallis": ("(2d+1)/((d+1)p) · 2η(√K − 1)", "√((d+1)KT)"),
    "exp3": ("(2d+1)/((d+1)p) · ln K/η", "√((d+1)KT ln K)"),
    "labelled": ("2√T(√K − 1) + √(2dT ln K)", "√((d ln K + K)T)"),
}
"""The leading terms as formulas, and their orders at large sizes."""
PLAYERS = {
    ("CompositeLossWrapper", "{}"): "tsallis",
    ("CompositeLossWrapper", '{"base":"tsallis"}'): "tsallis",
    ("CompositeLossWrapper", '{"base":"exp3"}'): "exp3",
    ("ZimmertSeldin2020", "{}"): "labelled",
}
"""The players with a known leading term, by name and settings."""
LABELS_APART = 0.055
"""The least distance between numbers beside lines, as a share of the axis."""


class Agreement(NamedTuple):
    """How well a rate describes measured values: y ≈ constant · rate, up to a typical factor of exp(scatter)."""

    rate: str
    constant: float
    scatter: float

    @property
    def percent(self) -> float:
        """The scatter as a typical deviation in percent."""
        return 100.0 * math.expm1(self.scatter)

    def ties(self, other: "Agreement") -> bool:
        """Whether both describe the values equally well, as rates that are equal at these sizes do."""
        return math.isclose(self.scatter, other.scatter, rel_tol=1e-6, abs_tol=1e-9)


class Term(NamedTuple):
    """A player's leading term: its key in TERMS, its fit at the same sizes, and how well it describes the regrets."""

    name: str
    fit: dict[str, Exponent]
    agreement: Agreement


class Slope(NamedTuple):
    """The exponent between two neighbouring values of a variable, all else equal: measured, and of the leading term."""

    low: float
    high: float
    measured: Exponent
    expected: float


class Growth(NamedTuple):
    """One player's worst regrets, their fit, and how well the rates of Section 1 describe them, the best first.

    rows: with the float columns d+1, K and T, and `term`, the leading term or, if it is unknown, the regret itself.
    """

    rows: pl.DataFrame
    fit: dict[str, Exponent]
    rates: list[Agreement]
    term: Term | None


def scaling(page: Page, rows: pl.DataFrame) -> list[str]:
    """Show the powers of d+1, K and T with which the worst regret grows, and which rate of Section 1 fits best."""
    shown = frames.readable(rows.filter(measure="regret"))
    found = frames.some(growths(frames.worst(shown)), "players at several sizes")
    page.section("How regret grows")
    names = [name for name in VARIABLES if any(name in one.fit for one in found.values())]
    what = "greatest mean regret over the instances of this study" if shown["where"].n_unique() > 1 else "mean regret"
    page.text(
        f"For every player and size the {what} is taken, in units of the largest effect of an action, and a power law "
        "fitted to it by least squares in logarithms. Exponents have their standard errors. Then one constant is "
        "fitted to each rate of the table in Section 1 of the paper; the typical deviation of the measured regrets "
        "from it shows how well it describes them."
    )
    caption = "Worst regret, adjusted by the fit to common values of the sizes not on the axis; lines and numbers are "
    page.figure(scaling_chart(found, names), caption + "the fitted exponents.")
    rates = list(section_one(1.0, 0.0, 1.0))
    table: list[list[TableEntry]] = []
    for who, one in found.items():
        powers = [one.fit.get(name) for name in names]
        line: list[TableEntry] = []
        line += [f"{power.value:.2f} ± {power.standard_error:.2f}" if power else "–" for power in powers]
        line.append(f"{one.rates[0].constant:.2f}")
        for agreement in sorted(one.rates, key=lambda agreement: rates.index(agreement.rate)):
            text = f"{agreement.percent:.0f}%"
            line.append(Shaded(text, -0.5) if agreement.ties(one.rates[0]) else text)
        table.append([who, *line])
    caption = "Fitted exponents; then the constant of the best rate, and typical deviations from each, the best shaded."
    page.table(["player", *names, "constant", *rates], table, caption=caption)
    _terms(page, found, names)
    return [sentence(who, one) for who, one in found.items()]


def _terms(page: Page, found: Mapping[str, Growth], names: Sequence[str]) -> None:
    """Compare the exponents with those of the proofs' leading terms, over all sizes and between neighbouring sizes."""
    table: list[list[TableEntry]] = []
    slopes: dict[str, dict[str, list[Slope]]] = {}
    for who, one in found.items():
        if one.term is None:
            continue
        pairs = [(one.fit.get(name), one.term.fit.get(name)) for name in names]
        shown = [f"{a.value:.2f} / {b.value:.2f}" if a and b else "–" for a, b in pairs]
        _, constant, _ = agreement = one.term.agreement
        table.append([who, TERMS[one.term.name][0], *shown, f"{constant:.2f}", f"{agreement.percent:.1f}%"])
        slopes[who] = {name: local_slopes(one.rows, name) for name in ("d+1", "K")}
    if not table:
        return
    page.section("Why exponents are not 1/2")
    page.text(
        "A rate describes large sizes. At the sizes that were played, theory itself has other exponents: the regret "
        "of a base has the penalty of its regulariser, 2η(√K − 1) or ln K/η, and a wrapper multiplies it by 1/p, the "
        "rounds per block, and by (2d+1)/(d+1), as windows hold d+1 of 2d+1 parts. No constant is fitted here: the "
        "terms are those of the proofs, with the learning rates that were played. The labelled player has two "
        "regularisers and two penalties, 2√T(√K − 1) and √(2dT ln K)."
    )
    caption = "Exponents of measured regret / of the leading term, fitted alike at the same sizes; regret over it."
    page.table(["player", "leading term", *names, "regret / term", "deviation"], table, words=(1,), caption=caption)
    moving = [name for name in ("d+1", "K") if any(len(each[name]) > 1 for each in slopes.values())]
    if moving:
        caption = "Exponents from one size to the next, all else equal: measured (dots, with 95% intervals) and of the "
        caption += "leading term (lines). The exponent of the rate is 1/2 (dashed)."
        page.figure(slopes_chart(slopes, moving), caption)


def sentence(who: str, one: Growth) -> str:
    """Return a sentence on the fit, the best rate, and what theory predicts at these sizes."""
    best = one.rates[0]
    text = f"{who}: regret grows as {product(one.fit)}; of the rates compared, {best.constant:.1f}·{best.rate} "
    text += f"describes it best, with a typical deviation of {best.percent:.0f}%"
    worse = [agreement for agreement in one.rates if not agreement.ties(best)]
    text += f", against {worse[0].percent:.0f}% for the next, {worse[0].rate}." if worse else "."
    if one.term is not None:
        agreement, order = one.term.agreement, TERMS[one.term.name][1]
        text += (
            f" Theory's leading term, of order {order}, grows as {product(one.term.fit, errors=False)} "
            f"at these sizes; regret is {agreement.constant:.2f} times this term, with a typical deviation of "
            f"{agreement.percent:.1f}%."
        )
    return text


def product(fit: dict[str, Exponent], errors: bool = True) -> str:
    """Return the fitted powers as a product.

    >>> product({"d+1": Exponent(0.5, 0.01), "K": Exponent(1.0, 0.02)})
    '(d+1)^0.50±0.01 · K^1.00±0.02'
    """
    return " · ".join(
        f"{f'({key})' if '+' in key else key}^{power.value:.2f}" + (f"±{power.standard_error:.2f}" if errors else "")
        for key, power in fit.items()
    )


def growths(worst: pl.DataFrame) -> dict[str, Growth]:
    """Return how the worst regrets of each player grow; players that cannot be fitted are left out."""
    return {who: growth(law) for who, law in fitted(worst).items()}


def growth(law: PowerLaw) -> Growth:
    """Compare one player's worst regrets with the rates of Section 1, and with its leading term if it has one."""
    rows, fit = law
    regret = rows["regret"].to_numpy()
    rates = section_one(*(rows[name].cast(pl.Float64).to_numpy() for name in frames.SIZES))
    names = {PLAYERS.get((name, text)) for name, text in rows.select("player", "player_params").iter_rows()}
    # The terms are those of effects from 0 to 1; effects below 0 have neither bounds nor a known unit.
    name = names.pop() if len(names) == 1 and not rows["corollary_bound"].null_count() else None
    term, values = None, regret
    if name is not None:
        values = np.array([leading_term(name, *sizes) for sizes in rows.select(frames.SIZES).iter_rows()])
        own = power_law(variables(rows), values)
        term = Term(name, own, agreements({name: values}, regret)[0]) if own is not None else None
    return Growth(rows.with_columns(term=pl.Series(values)), fit, agreements(rates, regret), term)


def section_one(n_arms: Any, max_delay: Any, horizon: Any) -> dict[str, Any]:
    """Return the three rates of the table in Section 1, by formula.

    >>> {name: float(rate) for name, rate in section_one(4.0, 5.0, 100.0).items()}
    {'√(KT)': 20.0, '√((d+K)T)': 30.0, '√((d+1)KT)': 48.98979485566356}
    """
    K, d, T = n_arms, max_delay, horizon
    return {"√(KT)": np.sqrt(K * T), "√((d+K)T)": np.sqrt((d + K) * T), "√((d+1)KT)": np.sqrt((d + 1) * K * T)}


def leading_term(name: str, n_arms: int, max_delay: int, horizon: int) -> float:
    """Return the leading term of a wrapped base, or of Zimmert and Seldin's labelled player.

    >>> round(leading_term("tsallis", n_arms=4, max_delay=0, horizon=200), 9)       # 2·10·(2 − 1)
    20.0
    >>> leading_term("labelled", n_arms=9, max_delay=0, horizon=100)                # 2·10·(3 − 1)
    40.0
    """
    K, d, T = n_arms, max_delay, horizon
    if name == "labelled":
        return 2.0 * math.sqrt(T) * (math.sqrt(K) - 1.0) + math.sqrt(2.0 * d * T * math.log(K))
    carried = (2 * d + 1) / (d + 1) / theory.update_rate(d, theory.best_update_probability(d))
    if name == "exp3":
        return carried * math.log(K) / theory.exp3_learning_rate(K, d, T)
    return carried * 2.0 * theory.corollary_learning_rate(d, T) * (math.sqrt(K) - 1.0)


def agreements(rates: Mapping[str, FloatArray], y: FloatArray) -> list[Agreement]:
    """Return how well each rate describes y, the best first; each has one constant, fitted in logarithms.

    >>> [found] = agreements({"√(KT)": np.array([2.0, 4.0])}, np.array([10.0, 20.0]))
    >>> round(found.constant, 9), round(found.percent, 9)
    (5.0, 0.0)
    """
    ratios = {name: np.log(y) - np.log(rate) for name, rate in rates.items()}
    found = [Agreement(name, math.exp(logs.mean()), float(logs.std(ddof=1))) for name, logs in ratios.items()]
    return sorted(found, key=lambda agreement: agreement.scatter)


def local_slopes(rows: pl.DataFrame, name: str) -> list[Slope]:
    """Return, for neighbouring values of one variable, the mean slopes of ln regret and ln term between rows that
    differ in this variable only.
    """
    rest = [other for other in VARIABLES if other != name]
    share = (pl.col("standard_error").fill_null(0.0) / pl.col("regret")) ** 2
    logs = rows.select(*rest, name, pl.col("regret").log(), pl.col("term").log(), share.alias("variance"))
    found = []
    for low, high in itertools.pairwise(rows[name].unique().sort().to_list()):
        pairs = logs.filter(**{name: low}).join(logs.filter(**{name: high}), on=rest)
        if pairs.height:
            width = math.log(high / low) * pairs.height
            measured, expected = (
                float((pairs[f"{column}_right"] - pairs[column]).sum()) / width for column in ("regret", "term")
            )
            error = math.sqrt(float((pairs["variance"] + pairs["variance_right"]).sum())) / width
            found.append(Slope(low, high, Exponent(measured, error), expected))
    return found


def scaling_chart(found: Mapping[str, Growth], names: Sequence[str]) -> Drawing:
    """Draw regret against d+1, K and T, and the fitted power laws.

    Each measured regret is scaled by the fit to the geometric means of the other two sizes; dots are geometric means
    of the scaled regrets, so that the line through them has the fitted exponent.
    """
    look = looks(found)
    words = "Worst regret against " + ", ".join(names) + " in log-log, with fitted lines."
    with drawn("scaling", words, len(names), columns=3, height=3.1, legend=3) as (drawing, axes):
        for ax, name in zip(axes, names, strict=True):
            ends: list[tuple[float, float, str, str]] = []
            shown = {who: one for who, one in found.items() if name in one.fit}
            for who, one in shown.items():
                x, y = _partial(one, name)
                power, (colour, mark, _) = one.fit[name].value, look[who]
                line = np.exp(np.log(y).mean()) * (x / np.exp(np.log(x).mean())) ** power
                ax.plot(x, y, ls="none", marker=mark, color=colour, label=who)
                ax.plot(x, line, color=colour, lw=1.2)
                ends.append((float(x[-1]), float(line[-1]), f"{power:.2f}", colour))
            ax.set(xscale="log", yscale="log")
            ticked(ax, sorted({x for one in shown.values() for x in one.rows[name].to_list()}), 5)
            ax.margins(x=0.2)
            _label_ends(ax, ends)
            ax.set_xlabel(name)
        axes[0].set_ylabel("worst regret")
    return drawing


def _label_ends(ax: "Axes", ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write a number beside the end of each line, moved up if it would overlap the one below."""
    bottom, top = (math.log(limit) for limit in ax.get_ylim())
    last = -math.inf
    for x, y, text, colour in sorted(ends, key=lambda end: end[1]):
        last = max(math.log(y), last + LABELS_APART * (top - bottom))
        place = (x, math.exp(last))
        ax.annotate(text, place, (5, 0), textcoords="offset points", va="center", color=colour, fontsize=8.5)


def _partial(one: Growth, name: str) -> tuple[FloatArray, FloatArray]:
    """Return the values of one variable, and the mean regret at each, adjusted for the other variables by the fit."""
    sizes = variables(one.rows)
    logs = np.log(one.rows["regret"].to_numpy())
    for other, power in one.fit.items():
        if other != name:
            logs = logs - power.value * (np.log(sizes[other]) - np.log(sizes[other]).mean())
    x = np.unique(sizes[name])
    return x, np.array([math.exp(logs[sizes[name] == value].mean()) for value in x])


def slopes_chart(found: Mapping[str, Mapping[str, Sequence[Slope]]], names: Sequence[str]) -> Drawing:
    """Draw exponents between neighbouring sizes, measured and expected, against the sizes' geometric mean."""
    look = looks(found)
    words = "Exponents from one size to the next of " + ", ".join(names) + "."
    with drawn("slopes", words, len(names), height=3.0, legend=3) as (drawing, axes):
        for ax, name in zip(axes, names, strict=True):
            for who, by_name in found.items():
                colour, mark, _ = look[who]
                x = [math.sqrt(slope.low * slope.high) for slope in by_name[name]]
                y = [slope.measured.value for slope in by_name[name]]
                half = [Z95 * slope.measured.standard_error for slope in by_name[name]]
                if x:
                    ax.errorbar(x, y, yerr=half, ls="none", marker=mark, elinewidth=1.0, label=who, color=colour)
                    ax.plot(x, [slope.expected for slope in by_name[name]], lw=1.2, color=colour)
            ax.axhline(0.5, color=GREY, ls="--", lw=1.1, label="1/2")
            ax.set(xscale="log", xlabel=name)
            slopes = [slope for by_name in found.values() for slope in by_name[name]]
            ticked(ax, sorted({end for slope in slopes for end in (slope.low, slope.high)}))
            ax.set_ylim(0.0, None)
        axes[0].set_ylabel("exponent")
    return drawing
