"""What is known of a pane: when its CLI is ready, busy or asking, and what a new child or a gap changes."""

import os
import tty
from types import SimpleNamespace
from typing import Any, Final

import pytest

from csp.clis.profile import load_profile
from csp.sidecar.state import pane_state as module
from csp.sidecar.state.pane_state import (
    ANIMATED_S,
    ASKING_S,
    DRAWN_S,
    PLACEHOLDERS,
    SESSION_S,
    UNREAD_S,
    PaneState,
)
from csp.terminal.gates import ECHO_S, PaneFacts
from csp.terminal.screen_reader import Composer

RULE: Final = "─" * 60
PASTES: Final = "\x1b[?2004h"
CLEAR: Final = "\x1b[2J\x1b[H"
CLAUDE: Final = f"{CLEAR}{RULE}\r\n❯\xa0\r\n{RULE}\x1b[2;3H"
DIALOG: Final = (
    f"{CLEAR}{RULE}\r\nBash command\r\n\r\nls\r\n\r\nDo you want to proceed?\r\n❯ 1. Yes\r\n  2. No\r\n"
)
WORKING: Final = f"{CLEAR}✻ Thinking… (3s · esc to interrupt)\r\n\r\n{RULE}\r\n❯\xa0\r\n{RULE}\x1b[4;3H"


class Scene:
    """A pane on a clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pane = PaneState(load_profile("generic"), 24, 80)

    def run(self, profile: str) -> "Scene":
        self.pane = PaneState(load_profile(profile), 24, 80)
        return self

    def write(self, text: str) -> "Scene":
        self.pane.feed(text.encode())
        return self

    def after(self, seconds: float) -> "Scene":
        self.now += seconds
        self.pane.observe(self.now)
        return self

    def facts(self) -> PaneFacts:
        self.pane.observe(self.now)
        return self.pane.snapshot(self.now, is_turn_open=False, is_end_known=True, is_paused=False)


def composer_at(pane: PaneState, now: float) -> Composer | None:
    pane.observe(now)
    return pane.reading.composer


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    clock: Any = SimpleNamespace(monotonic=lambda: made.now if made else 1000.0)
    made: Scene | None = None
    monkeypatch.setattr(module, "time", clock)
    made = Scene()
    return made


# --- ready ---------------------------------------------------------------------------------------


def test_a_cli_that_told_of_its_session_is_ready_with_its_composer(scene: Scene) -> None:
    scene.run("claude").pane.has_session = True

    assert not scene.after(0).pane.is_ready
    assert scene.write(PASTES + CLAUDE).after(0).pane.is_ready


def test_a_session_that_is_never_told_is_waited_for_only_so_long(scene: Scene) -> None:
    scene.run("claude").write(PASTES + CLAUDE).after(0)

    assert 10 <= SESSION_S <= 20
    assert not scene.after(SESSION_S - 0.1).pane.is_ready
    assert scene.after(0.2).pane.is_ready


def test_a_cli_without_such_a_hook_is_ready_when_its_composer_stands_for_a_moment(scene: Scene) -> None:
    scene.run("codex").write(f"{PASTES}{CLEAR}› ").after(0)

    assert 0.5 <= DRAWN_S <= 2
    assert not scene.after(DRAWN_S - 0.1).pane.is_ready
    assert scene.after(0.2).pane.is_ready


def test_a_composer_that_goes_has_to_stand_anew(scene: Scene) -> None:
    scene.run("codex").write(f"{PASTES}{CLEAR}› ").after(0).after(DRAWN_S - 0.1)
    scene.write(CLEAR).after(0)
    scene.write("› ").after(0.2)

    assert not scene.pane.is_ready
    assert scene.after(DRAWN_S).pane.is_ready


def test_a_composer_is_not_ready_before_it_takes_pastes(scene: Scene) -> None:
    scene.run("codex").write(f"{CLEAR}› ").after(0)

    assert not scene.after(60).pane.is_ready
    assert scene.write(PASTES).after(0).after(DRAWN_S).pane.is_ready


def test_a_codex_whose_session_has_not_begun_is_not_ready(scene: Scene) -> None:
    scene.run("codex").write(f"{PASTES}{CLEAR}› \r\n\r\n  ? for shortcuts\x1b[1;3H").after(0)

    assert not scene.after(scene.pane.profile.ready_s - 2 * DRAWN_S).pane.is_ready
    assert scene.write(f"{CLEAR}› \r\n\r\n  gpt-5 · /srv\x1b[1;3H").after(0).after(DRAWN_S).pane.is_ready


def test_a_start_screen_that_stays_is_believed_only_so_long(scene: Scene) -> None:
    scene.run("codex").write(f"{PASTES}{CLEAR}› \r\n\r\n  ? for shortcuts\x1b[1;3H").after(0)
    scene.after(scene.pane.profile.ready_s)

    assert scene.after(DRAWN_S).pane.is_ready


def test_a_question_at_the_start_has_to_be_answered_first(scene: Scene) -> None:
    scene.run("claude").pane.has_session = True
    scene.write(PASTES + CLAUDE + "\x1b[4;1HNot logged in · Please run /login\x1b[2;3H").after(0)

    assert not scene.after(60).pane.is_ready
    assert scene.facts().is_blocked


def test_an_unknown_program_is_ready_when_it_rests_or_after_its_time(scene: Scene) -> None:
    quiet_s, ready_s = 0.7, scene.pane.profile.ready_s
    scene.write("> ")
    assert not scene.after(quiet_s - 0.1).pane.is_ready
    assert scene.after(0.2).pane.is_ready

    scene.run("generic")
    for _ in range(int(ready_s * 10) - 1):
        scene.write(".").after(0.1)
    assert not scene.pane.is_ready
    assert scene.write(".").after(0.2).pane.is_ready


def test_an_unknown_program_that_has_drawn_nothing_is_never_ready(scene: Scene) -> None:
    scene.run("generic").write(PASTES).after(0)

    assert not scene.after(scene.pane.profile.ready_s + 1).pane.is_ready


def test_one_who_is_ready_stays_ready_but_not_while_another_child_is_to_come(scene: Scene) -> None:
    scene.write("> ").after(1)
    scene.write("...").after(0)
    assert scene.facts().is_ready
    scene.pane.is_leaving = True
    assert not scene.facts().is_ready


# --- busy ----------------------------------------------------------------------------------------


def test_a_sign_of_work_that_is_drawn_no_more_is_a_leftover_of_a_cli_that_tells_its_turns(
    scene: Scene,
) -> None:
    scene.run("claude").write(WORKING).after(0)
    assert 2 <= ANIMATED_S <= 5
    assert scene.pane.looks_busy
    assert scene.after(ANIMATED_S - 0.1).pane.looks_busy
    assert not scene.after(0.2).pane.looks_busy


def test_a_sign_that_gemini_is_not_prepared_yet_counts_while_it_stands_still(scene: Scene) -> None:
    """On a busy machine its spinner may not turn for seconds; prompts entered meanwhile are joined."""
    row = "\x1b[36m⠏ Connecting to MCP servers... (0/1)\x1b[0m"
    composer = f"{RULE}\r\n > \x1b[90m\x1b[0m\r\n{RULE}\x1b[4;4H"
    scene.run("gemini").write(f"{CLEAR}{row}\r\n\r\n{composer}").after(0)
    assert scene.after(60).pane.looks_busy

    assert not scene.write(f"{CLEAR}\r\n\r\n{composer}").after(0).pane.looks_busy


def test_where_only_the_screen_tells_of_work_a_still_sign_counts(scene: Scene) -> None:
    scene.write("working (esc to interrupt)\r\n> ").after(0)

    assert scene.after(60).pane.looks_busy


def test_a_title_counts_however_long_ago_it_was_set(scene: Scene) -> None:
    scene.run("claude").write(f"{CLAUDE}\x1b]0;⠂ work\x07").after(60)
    assert scene.pane.looks_busy
    # Another number for the same title.
    assert not scene.write("\x1b]2;✳ work\x07").after(0).pane.looks_busy


def test_the_rest_of_a_known_cli_begins_with_the_end_of_its_work(scene: Scene) -> None:
    scene.run("claude").write(WORKING).after(0)
    assert scene.facts().quiet_since is None
    scene.after(1).write(CLAUDE).after(1)
    rest = scene.now
    assert scene.facts().quiet_since == rest
    assert scene.write("\x1b[1;1H").after(5).facts().quiet_since == rest


def test_the_rest_of_an_unknown_program_begins_with_its_last_output(scene: Scene) -> None:
    scene.write("> ")
    written = scene.now

    assert scene.after(5).facts().quiet_since == written


# --- asking --------------------------------------------------------------------------------------


def test_a_permission_without_a_dialog_is_asked_for_only_so_long(scene: Scene) -> None:
    scene.run("claude").pane.note_asked()

    assert 2 <= ASKING_S <= 10
    assert scene.after(ASKING_S - 0.1).pane.is_asking
    assert not scene.after(0.2).pane.is_asking


def test_a_permission_is_asked_for_until_its_dialog_goes(scene: Scene) -> None:
    scene.run("claude").pane.note_asked()
    scene.write(DIALOG).after(1)
    assert scene.facts().has_dialog

    assert scene.after(ASKING_S * 10).pane.is_asking
    assert not scene.write(CLAUDE).after(0).pane.is_asking


def test_a_dialog_that_goes_at_once_was_answered(scene: Scene) -> None:
    scene.run("claude").pane.note_asked()
    scene.write(DIALOG).after(0.1)

    assert not scene.write(CLAUDE).after(0.1).pane.is_asking


def test_a_second_permission_does_not_end_with_the_dialog_of_the_first(scene: Scene) -> None:
    scene.run("claude").pane.note_asked()
    scene.write(DIALOG).after(1)
    scene.write(CLAUDE)
    scene.pane.note_asked()

    assert scene.after(0).pane.is_asking
    scene.pane.note_answered()
    assert not scene.pane.is_asking


def test_a_title_alone_may_tell_of_a_dialog(scene: Scene) -> None:
    scene.run("codex").write(f"{CLEAR}› \x1b]0;[ ! ] Action Required | demo\x07").after(0)

    assert scene.facts().has_dialog


# --- keys and drafts -----------------------------------------------------------------------------


def test_an_empty_composer_proves_that_nothing_is_typed_once_the_screen_had_time(scene: Scene) -> None:
    scene.run("claude").write(CLAUDE).after(0)
    assert scene.pane.count_keys(b"hello")
    assert scene.write(CLAUDE).after(ECHO_S / 2).facts().may_hold_draft
    assert not scene.after(ECHO_S).facts().may_hold_draft
    assert scene.pane.keys_seen == 5


def test_a_screen_from_before_the_keys_proves_nothing(scene: Scene) -> None:
    scene.run("claude").write(CLAUDE).after(1)
    assert scene.pane.count_keys(b"hello")
    facts = scene.after(2 * ECHO_S).facts()
    assert (facts.draft, facts.may_hold_draft) == (None, True)
    facts = scene.after(UNREAD_S).facts()
    assert (facts.draft, facts.may_hold_draft) == (False, False)


def test_a_composer_that_was_there_can_be_gone(scene: Scene) -> None:
    scene.run("claude").after(0)
    assert not scene.facts().is_composer_gone
    scene.write(CLAUDE).after(0)
    assert not scene.facts().is_composer_gone
    scene.write(f"{CLEAR}another page").after(0)

    assert scene.facts().is_composer_gone


def test_of_an_unknown_program_a_hidden_cursor_has_to_tell_it_too(scene: Scene) -> None:
    scene.write("> ").after(0)
    assert scene.facts().draft is False
    scene.write("\r\n1 2 3 4 5").after(0)
    assert not scene.facts().is_composer_gone

    assert scene.write("\x1b[?25l").after(0).facts().is_composer_gone


@pytest.mark.parametrize(("text", "is_there"), [("wrapped over rows", True), ("another text", False)])
def test_a_text_before_the_cursor_is_found_however_it_is_wrapped(
    scene: Scene, text: str, is_there: bool
) -> None:
    scene.write("other\r\nwrap\r\nped ov\r\ner\r\nrowsX\x1b[D").after(0)

    assert scene.pane.ends_at_cursor(text) is is_there


# --- another child, lost output ------------------------------------------------------------------


def test_another_child_begins_with_nothing(scene: Scene) -> None:
    scene.run("claude").pane.has_session = True
    scene.write(f"{PASTES}{CLAUDE}\x1b]0;⠂ work\x07").after(0)
    scene.pane.count_keys(b"draft")
    scene.pane.note_asked()
    scene.pane.is_stopped = scene.pane.is_leaving = True
    scene.facts()
    scene.now += 100
    scene.pane.begin_again()
    facts = scene.after(0).facts()

    assert not (facts.is_ready or facts.is_stopped or facts.is_asking or facts.may_hold_draft)
    assert not (facts.is_composer_gone or scene.pane.looks_busy or scene.pane.screen.bracketed_paste)
    assert not scene.write(PASTES + CLAUDE).after(0).pane.is_ready
    assert not scene.after(SESSION_S - 1).pane.is_ready


def test_another_unknown_program_has_all_its_time_to_start(scene: Scene) -> None:
    scene.after(100)
    scene.pane.begin_again()
    scene.write("loading (esc to cancel)")

    assert not scene.after(scene.pane.profile.ready_s - 1).pane.is_ready


def test_lost_output_is_counted_and_leaves_the_modes(scene: Scene) -> None:
    scene.write(f"\x1b[?1049h{PASTES}hello")
    written = scene.pane.written
    scene.pane.forget_screen(1000)

    assert scene.pane.modes == (True, True)
    assert scene.pane.history() == [""]
    assert scene.pane.written == written + 1000


def test_the_history_is_remembered_as_it_was_at_a_mark(scene: Scene) -> None:
    scene.pane.remember_at(3)
    assert scene.pane.remembered == []
    scene.write("ab").write("cdef")
    assert scene.pane.remembered == ["abc"]
    scene.pane.remember_at(6)
    assert scene.pane.remembered == ["abcdef"]

    scene.pane.remember_at(100)
    scene.pane.forget_screen(1000)
    assert scene.pane.remembered == [""]


def test_what_is_said_changes_when_it_is_drawn_but_not_by_a_dialog(scene: Scene) -> None:
    scene.run("claude").write(f"{CLEAR}● one\r\n{RULE}\r\n❯\xa0\r\n{RULE}\x1b[3;3H").after(1)
    said = scene.now
    assert scene.pane.said_at == said
    scene.write(DIALOG).after(1)
    assert scene.pane.said_at == said
    scene.write(f"{CLEAR}● one\r\n● two\r\n{RULE}\r\n❯\xa0\r\n{RULE}\x1b[4;3H").after(1)
    assert scene.pane.said_at == scene.now


@pytest.mark.parametrize("is_canonical", [True, False])
def test_the_terminal_says_whether_a_program_reads_lines(is_canonical: bool) -> None:
    master, slave = os.openpty()
    pane = PaneState(load_profile("generic"), 24, 80)
    try:
        if not is_canonical:
            tty.setraw(slave)
        pane.tty = os.ttyname(slave)
        assert pane.reads_lines() is is_canonical
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("path", ["", "/none/such", os.devnull])
def test_a_terminal_that_cannot_be_asked_tells_nothing(path: str) -> None:
    pane = PaneState(load_profile("generic"), 24, 80)
    pane.tty = path

    assert not pane.reads_lines()


def test_a_text_behind_the_caret_that_nobody_typed_is_no_draft_also_when_it_comes_back() -> None:
    pane = PaneState(load_profile("generic"), 24, 80)
    empty = b"\x1b[2J\x1b[H> Type your message\x1b[1;3H"
    pane.feed(empty)
    at_first = composer_at(pane, 1.0)
    pane.count_keys(b"\x1b[D")
    pane.count_keys(b"Type")
    pane.feed(b"\x1b[2J\x1b[H> Type me\x1b[1;3H")
    typed = composer_at(pane, 2.0)
    pane.feed(empty)
    again = composer_at(pane, 3.0)

    assert at_first is not None and at_first.is_empty
    assert typed is not None and typed.text == "Type me"
    assert again is not None and again.is_empty


def test_a_dialog_under_the_cursor_is_no_placeholder() -> None:
    pane = PaneState(load_profile("generic"), 24, 80)
    pane.feed(b"Do you want to proceed?\r\n> 1. Yes\r\n  2. No\x1b[2;3H")
    composer = composer_at(pane, 1.0)

    assert composer is None or not composer.is_empty


def test_the_placeholders_that_are_remembered_are_the_newest() -> None:
    pane = PaneState(load_profile("generic"), 24, 80)
    for number in range(PLACEHOLDERS + 1):
        pane.feed(f"\x1b[2J\x1b[H> Try this {number}\x1b[1;3H".encode())
        pane.observe(float(number))

    assert "Try this 0" not in pane._placeholders and len(pane._placeholders) == PLACEHOLDERS
