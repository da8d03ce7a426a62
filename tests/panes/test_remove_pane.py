"""The pane of an agent that was removed is closed, and it is not started again."""

from pathlib import Path

import pytest

from csp.panes.down import close_pane_of
from csp.panes.members import PaneMember
from csp.panes.room_processes import RoomProcesses
from tests.panes.bare import build
from tests.panes.place import Place


def close(place: Place, agent: str) -> bool:
    return close_pane_of(place.state, "default", agent, lambda _: None)


@pytest.mark.parametrize("has_ended", [True, False])
def test_the_pane_of_a_removed_agent_is_closed(
    bare: Place, monkeypatch: pytest.MonkeyPatch, *, has_ended: bool
) -> None:
    panes = build(bare, "ann", "ben")
    processes = RoomProcesses(bare.state, "default")
    processes.save_lineup(
        [PaneMember(name=name, agent=name, command=("cat",), cwd=Path("/")) for name in ("ann", "ben")]
    )
    assert not close(bare, "cid")
    if has_ended:
        panes.run(panes.seats()["ann"].pane, ["true"], bare.dir)
        bare.wait(lambda: panes.seats()["ann"].is_dead, "its end")

    assert close(bare, "ann")
    assert list(panes.seats()) == ["human", "ben"]
    assert [member.agent for member in processes.lineup()] == ["ben"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert not close(bare, "ben")


def test_a_foreign_session_of_the_rooms_name_is_left_alone(bare: Place) -> None:
    bare.state.mkdir(mode=0o700)
    processes = RoomProcesses(bare.state, "default")
    processes.save_lineup([PaneMember(name="ann", agent="ann", command=("cat",), cwd=Path("/"))])
    bare.tmux("new-session", "-d", "-s", "csp", "cat")

    assert not close(bare, "ann")
    assert [member.agent for member in processes.lineup()] == ["ann"]
