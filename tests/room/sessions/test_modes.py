"""The modes as every interface describes them, made from their table."""

from typing import cast

import pytest

from csp.protocol import catalogue
from csp.protocol.enums import AgentState, DeliveryState, HeldReason, Mode
from csp.protocol.session_parts import EndReason, PhaseKind
from csp.room.sessions import modes
from csp.room.sessions.modes import MODES, ModeRow, NextSpeaker, PhaseRow, Times


def test_an_entry_says_what_the_row_of_its_mode_says() -> None:
    entries = {entry.id: entry for entry in modes.mode_entries()}

    assert set(entries) == {str(mode) for mode in Mode} - {"freeform"}
    for name, entry in entries.items():
        row = MODES[Mode(name)]
        assert (entry.unit, entry.rounds, entry.fewest, entry.most) == (
            row.unit,
            row.rounds or 0,
            row.fewest,
            row.most,
        )
    assert [str(option) for option in entries["autopilot"].options] == ["first", "respect_final", "limits"]
    assert [str(option) for option in entries["debate"].options] == ["synth", "ballot"]
    assert [str(option) for option in entries["orchestrator"].options] == ["limits", "lead"]
    assert (entries["round_robin"].name, entries["collaborate"].chip) == ("Round robin", "Collab")


def test_a_mode_without_texts_is_listed_last_under_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    phase = PhaseRow(
        kind=PhaseKind.RELAY, name="turns", prompt="x", speaker=NextSpeaker.NEXT, times=Times.ONCE
    )
    row = ModeRow(phases=(phase,), rounds=4, unit="steps", fewest=3)
    monkeypatch.setitem(cast("dict[str, ModeRow]", MODES), "fish_bowl", row)

    entry = modes.mode_entries()[-1]

    assert (entry.id, entry.name, entry.chip, entry.about) == ("fish_bowl", "Fish bowl", "Fish bowl", "")
    assert (entry.unit, entry.rounds, entry.fewest, entry.options) == (
        "steps",
        4,
        3,
        (catalogue.ModeOption.FIRST,),
    )
    assert modes.mode_names()[-1] == "fish_bowl"


def test_every_state_and_reason_has_its_entry() -> None:
    built = modes.build_catalogue()

    assert [entry.id for entry in built.delivery_states] == list(DeliveryState)
    assert [entry.id for entry in built.held_reasons] == list(HeldReason)
    assert [entry.id for entry in built.end_reasons] == list(EndReason)
    assert [entry.id for entry in built.agent_states] == list(AgentState)
    assert set(catalogue.MODE_TEXTS) == set(Mode)


def test_the_commands_of_the_page_are_those_it_can_do() -> None:
    named = {command.name: command.form for command in modes.build_catalogue().commands}

    assert named["approve"] == "/approve [AGENT] [N]"
    assert named["next"] == "/next"
    assert named.keys() >= {"allow", "rules", "unallow", "decide", "review", "cancel"}
    assert not named.keys() & {"needs", "answer", "remove", "layout", "quit"}
    assert {command.name for command in modes.build_catalogue().pane_commands} & {"needs", "remove", "quit"}


def test_a_reason_that_is_not_in_the_catalogue_is_not_explained() -> None:
    found = catalogue.why_held("paused")

    assert found is not None
    assert (found.text, found.remedy) == ("paused", "/resume {agent}")
    assert catalogue.why_held("the dog") is None
