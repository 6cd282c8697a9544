"""The page on data and worlds of others says what its rows say, and its trials are estimated as they are now."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("others_study", ROOT / "benchmarks" / "others.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_page_is_made_from_the_rows(study):
    assert study.page() == (study.STUDIES / "others.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["brandt", "patterson", "lucas"])
def test_a_trial_is_estimated_as_published(study, name):
    published = study.json.loads(study.ROWS.read_text(encoding="utf-8"))["trials"][name]
    found = study.trial(name)
    assert found.pop("contain_0") == published.pop("contain_0")
    for key, value in found.items():
        assert published[key] == pytest.approx(value, rel=1e-6)
