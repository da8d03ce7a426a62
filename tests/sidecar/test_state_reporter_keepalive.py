"""The room is asked for more time while a CLI gets on: while a tool runs, while text comes."""

import socket
from collections.abc import AsyncIterator

import msgspec
import pytest

from csp.client import Client
from csp.clis.codex.transcript import CodexReader
from csp.clis.gemini.transcript import GeminiReader
from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.profile import load_profile
from csp.clis.transcript_reader import Line
from csp.sidecar.brain.state_reporter import TurnKeepalive
from csp.sidecar.brain_socket import RelayPort
from csp.sidecar.inject.message_progress import MessageProgress
from csp.sidecar.state.cli_state import CliState
from csp.sidecar.state.pane_state import PaneState
from csp.terminal.reply_tracker import Item, Prompted, Returned, ToolCalled, Tracker, Using

RULE = "─" * 60
CALL = ToolCalled(id="c1", tool="Bash", arguments="{}")


class Desk:
    """A pane whose CLI may be drawn by hand."""

    def __init__(self, profile: str, line: socket.socket) -> None:
        known = load_profile(profile)
        self.pane = PaneState(known, 24, 80)
        self.tracker = Tracker()
        sight = CliState(known, self.pane, RelayPort(line, lambda kind, payload: None), self.tracker)
        client = Client("http://127.0.0.1:9", "room.token")
        self.diligence = TurnKeepalive(sight, client, MessageProgress())
        self.draw("")
        self.diligence.check_progress()

    def draw(self, said: str, spinner: str = "") -> None:
        """Draw Claude Code with these words above its composer."""
        rows = f"{said}\r\n{spinner}\r\n{RULE}\r\n❯\xa0\r\n{RULE}"
        self.pane.feed(f"\x1b[2J\x1b[H{rows}\x1b[4;3H".encode())

    def check_progress(self) -> bool:
        return self.diligence.check_progress()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    with socket.socket() as line:
        yield Desk("claude", line)


async def test_text_that_comes_is_work(desk: Desk) -> None:
    desk.draw("● Four")
    assert desk.check_progress()
    assert not desk.check_progress()
    desk.draw("● Four score")
    assert desk.check_progress()


async def test_a_clock_is_no_work_but_a_count_of_tokens_is(desk: Desk) -> None:
    desk.draw("", "✻ Gusting… (3s)")
    desk.check_progress()
    desk.draw("", "✶ Gusting… (4s)")
    assert not desk.check_progress()
    desk.draw("", "✶ Gusting… (5s · ↓ 12 tokens)")
    assert desk.check_progress()


async def test_a_tool_is_work_until_it_returns(desk: Desk) -> None:
    desk.tracker.feed(Prompted(id="p", text="[YOUR TURN #t-7]"))
    desk.tracker.feed(CALL)
    assert desk.check_progress() and desk.check_progress()
    desk.tracker.feed(Returned(id="c1"))
    assert not desk.check_progress()


async def test_who_waits_for_a_person_does_not_work(desk: Desk) -> None:
    desk.tracker.feed(CALL)
    desk.pane.note_asked()

    assert not desk.check_progress()


async def test_what_moves_on_an_unknown_screen_may_be_a_spinner() -> None:
    with socket.socket() as line:
        desk = Desk("generic", line)
        desk.draw("working |")
        assert not desk.check_progress()


# --- what the records say of tools ---------------------------------------------------------------


def hook(name: str, at: str, tool: str = "run_shell_command") -> HookEvent:
    fields = {"hook_event_name": name, "tool_name": tool, "timestamp": f"2026-11-16T10:00:0{at}Z"}
    return HookEvent(at=0.0, hook=msgspec.convert(fields, Hook))


def test_gemini_tells_by_hooks_when_a_tool_runs() -> None:
    reader, tracker = GeminiReader(0.0), Tracker()
    states = []
    for event in (
        hook("BeforeTool", "1"),
        hook("BeforeTool", "2"),
        hook("AfterTool", "3"),
        hook("AfterTool", "4"),
    ):
        items: list[Item] = reader.read([event], [], 0.0)
        assert [type(item) for item in items] in ([Using], [Returned])
        for item in items:
            tracker.feed(item)
        states.append(tracker.runs_tool)

    assert states == [True, True, True, False]


def test_a_search_of_codex_is_over_when_it_is_written_down() -> None:
    line = (
        b'{"timestamp":"2026-11-16T10:00:00Z","type":"response_item",'
        b'"payload":{"type":"web_search_call","id":"ws1","action":{"query":"x"}}}'
    )
    items = CodexReader(0.0).read([], [Line(path="/r.jsonl", data=line)], 0.0)

    assert [type(item) for item in items] == [ToolCalled, Returned]
    assert [item.id for item in items if isinstance(item, ToolCalled | Returned)] == ["ws1", "ws1"]
