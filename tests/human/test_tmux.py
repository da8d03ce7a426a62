"""The human pane in a real tmux: scrollback, pastes, marks, other panes, a shell above."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.human.scene import CHAT, Pane, join
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

_SIZE: Final = ("-x", "80", "-y", "10")


class Tmux:
    """One tmux server on a socket of its own, with one window of 80x10."""

    def __init__(self, folder: Path, room: LiveRoom) -> None:
        self._socket = folder / "tmux.sock"
        self._env = room.env | {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self._dir = room.dir

    def start(self, command: str) -> None:
        self("new-session", "-d", "-s", "t", "-c", str(self._dir), *_SIZE, command)

    def __call__(self, *words: str, stdin: str = "") -> str:
        command = ["tmux", "-f", os.devnull, "-u", "-S", str(self._socket), *words]
        run = subprocess.run(command, env=self._env, input=stdin, capture_output=True, text=True, check=True)
        return run.stdout

    def attached(self, *, rows: int, columns: int) -> Pane:
        """Return a terminal that shows the session, as a person sees it."""
        command = ("tmux", "-u", "-S", str(self._socket), "attach", "-t", "t")
        return Pane(command, self._env, self._dir, rows=rows, columns=columns)

    def shown(self, pattern: str, *, scrollback: bool = False, timeout_s: float = 20.0) -> str:
        """Wait until the pane shows a pattern; return what it shows."""
        start = ("-S", "-") if scrollback else ()

        def text() -> str:
            found = self("capture-pane", "-p", "-t", "t:0.0", *start)
            return found if re.search(pattern, found, re.MULTILINE) else ""

        try:
            return wait_until_sync(text, timeout_s, pattern)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{self('capture-pane', '-p', '-t', 't:0.0', *start)}") from None

    def type(self, text: str) -> None:
        self("send-keys", "-t", "t:0.0", "-l", text)
        self("send-keys", "-t", "t:0.0", "Enter")


@pytest.fixture
def tmux(tmp_path: Path, room: LiveRoom) -> Iterator[Tmux]:
    server = Tmux(tmp_path, room)
    yield server
    subprocess.run(
        ["tmux", "-S", str(tmp_path / "tmux.sock"), "kill-server"], check=False, capture_output=True
    )


def test_what_scrolls_off_is_in_the_scrollback_once_and_in_order(room: LiveRoom, tmux: Tmux) -> None:
    claude = join(room, "claude")
    tmux.start(shlex.join(CHAT))
    tmux.shown("^→all>")
    for number in range(60):
        claude.say("human", f"message {number}.")
    text = tmux.shown(r"message 59\.", scrollback=True)

    assert [int(found) for found in re.findall(r"claude: message (\d+)\.$", text, re.MULTILINE)] == [
        *range(60)
    ]
    assert len(re.findall("^→all>", text, re.MULTILINE)) == 1
    assert tmux("display-message", "-p", "-t", "t:0.0", "#{alternate_on}").strip() == "0"


def test_a_resize_leaves_one_prompt(room: LiveRoom, tmux: Tmux) -> None:
    claude = join(room, "claude")
    tmux.start(shlex.join(CHAT))
    tmux.shown("^claude idle")
    for number, (columns, rows) in enumerate([(20, 6), (80, 10), (30, 24), (120, 30), (50, 8), (80, 10)]):
        tmux("resize-window", "-t", "t", "-x", str(columns), "-y", str(rows))
        claude.say("human", f"size {number}")
        tmux.shown(rf"size {number}\b")
        # The prompt is drawn in the new size.
        tmux.shown(r"^→all>\s*\n+claude idle")

    text = tmux("capture-pane", "-p", "-t", "t:0.0", "-S", "-")
    assert len(re.findall("^→all>", text, re.MULTILINE)) == 1, text


def test_a_long_answer_opens_in_a_popup_over_the_pane(room: LiveRoom, tmux: Tmux) -> None:
    join(room, "claude")
    tmux.start(shlex.join(CHAT))
    tmux.shown("^claude idle")
    with tmux.attached(rows=30, columns=120) as client:
        client.wait_for("^claude idle")
        client.type("/help all")
        client.wait_for("q closes")
        # It is over the pane, on the tmux server of the pane.
        assert "q closes" not in tmux("capture-pane", "-p", "-t", "t:0.0")
        client.send(b"q")
        client.wait_gone("q closes")
        client.type("@claude here again")

        client.wait_for("you → claude: here again")
    # The popup leaves nothing behind in the pane.
    assert "send text that starts with" not in tmux("capture-pane", "-p", "-t", "t:0.0", "-S", "-")


def test_a_paste_by_tmux_is_one_message(room: LiveRoom, tmux: Tmux) -> None:
    claude = join(room, "claude")
    text = "\n".join(f"line {number}" for number in range(200))
    tmux.start(shlex.join(CHAT))
    tmux.shown("^claude idle")
    tmux("load-buffer", "-", stdin=text)
    tmux("paste-buffer", "-p", "-t", "t:0.0")
    tmux.shown("200 lines to all")
    tmux("send-keys", "-t", "t:0.0", "Enter")

    assert claude.next_item()["text"] == text


def test_a_call_marks_the_window(room: LiveRoom, tmux: Tmux) -> None:
    claude = join(room, "claude")
    tmux.start(shlex.join(CHAT))
    tmux.shown("^claude idle")
    tmux("new-window", "-t", "t:1", "cat")
    claude.set_state("needs_approval", detail="may it?")

    wait_until_sync(
        lambda: tmux("display-message", "-p", "-t", "t:0", "#{window_bell_flag}").strip() == "1",
        what="the mark",
    )


def test_focus_goes_to_the_pane_of_an_agent(room: LiveRoom, tmux: Tmux) -> None:
    join(room, "claude")
    join(room, "codex")
    tmux.start(shlex.join(CHAT))
    tmux.shown("^claude idle")
    tmux("new-window", "-t", "t:1", "cat")
    tmux("split-window", "-t", "t:1", "cat")
    tmux("set-option", "-p", "-t", "t:1.0", "@csp_agent", "claude")
    tmux("select-pane", "-t", "t:1.1")
    tmux("select-window", "-t", "t:0")
    tmux.type("/focus claude")
    place = "#{window_index}.#{pane_index}"
    wait_until_sync(
        lambda: tmux("display-message", "-p", "-t", "t", place).strip() == "1.0", what="the other pane"
    )
    tmux.type("/focus codex")

    tmux.shown("no pane of codex is in this tmux session")


def test_ctrl_z_gives_the_shell_back_and_fg_the_pane(room: LiveRoom, tmux: Tmux) -> None:
    claude = join(room, "claude")
    tmux.start("exec env 'PS1=shell$ ' bash --norc --noediting -i")
    tmux.shown(r"^shell\$")
    tmux.type(shlex.join(CHAT))
    tmux.shown("^claude idle")
    tmux("send-keys", "-t", "t:0.0", "C-z")
    tmux.shown(r"^shell\$ $|Stopped[^$]*shell\$")
    tmux.type("echo back in the $((40 + 2))")
    tmux.shown("^back in the 42")
    tmux.type("fg")
    claude.say("human", "while you were stopped")
    tmux.shown("while you were stopped")
    tmux.type("@claude here again")
    assert claude.next_item("here again")
    tmux("send-keys", "-t", "t:0.0", "C-d")
    tmux.shown(r"here again[^$]*^shell\$ *$")
    tmux.type("echo left with $?")

    tmux.shown("^left with 0")


def test_a_killed_terminal_ends_the_pane(room: LiveRoom, tmux: Tmux) -> None:
    tmux.start(shlex.join(CHAT))
    tmux.shown("^→all>")
    pid = int(tmux("display-message", "-p", "-t", "t:0.0", "#{pane_pid}"))
    tmux("kill-server")

    wait_until_sync(lambda: not Path(f"/proc/{pid}").exists(), 20.0, "the end of the pane's process")
