"""The guarantee: the worst case and the certificate against the plan, the learner's own accounts, and hand work."""

import json
import re
from typing import Any

import pytest
from tests.service.playing import AT, learner, made, play

from aftereffect.core.text import amount
from aftereffect.service.cli.output import status
from aftereffect.service.experiment.commands import Ask, Away, Pause, Resume, Tell
from aftereffect.service.experiment.experiment import Experiment
from aftereffect.service.experiment.learned import unknown
from aftereffect.service.messages import Guarantee

pytestmark = pytest.mark.usefixtures("unadvised")


def given(experiment: Experiment) -> Guarantee:
    found = experiment.view().guarantee
    assert found.words == " ".join(found.paragraphs)
    return found


def test_plan_and_guarantee_name_the_same_round() -> None:
    for changes in ({}, {"direction": "minimize"}, {"units": 3}, {"player": "paper", "horizon": 10**5}):
        view = made(**changes).view()
        since = view.plan.informative_from
        assert view.guarantee.informative_from == since
        assert f"says nothing before round {since:,} " in " ".join(view.plan.sentences)
        panel = learner(made(**changes))
        assert panel.regret_bound(since) < panel.n_units * since
        assert panel.regret_bound(since - 1) == panel.n_units * (since - 1)


def test_before_anything_is_played_there_is_no_certificate() -> None:
    found = given(made())
    assert (found.certificate, found.informative) == (None, False)
    since = f"round {found.informative_from:,}"
    assert re.match(rf"The guarantee says nothing before {since} \([0-9.]+ \w+\)\. Bounds are", found.words)


def test_after_one_round_it_is_said_in_the_singular() -> None:
    experiment = made()
    play(experiment)
    words = given(experiment).words
    assert "The certificate after 1 round and 0 updates is " in words
    assert "effects last at most 1 more round and" in words
    assert re.search(r"\b1 rounds", words) is None


def test_the_certificate_is_the_panels_and_comes_to_say_something_before_the_worst_case() -> None:
    experiment = made(max_delay=2, high=1e6)
    worth = {"red": 2e5, "green": 9e5, "blue": 2e5}
    arm, told = "red", 0
    while not given(experiment).certificate or not given(experiment).certificate.informative:
        arm = play(experiment, worth[arm])["arm"]
        told += 1
        assert told < 1000
    found = given(experiment)
    shown, own = found.certificate, learner(experiment).certificate()
    assert (shown.value, shown.terms, shown.rounds) == (own.value, own.terms, told)
    assert shown.any_time == own.any_time > own.value
    stopped = "If you stop the experiment because of what it shows,"
    assert f"{stopped} the figure is {amount(own.any_time)} instead." in found.words
    assert shown.value == pytest.approx(sum(shown.terms.values()))
    assert shown.value < shown.trivial == told * 1e6
    assert told < found.informative_from == own.worst_case_from
    assert "It says nothing yet" not in found.words
    assert re.search(r"\de[+-]\d", found.words) is None


@pytest.mark.parametrize(("direction", "price"), [("maximize", 1.0), ("minimize", 2.0)])
def test_effects_that_arrive_later_are_part_of_the_guarantee(direction: str, price: float) -> None:
    half_life = {"max_delay": None, "carry_over": {"half_life": 2}, "direction": direction, "high": 10.0}
    experiment = made(**half_life, horizon=50_000)
    d = experiment.view().max_delay
    same = made(**half_life | {"carry_over": None, "max_delay": d}, horizon=50_000)
    for each in (experiment, same):
        play(each, 5.0)
    late = price * 2.0 ** (-(d + 1) / 2)
    found, plain = given(experiment), given(same)
    assert found.value == pytest.approx(plain.value + late * 50_000 * 10.0)
    assert found.certificate.terms["late effects"] == pytest.approx(late * 10.0)
    for name in ("value", "worst_case"):
        assert dict(found.certificate)[name] == pytest.approx(dict(plain.certificate)[name] + late * 10.0)
    assert (found.certificate.any_time, plain.certificate.any_time is None) == (None, False)
    assert "If you stop the experiment because of what it shows, it does not hold." in found.words
    assert f"with at most {late / price:.1%} after {d} more rounds, and stay within" in found.words
    # Late effects may bring totals out of range; clipped, they are covered.
    for policy, covered in (("clip", True), ("void", False)):
        experiment = made(**half_life, out_of_range=policy)
        play(experiment, 10.0 * (d + 2))
        assert ("There is no guarantee" not in given(experiment).sentence) is covered
        assert given(experiment).void is not covered


@pytest.mark.parametrize(("spoil", "reason"), [
    (lambda experiment: play(experiment, 9.0), "totals were out of range (1)"),
    (lambda experiment: experiment.do(Away("red"), AT), "an arm has been away."),
])
def test_totals_out_of_range_and_arms_away_make_both_void(spoil: Any, reason: str) -> None:
    experiment = made(max_delay=0)
    for _ in range(300):
        play(experiment)
    assert (given(experiment).informative, given(experiment).certificate.informative) == (True, True)
    spoil(experiment)
    found, shown = given(experiment), status(experiment.view(), unknown("x", "No model."))
    assert (found.void, found.informative, found.certificate.informative) == (True, False, False)
    assert f"Guarantee: {found.sentence}" in shown
    assert found.sentence.startswith(f"There is no guarantee, because {reason}")
    assert [words.startswith("Bounds are on an average") for words in found.paragraphs] == [True]


def test_reports_that_are_missing_void_or_held_back_have_their_price() -> None:
    experiment = made(max_delay=1)
    assert [play(experiment, total)["status"] for total in (0.5, None, 9.0)] == ["reported", "missing", "void"]
    experiment.do(Pause(), AT)
    experiment.do(Resume(), AT)
    play(experiment)
    # A report that is missing costs nothing until a stretch is void because of it.
    assert learner(experiment).counts.void_windows == given(experiment).certificate.terms["missing"] == 0
    while not learner(experiment).counts.void_windows:
        play(experiment, None)
    found = given(experiment)
    # β = 0.4/2: a void stretch costs d + 2/β − 1 = 10 rounds on average, divided by 1 − β.
    assert found.certificate.terms["missing"] == pytest.approx(12.5)
    assert found.sentence.startswith("There is no guarantee, because totals were out of range (1)")


def test_for_several_units_it_is_the_sum_against_one_arm() -> None:
    found = given(made(units=3, horizon=50))
    assert "The guarantee says nothing over 50 rounds: it takes " in found.words
    long = given(made(units=3, horizon=10**6))
    assert "compared with the best single arm for all 3 units, added up over them, on average." in long.sentence
    assert (found.value, found.trivial, found.per_round) == (150.0, 150.0, 1.0)


def test_the_papers_player_keeps_no_certificate_and_says_so_where_it_knows_nothing() -> None:
    short = made(player="paper", horizon=100)
    play(short)
    found = given(short)
    assert (found.certificate, found.informative_from) == (None, None)
    assert "The guarantee says nothing with these settings: it is never below the largest possible loss." in found.words
    negative = given(made(player="paper", horizon=100, low=-1))
    assert negative.sentence.startswith("There is no guarantee with these settings: low must be at least 0")


def test_the_widest_range_is_still_json() -> None:
    experiment = made(high=1e100, units=1000, max_delay=60)
    for _ in range(3):
        asked = experiment.do(Ask(), AT).answer
        for unit in asked["arms"]:
            experiment.do(Tell(asked["round"], 1e97, unit), AT)
    json.dumps(given(experiment).data, allow_nan=False)


def test_the_guarantee_in_a_sentence() -> None:
    experiment = made(max_delay=1, start_date="2026-01-01")
    since = experiment.view().plan.informative_from
    for rounds in (0, 30):
        for _ in range(rounds):
            play(experiment)
        found = experiment.view().guarantee
        when = rf"round {since:,} \([0-9.]+ \w+\)"
        assert re.fullmatch(rf"The guarantee says nothing before {when}\.", found.sentence)
    play(experiment, None)
    assert "It says nothing yet: it is not below 31, the largest possible loss." in experiment.view().guarantee.words


def test_the_sentence_over_a_horizon() -> None:
    experiment = made(max_delay=0, horizon=10**6)
    long = experiment.view().guarantee
    most = f"you lose at most {amount(long.value)} compared with the best arm"
    sentence = f"Whatever the effects, over 1,000,000 rounds {most}"
    assert long.sentence == f"{sentence}, on average."
    play(experiment, None)
    missing = "reports missing, void or withheld (1 so far) add to that."
    assert experiment.view().guarantee.sentence == f"{sentence}, on average; {missing}"
    unknown = made(low=-1.0, player="paper", horizon=99).view().guarantee.sentence
    assert unknown.startswith("There is no guarantee with these settings")
