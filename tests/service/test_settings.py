"""Settings of experiments: what is accepted, what is refused and with which words, and their JSON."""

import json

import pytest
from tests.service.playing import made

from aftereffect.service.errors import CODES, Corrupt, Refused
from aftereffect.service.settings import ExperimentSettings, checked_settings, corrected

LEAST = {"name": "Mail", "arms": ["a", "b"], "high": 1.0, "max_delay": 3}


def test_the_least_that_must_be_given_has_sound_defaults() -> None:
    settings = checked_settings(LEAST)
    assert (settings.low, settings.high, settings.direction, settings.horizon) == (0.0, 1.0, "maximize", None)
    assert (settings.units, settings.player, settings.seed, settings.draft) == (("1",), "advised", None, False)
    assert (settings.start_date, settings.round_length, settings.carry_over) == (None, 1.0, None)


@pytest.mark.parametrize("given", [{}, {"high": None}])
def test_the_largest_effect_has_no_default(given: dict[str, None]) -> None:
    with pytest.raises(Refused, match="high must be given for player 'advised', but is missing"):
        checked_settings({key: value for key, value in LEAST.items() if key != "high"} | given)


def test_corrected_settings_keep_the_others_and_the_seed() -> None:
    known = made(**LEAST | {"max_delay": None, "carry_over": {"window": 3}, "low": -1}).view()
    found = corrected(known, {"high": 50})
    assert (found.high, found.low, found.max_delay, found.seed, found.name) == (50.0, -1.0, 3, 7, "Mail (corrected)")
    assert corrected(known, {"max_delay": 5}).carry_over is None
    assert corrected(known, {"round_length": "12 hours"}).max_delay == 6
    assert corrected(known.model_copy(update={"name": found.name}), {"out_of_range": "clip"}).name == "Mail (corrected)"
    with pytest.raises(Refused, match="settings must have no other keys"):
        corrected(known, {"hihg": 50})
    with pytest.raises(Refused, match="low must be less than high"):
        corrected(known, {"high": -2})


def test_null_stands_for_the_default() -> None:
    nulls = dict.fromkeys(("low", "out_of_range", "direction", "horizon", "units", "player", "seed", "draft"))
    assert checked_settings({**LEAST, **nulls, "carry_over": None}) == checked_settings(LEAST)


@pytest.mark.parametrize(("changes", "words"), [
    ({"name": ""}, "name must have 1 or more characters, but got 0"),
    ({"name": None}, "name must be given, but it is missing"),
    ({"name": "a\x00b"}, "name must not be blank or contain control characters or lone surrogates, but got 'a\\x00b'"),
    ({"name": "a\ud800"}, "name must be text without lone surrogates, but got 'a\\ud800'"),
    ({"name": " \t"}, "name must not be blank"),
    ({"arms": ["a"]}, "arms must have 2 or more items, but got 1"),
    ({"arms": ["a", "b", "a"]}, "arms must be distinct, but got 'a' twice"),
    ({"arms": "ab"}, "arms must be a list, but got 'ab'"),
    ({"arms": ["a", 1]}, "arms[1] must be text, but got 1"),
    ({"high": 10**400}, "high must be a finite number, but got 1000"),
    ({"low": 2}, "low must be less than high, but got low=2.0 and high=1.0"),
    ({"max_delay": 10_001}, "max_delay must be at most 10000, but got 10001"),
    ({"max_delay": None}, "high must be omitted for player 'model', which is that of settings without max_delay"),
    (
        {"carry_over": {"window": 7}},
        "max_delay must be omitted if carry_over (a window or half-life) is given, but got 3",
    ),
    (
        {"max_delay": None, "carry_over": 7},
        "carry_over must be a mapping with keys among 'window', 'half_life', but got 7",
    ),
    ({"max_delay": None, "carry_over": {}}, "carry_over must have exactly one of window and half_life"),
    ({"max_delay": None, "carry_over": {"window": "long"}}, "window must be a number of days or words like"),
    (
        {"max_delay": None, "carry_over": {"window": 7, "round_length": 1}},
        "carry_over must have no other keys than 'window', 'half_life', but got 'round_length'",
    ),
    ({"high": 1e101}, "high - low must be at most 1e+100, but got 1e+101"),
    ({"horizon": 2**63}, "horizon must be at most 9223372036854775807"),
    ({"units": 1001}, "units must be at most 1000, but got 1001"),
    ({"units": 1000, "max_delay": 100}, "units times (max_delay + 1) must be at most 100000"),
    ({"player": "paper"}, "horizon must be given for player 'paper'"),
    ({"seed": 2**64}, "seed must be at most 18446744073709551615"),
    ({"start_date": "2026-02-30"}, "start_date must be a date like 2026-01-31, but got '2026-02-30'"),
    ({"round_length": 0}, "round_length must be at least 1e-09 and at most 36525 days, but got 0"),
    # There would be more decisions in a quarter than can be counted.
    ({"round_length": 5e-324}, "round_length must be at least 1e-09 and at most 36525 days, but got 5e-324"),
    ({"colour": "red"}, "settings must have no other keys than 'arms', 'low'"),
])
def test_what_breaks_a_rule_is_refused_with_argument_rule_and_value(changes: dict, words: str) -> None:
    with pytest.raises(Refused) as caught:
        checked_settings({**LEAST, **changes})
    assert words in caught.value.detail
    assert (caught.value.code, caught.value.status) == ("invalid", 422)


def test_settings_must_be_a_mapping() -> None:
    with pytest.raises(Refused, match="settings must be a mapping, but got 7"):
        checked_settings(7)


def test_units_by_number_and_by_name() -> None:
    assert checked_settings({**LEAST, "units": 3}).units == ("1", "2", "3")
    assert checked_settings({**LEAST, "units": ["north", 7]}).units == ("north", "7")


def test_carry_over_in_words_gives_rounds_and_keeps_the_words() -> None:
    words = {"window": "2 weeks"}
    settings = checked_settings(
        {"name": "x", "arms": ["a", "b"], "high": 1.0, "carry_over": words, "round_length": "1 week"}
    )
    assert (settings.max_delay, settings.round_length, settings.carry_over.given()) == (2, 7.0, words)


@pytest.mark.parametrize("given", [
    LEAST,
    {**LEAST, "units": 4, "seed": 2**64 - 1, "horizon": 10, "player": "paper", "draft": True},
    {"name": "é 👩‍👩‍👧", "arms": ["a", "b"], "high": 2, "carry_over": {"half_life": 1.5}},
    {**LEAST, "low": -0.1, "high": 1e-300, "round_length": 1 / 3},
])
def test_json_gives_the_same_settings_back(given: dict) -> None:
    settings = checked_settings(given)
    assert ExperimentSettings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_stored_settings_keep_their_rounds() -> None:
    stored = checked_settings({**LEAST, "max_delay": None, "carry_over": {"half_life": 2}}).to_json()
    assert stored["max_delay"] == 6
    # Stored when a half-life was counted until 5% of an effect was left.
    found = ExperimentSettings.from_json(stored | {"max_delay": 9})
    assert (found.max_delay, found.carry_over.given()) == (9, {"half_life": 2})
    assert found.to_json() == stored | {"max_delay": 9}


@pytest.mark.parametrize("broken", [None, {}, {"name": "x"}, {**checked_settings(LEAST).to_json(), "low": "0"}])
def test_json_that_was_never_written_is_corrupt(broken: object) -> None:
    with pytest.raises(Corrupt, match="stored settings must be valid"):
        ExperimentSettings.from_json(broken)


def test_a_seed_is_given_once() -> None:
    settings = checked_settings(LEAST).seeded(5)
    assert settings.seed == 5
    assert settings.seeded(6) is settings


def test_a_refusal_is_a_problem_document() -> None:
    problem = Refused("conflict", "no", round=3).problem()
    assert problem == {
        "type": "urn:aftereffect:conflict",
        "title": CODES["conflict"][1],
        "status": 409,
        "detail": "no",
        "code": "conflict",
        "round": 3,
    }
    assert Corrupt("torn").problem()["status"] == 500
