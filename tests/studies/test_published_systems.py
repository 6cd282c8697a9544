"""Instances of publications: the advertising system, and the delayed rewards of ODAAF's Figure 3 with its ratios."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import published_ratios
import pytest

from aftereffect.core.errors import InvalidArgument
from aftereffect.losses import spreads
from aftereffect.losses.linear_system import ADVERTISING, system_rewards
from aftereffect.studies import Study
from aftereffect.studies.cells import build_losses, cell_seed, instance_table, known
from aftereffect.studies.report.page import Page
from aftereffect.studies.report.sections import write_report


def cell(n_arms: int, max_delay: int, horizon: int = 60, **instance: Any) -> dict[str, Any]:
    sizes = {"n_arms": n_arms, "max_delay": max_delay, "horizon": horizon, "seed": 3}
    return {"instance": instance_table(instance), **sizes}


def test_the_advertising_instance_is_the_system() -> None:
    given = cell(6, 9, name="advertising")
    expected = system_rewards(ADVERTISING, max_delay=9, horizon=60, seed=cell_seed(given, "losses 2"))
    assert build_losses(given, 2).components().tolist() == expected.components().tolist()
    silent = build_losses(cell(6, 9, name="advertising", noise=0.0)).components()
    assert (silent == silent[0]).all()
    with pytest.raises(InvalidArgument, match="n_arms must be 6 for 'advertising', but got 4"):
        build_losses(cell(4, 9, name="advertising"))


def test_the_mean_delay_of_advertising_is_that_of_absolute_effects() -> None:
    state, sizes = ADVERTISING.B @ ADVERTISING.arms.T, [np.abs(ADVERTISING.D.sum(axis=0) @ ADVERTISING.arms.T).sum()]
    for _ in range(5):
        sizes.append(np.abs(ADVERTISING.C.sum(axis=0) @ state).sum())
        state = ADVERTISING.A @ state
    mean, variance, coefficients = known(cell(6, 5, name="advertising"))
    assert mean == pytest.approx(sum(s * size for s, size in enumerate(sizes)) / sum(sizes))
    assert variance == pytest.approx(sum((s - mean) ** 2 * size for s, size in enumerate(sizes)) / sum(sizes))
    assert coefficients is None


def test_anonymous_rewards_with_another_best_arm_and_late_zeros() -> None:
    given = cell(2, 5, name="anonymous", gap=0.1)
    usual = build_losses(given)
    expected = spreads.anonymous_iid(
        60, means=[0.6, 0.5], delay_law="uniform", max_delay=5, seed=cell_seed(given, "losses 0")
    )
    assert usual.components().tolist() == expected.components().tolist()
    late = build_losses(cell(2, 5, name="anonymous", gap=0.1, best_arm=1, late_zeros=True))
    assert late.means.tolist() == [0.5, 0.6]
    parts = late.components()
    # One component of every play arrives, those of zeros too, which add nothing.
    assert (np.count_nonzero(parts, axis=1) == 1).all()
    assert set(np.unique(parts.sum(axis=1))) == {1e-100, 1.0}
    with pytest.raises(InvalidArgument, match=r"instance\.late_zeros must be true or false, but got 1"):
        instance_table({"name": "anonymous", "late_zeros": 1})
    with pytest.raises(InvalidArgument, match=r"instance\.best_arm must be at most 1, but got 2"):
        build_losses(cell(2, 5, name="anonymous", best_arm=2))


def test_ratios_stand_beside_the_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(
        "small",
        grid={"n_arms": 2, "max_delay": 50, "horizon": 3000},
        instance=[{"name": "anonymous", "gap": 0.1, "best_arm": 1, "delay_law": ["uniform", 0, 50]}],
        player=[{"name": "QPMD"}, {"name": "ODAAF", "mean_delay_offset": 1}, {"name": "ODAAFB"}],
        runs=2,
        checkpoints=1,
        report={"figures": ["published_ratios:figure3"]},
    )
    results = study.run(tmp_path, progress=False)
    regret = {row["player"]: row["pseudo_regret"] for row in results.rows.iter_rows(named=True)}
    ratios = [regret[name] / regret["QPMD"] for name in ("ODAAF", "ODAAFB")]

    def page() -> str:
        return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", write_report(study, results, tmp_path).read_text("utf-8")))

    text = page()
    assert re.search(rf"Unif\(0,50\) .* ODAAF {ratios[0]:.1f} ± .* 16\.6 ODAAF-B {ratios[1]:.1f} ± .* 8\.5", text)
    assert "of the published ones" not in text
    monkeypatch.setattr(published_ratios, "ROUNDS", 3000)
    apart = [abs(ratios[0] / 16.6 - 1), abs(ratios[1] / 8.5 - 1)]
    near = sum(each <= 0.05 for each in apart)
    found = f"{near} of 2 ratios to QPM-D are within 5% of the published ones; the largest difference is"
    assert f"{found} {max(apart):.0%}." in page()
    other = results.rows.with_columns(instance_params=pl.lit(json.dumps({"delay_law": ["fixed", 3]})))
    with pytest.raises(InvalidArgument, match="it needs QPM-D, ODAAF and a variant with a published law of delays"):
        published_ratios.figure3(Page("none", kind="none", lead="", footer="", figures=tmp_path), other)
