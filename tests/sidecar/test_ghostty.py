"""The bounds within which the native emulator is used; what it shows is in test_emulator.py."""

import gc
from collections import Counter
from typing import Any
from unittest import mock

import pytest

from csp.errors import Broken
from csp.sidecar.emulator import ghostty_emulator as gh
from csp.sidecar.emulator import make_emulator
from csp.sidecar.emulator.ghostty_emulator import GhosttyEmulator
from csp.sidecar.emulator.pyte_emulator import PyteEmulator


class Noting(GhosttyEmulator):
    """Notes the options that are set."""

    def __init__(self, rows: int, cols: int, history_lines: int) -> None:
        self.options: dict[int, Any] = {}
        super().__init__(rows, cols, history_lines)

    def _set(self, option: int, value: Any) -> None:
        if option != gh.OPT_MODE_DEFAULT:
            self.options[option] = value.value
        super()._set(option, value)


@pytest.mark.parametrize(
    ("asked", "given"),
    [((1, 1), (5, 20)), ((5, 20), (5, 20)), ((30, 90), (30, 90)), ((4000, 5000), (1000, 1000))],
)
def test_a_size_is_brought_within_bounds(asked: tuple[int, int], given: tuple[int, int]) -> None:
    made, resized = GhosttyEmulator(*asked, 10), GhosttyEmulator(24, 80, 10)
    resized.resize(*asked)

    for emulator in (made, resized):
        assert (emulator._rows, emulator._cols) == given
        assert len(emulator.screen().rows) == given[0]
        assert emulator.screen().cols == asked[1]


def test_neither_pictures_nor_history_fill_the_memory() -> None:
    emulator = Noting(24, 80, 100)
    assert emulator.options == {
        gh.OPT_KITTY_IMAGE_STORAGE_LIMIT: 0,
        gh.OPT_APC_MAX_BYTES: 4096,
        gh.OPT_SCROLLBACK_MAX_BYTES: 124 * 80 * 32,
        gh.OPT_SCROLLBACK_MAX_LINES: 100,
    }
    emulator.options.clear()
    emulator.resize(30, 100)

    assert emulator.options == {
        gh.OPT_SCROLLBACK_MAX_BYTES: 130 * 100 * 32,
        gh.OPT_SCROLLBACK_MAX_LINES: 100,
    }


class Library:
    """The native library, with a count of what is made and what is freed."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._library = gh.load()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any) -> Any:
            self.calls[name] += 1
            return getattr(self._library, name)(*args)

        return call


def test_what_is_made_by_the_library_is_freed() -> None:
    library = Library()
    with mock.patch.object(gh, "load", return_value=library):
        emulator = GhosttyEmulator(24, 80, 10)
    emulator.feed(b"x")
    for _ in range(3):
        emulator.screen()
    assert library.calls["ghostty_formatter_terminal_new"] == library.calls["ghostty_formatter_free"] == 3
    assert library.calls["ghostty_terminal_free"] == 0
    del emulator
    gc.collect()

    assert library.calls["ghostty_terminal_free"] == 1


def test_a_large_screen_is_read_whole_and_its_memory_given_back() -> None:
    emulator = GhosttyEmulator(200, 500, 10)
    emulator.feed(("日" * 250 + "\r\n").encode() * 199)

    assert [row.text for row in emulator.screen().rows] == ["日" * 250] * 199 + [""]
    assert len(emulator._buffer) == 32 * 1024


def test_history_has_no_more_lines_than_asked_for() -> None:
    """The library itself drops them in large pieces."""
    emulator = GhosttyEmulator(5, 20, 7)
    emulator.feed(b"".join(b"%d\r\n" % number for number in range(500)))

    assert emulator.history() == [str(number) for number in range(489, 500)]


def test_a_call_that_fails_says_what_to_do() -> None:
    gh._check(0, "fine")
    with pytest.raises(Broken, match=r"no formatter \(-2\)") as failure:
        gh._check(-2, "no formatter")

    assert failure.value.hint == "set the emulator to 'pyte'"


@pytest.mark.parametrize("error", [ImportError, OSError, AttributeError, Broken])
def test_where_it_cannot_run_the_other_one_does(
    error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch.object(gh, "load", side_effect=error("no")):
        assert isinstance(make_emulator(24, 80), PyteEmulator)

    assert caplog.messages == ["native emulator not usable, fell back to pyte"]
