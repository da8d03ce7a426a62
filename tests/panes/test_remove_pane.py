"""The pane of a removed agent is closed once its program has ended, or where a person says so."""

from pathlib import Path

import pytest

from csp.panes.down import RemovedPane, close_pane_of
from csp.panes.members import PaneMember
from csp.panes.room_processes import RoomProcesses
from tests.panes.bare import build
from tests.panes.place import Place


def close(place: Place, agent: str, *, ends_program: bool = False) -> RemovedPane:
    return close_pane_of(place.state, "default", agent, lambda _: None, ends_program=ends_program)


@pytest.mark.parametrize("has_ended", [True, False])
def test_the_pane_of_a_removed_agent_is_closed_after_its_program(
    bare: Place, monkeypatch: pytest.MonkeyPatch, *, has_ended: bool
) -> None:
    panes = build(bare, "ann", "ben")
    processes = RoomProcesses(bare.state, "default")
    processes.save_lineup(
        [PaneMember(name=name, agent=name, command=("cat",), cwd=Path("/")) for name in ("ann", "ben")]
    )
    assert close(bare, "cid") is RemovedPane.NONE
    if has_ended:
        panes.run(panes.seats()["ann"].pane, ["true"], bare.dir)
        bare.wait(lambda: panes.seats()["ann"].is_dead, "its end")
    else:
        assert close(bare, "ann") is RemovedPane.RUNNING
        assert list(panes.seats()) == ["human", "ann", "ben"]
        # csp up does not bring it back.
        assert [member.agent for member in processes.lineup()] == ["ben"]

    assert close(bare, "ann", ends_program=not has_ended) is RemovedPane.CLOSED
    assert list(panes.seats()) == ["human", "ben"]
    assert [member.agent for member in processes.lineup()] == ["ben"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert close(bare, "ben", ends_program=True) is RemovedPane.NONE


def test_a_foreign_session_of_the_rooms_name_is_left_alone(bare: Place) -> None:
    bare.state.mkdir(mode=0o700)
    processes = RoomProcesses(bare.state, "default")
    processes.save_lineup([PaneMember(name="ann", agent="ann", command=("cat",), cwd=Path("/"))])
    bare.tmux("new-session", "-d", "-s", "csp", "cat")

    assert close(bare, "ann", ends_program=True) is RemovedPane.NONE
    assert [member.agent for member in processes.lineup()] == ["ann"]
