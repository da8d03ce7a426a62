"""How `csp chat` is opened: as whom, where it remembers, in a pane or line by line."""

import io
import os
from pathlib import Path
from typing import Any

import pytest

from csp.cli.chat import chat, memory_folder
from csp.errors import BadInput, Forbidden
from csp.room_registry import Address, RunningRoom, remove_room, write_room
from tests.cli.recording import call_of, with_settings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def opened(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    stdin: io.StringIO,
    stdout: io.StringIO,
    term: str = "xterm",
) -> tuple[str, Any]:
    """Open the chat; return which kind it was with what it was told."""
    seen: list[tuple[str, Any]] = []

    def kind(name: str, code: int) -> Any:
        async def run(order: Any, look: Any) -> int:
            seen.append((name, order))
            return code

        return run

    monkeypatch.setattr("csp.human.chat_pane.run_pane", kind("pane", 3))
    monkeypatch.setattr("csp.human.plain_chat.run_plain", kind("plain", 4))
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stdout", stdout)
    monkeypatch.setenv("TERM", term)
    code = chat(with_settings(call_of("chat", cwd=tmp_path), state_dir=tmp_path))
    assert code == (3 if seen[0][0] == "pane" else 4)
    return seen[0]


def test_a_person_at_a_terminal_gets_a_pane(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kind, order = opened(monkeypatch, tmp_path, stdin=Terminal(), stdout=Terminal())

    assert (kind, order.is_person, order.cwd) == ("pane", True, tmp_path)
    assert order.address.url == "http://127.0.0.1:9" and order.env["TERM"] == "xterm"


@pytest.mark.parametrize(
    ("stdin", "stdout", "term", "is_person"),
    [
        (io.StringIO(), Terminal(), "xterm", False),
        (Terminal(), io.StringIO(), "xterm", True),
        (Terminal(), Terminal(), "dumb", True),
        (Terminal(), Terminal(), "unknown", True),
        (Terminal(), Terminal(), "", True),
    ],
)
def test_elsewhere_it_goes_line_by_line(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    stdin: io.StringIO,
    stdout: io.StringIO,
    term: str,
    is_person: bool,
) -> None:
    kind, order = opened(monkeypatch, tmp_path, stdin=stdin, stdout=stdout, term=term)

    assert (kind, order.is_person) == ("plain", is_person)


@pytest.mark.parametrize("name", ["stdin", "stdout"])
def test_a_closed_stream_is_a_misuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(f"sys.{name}", None)
    with pytest.raises(BadInput, match="one of them is closed"):
        chat(call_of("chat"))


def test_an_agent_does_not_speak_as_the_human() -> None:
    call = call_of("chat")
    token = f"claude.1.{'0' * 40}"
    call.__dict__["address"] = Address(url="http://127.0.0.1:9", token=token, room="default")
    with pytest.raises(Forbidden, match="acts as the human"):
        chat(call)


def test_what_is_remembered_lies_with_the_history_of_its_room(tmp_path: Path) -> None:
    call = with_settings(call_of("chat"), state_dir=tmp_path)
    # No room of ours is at this address.
    assert memory_folder(call) == tmp_path / "http-127-0-0-1-9.human"
    held = [
        write_room(
            tmp_path,
            RunningRoom(
                room=name,
                url=f"http://127.0.0.1:{port}",
                token="t",
                pid=os.getpid(),
                dir=Path("/x"),
                history=tmp_path / "history" / name,
                started=1.5,
            ),
        )
        for name, port in (("other", 8), ("den", 9))
    ]
    assert memory_folder(call) == tmp_path / "history" / "den" / "human"
    for one in held:
        remove_room(one)
