"""Curves of real marketing-mix models: fit one with the real package, read its curves, and give effects back.

    python benchmarks/mix_models.py pymc         needs pymc-marketing
    python benchmarks/mix_models.py meridian     needs google-meridian

Either model sees two years of weekly data made here, in which effects of tv fade by 0.7 a week, of search by 0.2.
Few draws are taken: what is shown is that tables and arrays of the packages are read, not how well they fit.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd

import aftereffect as ae

WEEKS, DECAY, RETURN = 120, {"tv": 0.7, "search": 0.2}, {"tv": 2.0, "search": 3.0}



def data() -> pd.DataFrame:
    """Return a table of weeks, spend by channel, and sales."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"date": pd.date_range("2023-01-02", periods=WEEKS, freq="W-MON")})
    sales = 5.0 + 0.2 * rng.normal(size=WEEKS)
    for name, rate in DECAY.items():
        spend, stock = rng.gamma(0.8, 0.4, size=WEEKS), 0.0
        table[name] = spend
        for week in range(WEEKS):
            stock = spend[week] + rate * stock
            sales[week] += RETURN[name] * (1.0 - rate) * stock
    return table.assign(sales=sales)


def pymc() -> ae.carryover.AdstockCurves:
    """Fit PyMC-Marketing's model, also with a row of a lift test, and read the curves of its posterior."""
    from pymc_marketing.mmm import GeometricAdstock, LogisticSaturation
    from pymc_marketing.mmm.multidimensional import MMM

    table = data()
    parts = {"adstock": GeometricAdstock(l_max=9), "saturation": LogisticSaturation()}
    model = MMM(date_column="date", target_column="sales", channel_columns=list(DECAY), **parts)
    x, y = table.drop(columns="sales"), table["sales"]
    model.build_model(x, y)
    named = {"round_column": "date", "arm_column": "campaign", "total_column": "sales", "unit_column": "store"}
    lift = ae.carryover.estimate(ae.load_example("stores", "pandas"), max_lag=10, control="none", season=7, **named)
    # The stores of the example stand for a test of tv: 20 more a day brought 57 more.
    rows = ae.carryover.lift_rows(lift, spend={"letter": 20.0})
    model.add_lift_test_measurements(pd.DataFrame(rows).assign(channel="tv"))
    model.fit(x, y, draws=200, tune=300, chains=2, cores=1, random_seed=1, progressbar=False)
    curve = model.adstock.sample_curve(model.fit_result)
    print("dimensions of the array:", dict(curve.sizes))
    return ae.carryover.pymc_curves(curve, arms=list(DECAY))


def meridian() -> ae.carryover.AdstockCurves:
    """Fit Meridian's model, and read its table of decays."""
    from meridian.analysis.analyzer import Analyzer
    from meridian.data.data_frame_input_data_builder import DataFrameInputDataBuilder
    from meridian.model.model import Meridian

    table = data().rename(columns={"date": "time"}).assign(geo="national_geo", population=1.0)
    table["time"] = table["time"].dt.strftime("%Y-%m-%d")
    builder = DataFrameInputDataBuilder(kpi_type="revenue").with_kpi(table, kpi_col="sales")
    names = list(DECAY)
    built = builder.with_media(table, media_cols=names, media_spend_cols=names, media_channels=names).build()
    model = Meridian(input_data=built)
    model.sample_prior(100)
    model.sample_posterior(n_chains=2, n_adapt=100, n_burnin=100, n_keep=100, seed=1)
    decays = Analyzer(model_context=model.model_context, inference_data=model.inference_data).adstock_decay()
    print("columns of the table:", list(decays.columns), len(decays), "rows")
    return ae.carryover.meridian_curves(decays, arms=names)


def main() -> None:
    warnings.simplefilter("ignore")
    start = time.time()
    curves = {"pymc": pymc, "meridian": meridian}[sys.argv[1]]()
    for i, name in enumerate(curves.names):
        true = DECAY[name] ** np.arange(curves.weights.shape[1])
        print(name, curves.weights[i].round(3).tolist(), "true", (true / true.sum()).round(3).tolist())
    choice = ae.choose_delay(n_arms=2, curves=curves.weights, horizon=104, direction="maximize")
    print("max_delay for two years:", choice.max_delay, "half-lives:", curves.half_lives())
    print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
    main()
