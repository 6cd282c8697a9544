"""CITATION.cff cites the released version of the package, with the date that the changelog gives it."""

from pathlib import Path

import yaml

import aftereffect as ae

ROOT = Path(__file__).parents[1]


def test_the_citation_is_of_the_released_version_on_its_date() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == ae.__version__
    assert [each["value"] for each in cited["identifiers"]] == [f"v{ae.__version__}"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{cited['version']}] - {cited['date-released'].isoformat()}" in changelog
