"""The human pane without a terminal or a gateway: its keys, its rows, its batches."""

import asyncio
import io
import signal
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.keys import Keys

from csp.errors import Unreachable
from csp.human import chat_pane as pane_module
from csp.human.chat import ChatOrder
from csp.human.chat_pane import ChatPane
from csp.human.saved_state import SavedState
from csp.human.theme import UNICODE, Theme
from csp.room_registry import Address
from csp.session_status import SessionStatus
from tests.waiting import wait_until


@pytest.fixture
async def pane(tmp_path: Path) -> AsyncIterator[ChatPane]:
    order = ChatOrder(
        address=Address(url="http://127.0.0.1:9", token="t", room="default"),
        memory=SavedState(tmp_path / "human"),
        env={"TERM": "xterm"},
        cwd=tmp_path,
        is_person=True,
    )
    with create_pipe_input() as keyboard:
        yield ChatPane(order, Theme(UNICODE, has_colour=False), io.StringIO(), keyboard)


def written(pane: ChatPane) -> str:
    assert isinstance(pane._stdout, io.StringIO)
    return pane._stdout.getvalue()


def know(pane: ChatPane, *agents: str) -> None:
    pane.chat.roster._agents = [{"id": agent, "state": "idle"} for agent in agents]
    pane.chat.roster.is_known = True


@pytest.fixture
def entered(pane: ChatPane, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(pane.chat, "enter", lines.append)
    return lines


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "typing"), [(2, 1), (4, 1), (6, 2), (10, 4), (14, 6), (24, 6), (100, 6)])
async def test_what_is_typed_takes_less_than_half_of_the_rows(
    pane: ChatPane, monkeypatch: pytest.MonkeyPatch, rows: int, typing: int
) -> None:
    monkeypatch.setattr(pane, "_size", lambda: Size(rows=rows, columns=80))

    assert pane._input_rows() == typing


async def test_answers_and_complaints_are_broken_between_words(
    pane: ChatPane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane, "_size", lambda: Size(rows=30, columns=40))
    await pane.page("/rooms", ["shop  running  /home/ann/projects/shop  ada idle", "  barn"])
    pane.talk("unknown agent 'nobody' (here are: ada, bob, cy)")

    assert pane.next_batch().split("\n") == [
        "· /rooms",
        "shop  running  /home/ann/projects/shop",
        "  ada idle",
        "  barn",
        "· unknown agent 'nobody' (here are: ada,",
        "  bob, cy)",
        "",
    ]


async def test_a_terminal_is_never_taken_for_too_small(
    pane: ChatPane, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pane._size() == Size(rows=24, columns=80)
    monkeypatch.setattr(pane, "_stdout", SimpleNamespace(fileno=lambda: 1))
    for given, expected in (((120, 40), (40, 120)), ((1, 1), (2, 10)), ((0, 0), (2, 10))):
        size = SimpleNamespace(columns=given[0], lines=given[1])
        monkeypatch.setattr("csp.human.chat_pane.os.get_terminal_size", lambda fd: size)  # noqa: B023

        assert pane._size() == Size(rows=expected[0], columns=expected[1])


async def test_more_lines_than_rows_are_counted(pane: ChatPane) -> None:
    pane._buffer.text = "\n".join("abcdef")
    assert not pane.is_folded()
    pane._buffer.text = "\n".join("abcdefg") + "\n"
    pane.chat.target = "ada"

    assert pane.is_folded()
    assert pane.fold_line() == [("class:prompt", "7 lines to ada: Enter sends them as one message")]


async def test_only_the_first_row_has_the_prompt(pane: ChatPane) -> None:
    assert pane.line_prefix(0, 0) == [("class:prompt", "→all> ")]
    assert pane.line_prefix(0, 1) == pane.line_prefix(1, 0) == [("", "  ")]


async def test_the_bottom_line_says_what_is_known(pane: ChatPane) -> None:
    assert pane.bottom_line() == [("", "joining the room")]
    pane.chat.away = "refused"
    assert pane.bottom_line() == [("", "NO GATEWAY")]
    know(pane, "ada")
    assert pane.bottom_line() == [("", "NO GATEWAY | ada idle")]
    pane.chat.away = ""

    assert pane.bottom_line() == [("", "ada idle")]


# --- batches -------------------------------------------------------------------------------------


async def test_a_batch_is_all_that_waits_up_to_a_limit(
    pane: ChatPane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_module, "_MAX_WRITE", 10)
    for text in ("1234", "5678", "90", "x" * 30, "end"):
        pane.put(text)
    pane.bell()

    assert pane.next_batch() == "1234\n5678\n\a"
    assert pane.next_batch() == "90\n" + "x" * 30 + "\n"
    assert pane.next_batch() == "end\n"
    assert pane.next_batch() == ""


async def test_a_bell_rings_without_any_line(pane: ChatPane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pane_module, "FLUSH_S", 0.0)
    flushing = asyncio.ensure_future(pane.flush_batches())
    pane.bell()
    await wait_until(lambda: written(pane).endswith("\a"), 60.0)
    pane.talk("later")
    await wait_until(lambda: written(pane).endswith("\a· later\n"), 60.0)
    flushing.cancel()


async def test_lines_arrive_in_one_write_which_ends_with_the_prompt(pane: ChatPane) -> None:
    know(pane, "ada")
    running = asyncio.ensure_future(pane._app.run_async())
    await wait_until(lambda: "ada idle" in written(pane), 60.0)
    writes: list[str] = []
    write = pane._stdout.write

    def note(text: str) -> int:
        writes.append(text)
        return write(text)

    pane._stdout.write = note  # type: ignore[method-assign]  # every write counts
    pane.put("one\ntwo")
    pane._show_batch()
    pane._stdout.write = write  # type: ignore[method-assign]
    pane.leave()
    pane.leave()
    await running
    (text,) = writes

    assert text.index("one\r\ntwo\r\n") < text.index("→all>") < text.index("ada idle")
    assert "\x1b[?2004l" not in text


# --- keys ----------------------------------------------------------------------------------------


def press(pane: ChatPane, *ahead: Keys | str) -> None:
    """Press Enter with these keys waiting behind it."""
    queue = deque(SimpleNamespace(key=key) for key in ahead)
    pane._enter(SimpleNamespace(key_processor=SimpleNamespace(input_queue=queue)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ahead", "is_sent"),
    [
        ([], True),
        (["x"] * 199, True),
        (["x"] * 200, False),
        ([Keys.ControlM, "x", Keys.ControlJ], True),
        ([Keys.ControlM, "x", Keys.ControlJ, Keys.ControlM], False),
    ],
)
async def test_lines_that_come_faster_than_anybody_types_are_one_message(
    pane: ChatPane, entered: list[str], ahead: list[Any], is_sent: bool
) -> None:
    pane._buffer.text = "a line"
    pane._buffer.cursor_position = 6
    press(pane, *ahead)

    assert entered == (["a line"] if is_sent else [])
    assert pane._buffer.text == ("" if is_sent else "a line\n")


async def test_the_last_lines_of_a_burst_belong_to_it(
    pane: ChatPane, entered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("csp.human.chat_pane.time.monotonic", lambda: now[0])
    press(pane, *[Keys.ControlM] * 3)
    now[0] += 0.2
    press(pane, "x")
    now[0] += 0.2
    press(pane)
    assert entered == []
    now[0] += 0.2
    press(pane)

    assert entered == ["\n\n\n"]


async def test_what_has_one_end_is_completed_with_a_space(pane: ChatPane) -> None:
    know(pane, "claude", "codex", "gemini")
    for text, expected in (
        ("@g", "@gemini "),
        ("@c", "@c"),
        ("@co", "@codex "),
        ("@x", "@x"),
        ("/paus", "/pause "),
    ):
        pane._buffer.text = text
        pane._buffer.cursor_position = len(text)
        pane.complete(None)  # type: ignore[arg-type]  # the key does not matter

        assert pane._buffer.text == expected


async def test_each_further_tab_takes_the_next_choice(pane: ChatPane) -> None:
    know(pane, "claude", "codex", "gemini")
    pane._buffer.text = "@c"
    pane._buffer.cursor_position = 2
    choices = [Completion(name, start_position=-2) for name in ("@claude", "@codex")]
    pane._buffer.complete_state = CompletionState(pane._buffer.document, choices)
    shown = []
    for _ in range(4):
        pane.complete(None)  # type: ignore[arg-type]  # the key does not matter
        shown.append(pane._buffer.text)

    assert shown == ["@claude", "@codex", "@c", "@claude"]


async def test_a_break_clears_the_line_and_two_empty_ones_say_how_to_leave(
    pane: ChatPane, entered: list[str]
) -> None:
    def press_break() -> None:
        pane.clear_or_explain(None)  # type: ignore[arg-type]  # the key does not matter

    press_break()
    pane._buffer.text = "half"
    press_break()
    press_break()
    assert (pane._buffer.text, pane._lines) == ("", [])
    press(pane)
    press_break()
    assert pane._lines == []
    press_break()
    press_break()

    assert pane._lines == ["· to leave: Ctrl-D or /quit; to stop the agents: Allstop or F12"]


@pytest.mark.parametrize("has_shell", [True, False])
async def test_only_where_a_shell_is_above_the_pane_is_suspended(
    pane: ChatPane, monkeypatch: pytest.MonkeyPatch, has_shell: bool
) -> None:
    suspended: list[bool] = []
    app = SimpleNamespace(suspend_to_background=lambda: suspended.append(True))
    monkeypatch.setattr(pane_module, "has_shell_above", lambda: has_shell)
    monkeypatch.setattr(pane_module, "get_app", lambda: app)
    pane.suspend(None)  # type: ignore[arg-type]  # the key does not matter

    assert (bool(suspended), bool(pane._lines)) == (has_shell, not has_shell)


async def test_what_was_typed_is_offered_newest_first(pane: ChatPane, tmp_path: Path) -> None:
    for text in ("one", "two"):
        pane._buffer.history.store_string(text)

    assert SavedState(tmp_path / "human").typed() == ["one", "two"]
    assert [*pane._buffer.history.load_history_strings()] == ["two", "one"]


# --- from start to end ---------------------------------------------------------------------------


async def test_the_clock_is_drawn_only_where_one_runs(
    pane: ChatPane, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[float | None] = []
    monkeypatch.setattr(pane_module, "_CLOCK_S", 0.0)
    monkeypatch.setattr(pane, "refresh", lambda: drawn.append(pane.chat.roster.session.deadline))
    ticking = asyncio.ensure_future(pane.tick_clock())
    for _ in range(10):
        await asyncio.sleep(0)
    pane.chat.roster.session = SessionStatus(mode="debate", deadline=1.0)
    await wait_until(lambda: drawn, 60.0)
    ticking.cancel()

    assert set(drawn) == {1.0}


class Joined:
    """Stands for the chat of a pane."""

    def __init__(self, pane: ChatPane, problem: Exception | None) -> None:
        self._pane, self._problem = pane, problem
        self.roster, self.target, self.away = pane.chat.roster, "all", ""
        self.question, self.prompt = None, "all"
        self.needs = pane.chat.needs
        self.has_closed = False

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        self.has_closed = True
        self._pane.put("the last words")

    async def serve(self) -> None:
        if self._problem:
            raise self._problem
        await asyncio.Event().wait()


async def test_a_room_that_cannot_be_joined_ends_the_pane_with_the_reason(pane: ChatPane) -> None:
    pane.chat = chat = Joined(pane, Unreachable("away"))  # type: ignore[assignment]
    with pytest.raises(Unreachable, match="away"):
        await pane.run()

    assert chat.has_closed
    assert written(pane).endswith("the last words\n")


async def test_a_signal_ends_the_pane(pane: ChatPane, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(
        asyncio.SelectorEventLoop,
        "add_signal_handler",
        lambda loop, number, act: handlers.update({number: act}),
    )
    pane.chat = Joined(pane, None)  # type: ignore[assignment]
    running = asyncio.ensure_future(pane.run())
    await wait_until(lambda: pane._app.is_running, 60.0)
    assert {signal.SIGTERM, signal.SIGHUP} <= set(handlers)
    handlers[signal.SIGHUP]()

    await running


async def test_who_leaves_sees_what_was_still_to_be_said(pane: ChatPane) -> None:
    pane.chat = chat = Joined(pane, None)  # type: ignore[assignment]
    running = asyncio.ensure_future(pane.run())
    await wait_until(lambda: pane._app.is_running, 60.0)
    pane.leave()
    await running

    assert chat.has_closed
    assert written(pane).endswith("the last words\n")
    assert len(asyncio.all_tasks()) == 1
