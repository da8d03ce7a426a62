"""`csp mcp` finds its room when it needs it, as an agent of a name or as who it is already."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.cli import mcp as module
from csp.cli.mcp import find, mcp
from csp.config import Settings
from csp.errors import Unreachable
from csp.room_registry import Address
from tests.cli.recording import call_of, with_settings

pytest.importorskip("mcp")
FOUND = Address(url="http://127.0.0.1:1", token="t", room="den")


def looking(monkeypatch: pytest.MonkeyPatch, runtime_dir: str, rooms: dict[Path, Address]) -> list[Path]:
    """Let rooms be announced in these folders; return the list of those that are looked into."""
    looked: list[Path] = []

    def find_room(settings: Settings, cwd: Path) -> Address:
        looked.append(settings.state_dir)
        if settings.state_dir not in rooms:
            raise Unreachable("no room is running")
        return rooms[settings.state_dir]

    monkeypatch.setattr(module, "find_room", find_room)
    monkeypatch.setattr(module, "unnamed_runtime_dir", lambda env: runtime_dir)
    return looked


def test_a_room_is_looked_for_where_its_client_has_hidden_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    call = with_settings(call_of("mcp"), state_dir=Path("/told"))
    looked = looking(monkeypatch, "/run/user/1/csp", {Path("/run/user/1/csp"): FOUND})

    assert find(call) == FOUND
    assert looked == [Path("/told"), Path("/run/user/1/csp")]


def test_a_room_that_is_told_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    call = with_settings(call_of("mcp"), state_dir=Path("/told"))
    looked = looking(monkeypatch, "/run/user/1/csp", {Path("/told"): FOUND})

    assert (find(call), looked) == (FOUND, [Path("/told")])


def test_no_room_anywhere_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    looking(monkeypatch, "", {})
    with pytest.raises(Unreachable, match="no room is running"):
        find(call_of("mcp"))


class Members:
    """Stands for the class of members: notes what becomes of the one that is made."""

    def __init__(self) -> None:
        self.did: list[Any] = []

    def __call__(self, name: str, find: Any, state_dir: Path) -> Any:
        self.did.append((name, find(), state_dir))
        return SimpleNamespace(
            network="its network",
            stay=lambda: self.did.append("stay"),
            leave=lambda: self.did.append("leave"),
        )


@pytest.mark.parametrize("failure", [None, OSError("a broken pipe")])
def test_a_member_leaves_when_its_client_goes(
    monkeypatch: pytest.MonkeyPatch, failure: Exception | None
) -> None:
    members = Members()

    def serve(door: Any) -> None:
        members.did.append(door)
        if failure:
            raise failure

    looking(monkeypatch, "", {Path("/told"): FOUND})
    monkeypatch.setattr("csp.mcp.outside_member.OutsideMember", members)
    monkeypatch.setattr("csp.mcp.stdio.serve", serve)
    call = with_settings(call_of("mcp", "--name", "Guest"), state_dir=Path("/told"))
    if failure:
        with pytest.raises(OSError, match="broken pipe"):
            mcp(call)
    else:
        assert mcp(call) == 0

    assert members.did == [("Guest", FOUND, Path("/told")), "stay", "its network", "leave"]


def test_in_a_pane_the_agent_is_who_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[Any] = []
    members = Members()
    monkeypatch.setattr("csp.mcp.outside_member.OutsideMember", members)
    monkeypatch.setattr("csp.mcp.stdio.serve", served.append)

    assert mcp(with_settings(call_of("mcp", "--name", "Guest"), agent="claude")) == 0
    assert "--name is not needed here: this pane is agent 'claude'" in capsys.readouterr().err
    assert mcp(call_of("mcp")) == 0
    assert capsys.readouterr().err == ""
    assert len(served) == 2 and members.did == []
