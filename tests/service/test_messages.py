"""What requests are accepted or refused, and in which words; what an experiment answers fits its model."""

from typing import Any

import pytest
from tests.refusals import refuses
from tests.service.playing import AT, made, play

from aftereffect.service import messages
from aftereffect.service.errors import Refused, checked
from aftereffect.service.experiment.commands import Amend, Ask, Away, Back, Finish, Pause, Resume, Start, Tell
from aftereffect.service.experiment.plan import planned

NO_NUMBERS = [float("nan"), float("inf"), True, "0.5", 10**400, [], {}]


@pytest.mark.parametrize("total", NO_NUMBERS)
def test_what_is_no_total_is_refused(total: Any) -> None:
    for kind in (messages.Tell, messages.Amend):
        with pytest.raises(Refused, match="total must be a finite number, but got"):
            checked(kind, {"total": total})
    with pytest.raises(Refused, match="was must be a finite number, but got"):
        checked(messages.Amend, {"total": 1.0, "was": total})


@pytest.mark.parametrize(("changes", "words"), [
    ({"round": 0}, "round must be at least 1, but got 0"),
    ({"round": 1.0}, "round must be an int, but got 1.0"),
    ({"unit": ""}, "unit must have 1 or more characters, but got 0"),
    ({"unit": "u" * 201}, "unit must have at most 200 characters, but got 201"),
    ({"unit": 1.5}, "unit must be text, but got 1.5"),
    ({"experiment": None}, "experiment must be text, but got None"),
    ({"id": "x"}, "an item must have no other keys than 'total', 'unit', 'experiment', 'round', but got 'id'"),
])
def test_a_report_that_breaks_a_rule_is_refused_with_argument_rule_and_value(changes: Any, words: str) -> None:
    given = {"experiment": "x", "round": 1, "total": 0.5, **changes}
    with pytest.raises(Refused) as caught:
        checked(messages.TellItem, given, "an item")
    assert (caught.value.detail, caught.value.status) == (words, 422)


test_what_is_missing_is_named = refuses([
    (lambda: checked(messages.Tell, {}), r"^total must be given, but it is missing$"),
    (lambda: checked(messages.Tell, 7), r"^the body must be a mapping, but got 7$"),
], error=Refused)


def test_a_number_stands_for_a_unit_named_so_and_a_total_is_a_float() -> None:
    told = checked(messages.Tell, {"total": 2, "unit": 7})
    assert (told.unit, told.total, type(told.total)) == ("7", 2.0, float)
    assert checked(messages.Ask, {"unit": None}).unit is None


def test_an_amendment_tells_no_precondition_from_a_missing_report() -> None:
    assert "was" not in checked(messages.Amend, {"total": 1.0}).model_fields_set
    assert "was" in checked(messages.Amend, {"total": 1.0, "was": None}).model_fields_set


def test_scopes_come_in_order_and_once() -> None:
    assert checked(messages.NewToken, {"name": "a", "scopes": ["play", "read", "play"]}).scopes == ["read", "play"]


def test_a_reply_keeps_what_a_newer_server_adds_and_misses_what_is_not_there() -> None:
    data = {"experiment": "x", "ok": True, "rounds": 3, "finding": None, "mood": "sunny"}
    assert messages.Verdict.read(data).data == data
    with pytest.raises(Refused, match="must be a Verdict, but ok must be given, but it is missing"):
        messages.Verdict.read({"experiment": "x"})


def fits(kind: type[messages.Reply], data: dict[str, Any]) -> None:
    """See that data is of this kind, and that all of its fields are declared."""
    assert kind.model_validate(data, strict=True).model_extra == {}


@pytest.mark.parametrize("changes", [
    {},
    {"units": 3, "max_delay": 0},
    {"player": "paper", "horizon": 200},
    {"max_delay": None, "carry_over": {"half_life": "1 day"}, "start_date": "2026-01-31", "low": -1.0},
])
def test_whatever_an_experiment_answers_fits_its_model(changes: dict[str, Any]) -> None:
    experiment = made(draft=True, **changes)
    units = experiment.settings.units
    commands = [Start(), Ask(units[0]), Ask(), *(Tell(1, 0.5, unit) for unit in units), Tell(1, 0.5, units[0])]
    commands += [Pause(), Resume(), Away("red"), Back("red"), Ask(), Tell(2, None, units[0])]
    kinds = {Ask: messages.Turn, Tell: messages.Report, Amend: messages.Report}
    for command in (*commands, Finish()):
        done = experiment.do(command, AT)
        if type(command) in kinds:
            fits(kinds[type(command)], {"experiment": "x", **done.answer})
        for row in done.rows:
            fits(messages.StoredRow, row)
            assert tuple(row) == tuple(messages.StoredRow.model_fields)
        fits(messages.Overview, experiment.view("x", AT).data)
        assert experiment.view().name == experiment.settings.name


def test_an_amended_report_and_a_plan_fit_their_models() -> None:
    experiment = made()
    play(experiment)
    fits(messages.Report, {"experiment": "x", **experiment.do(Amend(1, 0.75), AT).answer})
    fits(messages.Plan, planned({"arms": 2, "max_delay": 3}).data)
