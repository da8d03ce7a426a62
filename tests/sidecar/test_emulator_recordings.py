"""Both emulators over recordings of real CLIs; the expected rows are tmux's, the lines the model's."""

import random
import re
from functools import cache
from typing import Any

import pytest

from csp.sidecar.emulator import KINDS, Emulator, make_emulator
from tests.sidecar.recordings import ERASED, NAMES, Recording, recording, trimmed

SMALL = [name for name in NAMES if len(recording(name).data) < 40_000]
#: One of each CLI, with a dialog, wide characters, a synchronised screen.
TYPICAL = {"claude-permission", "codex-short", "gemini-emoji"}


def others_only_in_full(names: list[str]) -> list[Any]:
    """Return names as parameters; all but the typical ones run with --full alone."""
    return [pytest.param(name, marks=() if name in TYPICAL else pytest.mark.full) for name in names]


@cache
def fed(name: str, kind: str) -> Emulator:
    """Return an emulator that has had all of a recording; nobody may feed it more."""
    emulator = emulator_for(recording(name), kind)
    emulator.feed(recording(name).data)
    return emulator


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def emulator_for(taken: Recording, kind: str) -> Emulator:
    return make_emulator(taken.rows, taken.cols, prefer=kind)


def shown(emulator: Emulator) -> list[str]:
    return trimmed([row.text for row in emulator.screen().rows])


def all_of(emulator: Emulator) -> tuple[Any, ...]:
    return emulator.screen(), emulator.history(), emulator.drain_osc()


#: The one that takes long: pure Python over the longest recording.
LONGEST = ("pyte", "gemini-long")


def each(names: list[str]) -> list[Any]:
    """Return each name with each kind of emulator."""
    pairs = [(kind, name) for kind in KINDS for name in names]
    return [pytest.param(*pair, marks=pytest.mark.full if pair == LONGEST else ()) for pair in pairs]


@pytest.mark.parametrize(("kind", "name"), each(NAMES))
def test_the_screen_is_the_one_that_tmux_showed(name: str, kind: str) -> None:
    taken, emulator = recording(name), fed(name, kind)
    screen = emulator.screen()

    assert shown(emulator) == taken.screen
    assert trimmed(emulator.history()) == taken.history
    assert (screen.cursor_col, screen.cursor_row) == taken.cursor
    assert screen.alternate is taken.is_alternate
    assert screen.title.rstrip() == taken.title
    assert screen.bracketed_paste


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("permission")])
def test_the_dialog_is_the_one_that_tmux_showed(name: str, kind: str) -> None:
    taken = recording(name)
    emulator = emulator_for(taken, kind)
    emulator.feed(taken.data[: taken.permission_bytes])

    assert 0 < taken.permission_bytes < len(taken.data)
    assert shown(emulator) == taken.permission


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("emoji")])
def test_characters_of_several_parts_are_the_models(name: str, kind: str) -> None:
    taken, emulator = recording(name), fed(name, kind)
    rows = [re.sub(r"^[●✦•]? *", "", row) for row in shown(emulator)]

    assert "👨‍👩‍👧" in taken.model_texts[0]
    assert [line for line in taken.model_texts[0].split("\n") if line not in rows] == []


@pytest.mark.parametrize(("kind", "name"), each(["claude-long", "gemini-long"]))
def test_every_line_of_a_long_answer_is_in_the_history_once(name: str, kind: str) -> None:
    taken, emulator = recording(name), fed(name, kind)
    said = taken.model_texts[0].split("\n")
    history = [re.sub(r"^\s*[●✦]?\s*", "", line) for line in emulator.history()]

    kept = [line for number, line in enumerate(said, 1) if number not in ERASED.get(name, ())]

    assert len(said) == 300
    assert [line for line in history if line in set(said)] == kept


@pytest.mark.parametrize("name", others_only_in_full(NAMES))
def test_the_native_one_gives_the_same_byte_by_byte(name: str) -> None:
    taken = recording(name)
    data = taken.data[-120_000:]
    whole, pieces = emulator_for(taken, "ghostty"), emulator_for(taken, "ghostty")
    whole.feed(data)
    for place in range(len(data)):
        pieces.feed(data[place : place + 1])

    assert all_of(pieces) == all_of(whole)


@pytest.mark.parametrize("name", others_only_in_full(SMALL))
def test_the_fallback_gives_the_same_byte_by_byte(name: str) -> None:
    taken = recording(name)
    whole, pieces = emulator_for(taken, "pyte"), emulator_for(taken, "pyte")
    whole.feed(taken.data)
    for place in range(len(taken.data)):
        pieces.feed(taken.data[place : place + 1])

    assert all_of(pieces) == all_of(whole)


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.full)])
def test_the_native_one_gives_the_same_when_split_once_anywhere(step: int) -> None:
    taken = recording("claude-idle")
    whole = emulator_for(taken, "ghostty")
    whole.feed(taken.data)
    expected = all_of(whole)

    differing = []
    for place in range(1, len(taken.data), step):
        emulator = emulator_for(taken, "ghostty")
        emulator.feed(taken.data[:place])
        emulator.feed(taken.data[place:])
        if all_of(emulator) != expected:
            differing.append(place)

    assert differing == []


@pytest.mark.parametrize("name", others_only_in_full(SMALL))
def test_any_pieces_give_the_same(name: str, kind: str) -> None:
    taken = recording(name)
    whole = emulator_for(taken, kind)
    whole.feed(taken.data)
    expected = all_of(whole)
    chance = random.Random(name)

    for size in (2, 7, 100):
        emulator = emulator_for(taken, kind)
        place = 0
        while place < len(taken.data):
            end = place + chance.randint(1, 2 * size)
            emulator.feed(taken.data[place:end])
            place = end

        assert all_of(emulator) == expected
