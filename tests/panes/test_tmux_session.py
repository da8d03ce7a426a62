"""The tmux session of a room, on a server with nothing but `cat` in its panes."""

import ast
import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import Broken, NotFound, Refused
from csp.fast_start.child_environment import IDENTITY
from csp.panes.tmux_session import (
    TmuxSession,
    check_terminal,
    check_tmux,
    passed_on,
    remove_dead_socket,
    room_key,
    session_name,
)
from csp.terminal.pane_layout import Size, default_form
from tests.panes.bare import SEVEN, attach, build, windows
from tests.panes.place import Place

# --- before there is a session --------------------------------------------------------------------


@pytest.mark.parametrize("said", ["tmux 3.2", "tmux 3.2a", "tmux next-3.6", "tmux 10.0", "tmux master"])
def test_tmux_from_32_on_will_do(place: Place, said: str) -> None:
    place.program("tmux", f"#!/bin/sh\necho {said}\n")

    assert check_tmux(place.env) == said


@pytest.mark.parametrize("said", ["tmux 2.9a", "tmux 3.1c", "tmux 1.8"])
def test_an_old_tmux_is_refused(place: Place, said: str) -> None:
    place.program("tmux", f"#!/bin/sh\necho {said}\n")

    with pytest.raises(Refused, match=f"{said} is too old, expected tmux 3.2 or newer"):
        check_tmux(place.env)


def test_a_missing_tmux_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as error:
        check_tmux({"PATH": str(tmp_path)})

    assert (error.value.message, error.value.hint.startswith("install it: ")) == ("tmux was not found", True)


def test_inside_tmux_another_terminal_is_drawn_on_already() -> None:
    check_terminal({"TERM": "no-such", "TMUX": "/tmp/x,1,0"})


@pytest.mark.parametrize(("lacking", "is_fine"), [("", True), ("clear", False), ("cup", False)])
def test_a_terminal_needs_all_that_tmux_needs(
    monkeypatch: pytest.MonkeyPatch, lacking: str, is_fine: bool
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("curses.setupterm", asked.append)
    monkeypatch.setattr("curses.tigetstr", lambda ability: None if ability == lacking else b"x")
    if is_fine:
        check_terminal({"TERM": "odd"})
        check_terminal({})
        assert asked == ["odd", "unknown"]
    else:
        with pytest.raises(Refused, match="terminal 'odd' cannot show a tmux session"):
            check_terminal({"TERM": "odd"})


class Server:
    """Stands for tmux; keeps what it is told."""

    def __init__(self, **answers: list[str]) -> None:
        self.told: list[tuple[str, ...]] = []
        self._answers = answers
        self.problem = ""
        self.socket_path = None

    def cmd(self, *words: str) -> Any:
        self.told.append(words)
        answer = self._answers.get(words[0].replace("-", "_"), [])
        return SimpleNamespace(stdout=answer, stderr=[self.problem] if self.problem else [])


def panes_of(server: Server) -> TmuxSession:
    panes = TmuxSession.__new__(TmuxSession)
    panes.name, panes.id, panes._key = "csp", "$1", "default@1"
    panes._form, panes._socket_file = default_form(Size(cols=100, rows=49)), Path("/nowhere/default.tmux")
    panes._server = server  # type: ignore[assignment]  # all of it that is used
    return panes


@pytest.mark.parametrize(("deaths", "works"), [(0, True), (4, True), (5, False)])
def test_a_server_that_is_just_ending_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, deaths: int, works: bool
) -> None:
    answers = [SimpleNamespace(returncode=1, stderr=b"server exited unexpectedly", stdout=b"")] * deaths
    answers.append(SimpleNamespace(returncode=0, stderr=b"", stdout=b""))
    monkeypatch.setattr("csp.panes.tmux_session.subprocess.run", lambda *_, **__: answers.pop(0))
    if works:
        panes_of(Server())._source([["x"]])
        assert answers == []
    else:
        with pytest.raises(Broken, match="tmux failed: server exited"):
            panes_of(Server())._source([["x"]])


@pytest.mark.parametrize(("code", "said"), [(0, b"unknown command: x"), (3, b"")])
def test_what_tmux_complains_of_is_an_error(monkeypatch: pytest.MonkeyPatch, code: int, said: bytes) -> None:
    answer = SimpleNamespace(returncode=code, stderr=b"", stdout=said)
    monkeypatch.setattr("csp.panes.tmux_session.subprocess.run", lambda *_, **__: answer)
    with pytest.raises(Broken, match=said.decode() or "3"):
        panes_of(Server())._source([["x"]])
    server = Server()
    server.problem = "no such pane"
    with pytest.raises(Broken, match="tmux kill-pane failed: no such pane"):
        panes_of(server)._do("kill-pane")


def test_a_role_is_shown_unless_the_name_says_it() -> None:
    for agent, role, shown in (
        ("ann", "agent", []),
        ("orchestrator", "orchestrator", []),
        ("boss", "orchestrator", ["orchestrator"]),
    ):
        server = Server(list_panes=["%1 @1 7 0 human"], display_message=["200 49"], split_window=["%2"])
        assert panes_of(server).place(agent, role) == "%2"

        assert [words[-1] for words in server.told if words[-2] == "@csp_agent"] == [agent]
        assert [words[-1] for words in server.told if words[-2] == "@csp_role"] == shown
        assert [words[0] for words in server.told].count("select-layout") == 1


def test_people_are_sent_back_to_where_they_came_from() -> None:
    server = Server(list_clients=["/dev/a mine", "/dev/b ", "/dev/c csp", "/dev/d csp-other"])
    panes_of(server).kill()

    assert [words for words in server.told if words[0] == "switch-client"] == [
        ("switch-client", "-c", "/dev/a", "-t", "=mine"),
        ("switch-client", "-c", "/dev/d", "-t", "=csp-other"),
    ]


def test_a_session_on_another_server_is_found_there(bare: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    panes = build(bare, "ann")
    home, name = panes.socket, panes.id
    bare.tmux("-L", "work", "new-session", "-d", "-s", "mine", "cat")
    work = bare.tmux("-L", "work", "display-message", "-p", "#{socket_path}").strip()
    monkeypatch.setenv("TMUX", f"{work},1,0")
    before = TmuxSession("default", bare.state)
    # A session of the same name over there is not the room's.
    bare.tmux("-L", "work", "new-session", "-d", "-s", "csp", "cat")
    found = TmuxSession("default", bare.state)

    assert (before.id, found.id, found.elsewhere) == (name, name, home)
    assert list(found.seats()) == ["human", "ann"]
    assert found.attach_line == f"tmux -S {home} attach -t csp"
    inside = ["env", "-u", "TMUX", "tmux", "-S", home, "attach-session", "-t", name]
    assert (found.attach_argv({"TMUX": work}), found.attach_argv({})) == (inside, inside[3:])
    found.kill()
    with pytest.raises(Refused, match="there is a tmux session 'csp' that is not the room's"):
        TmuxSession("default", bare.state)
    assert not (bare.state / "default.tmux").exists()
    bare.tmux("-L", "work", "kill-server")


def test_a_server_that_is_gone_is_not_waited_for(bare: Place) -> None:
    build(bare)
    bare.tmux("kill-server")

    assert (TmuxSession("default", bare.state).id, TmuxSession("default", bare.state).elsewhere) == ("", "")


def test_only_the_living_have_processes() -> None:
    rows = ["%1 @1 7 0 human", "%2 @1 8 1 ann", "%3 @1  1 -"]
    panes = panes_of(Server(list_panes=rows))

    assert panes.pids() == [7]
    assert {agent: (seat.pid, seat.is_dead) for agent, seat in panes.seats().items()} == {
        "human": (7, False),
        "ann": (8, True),
    }


def test_the_height_of_the_human_pane_is_left_alone_while_a_pane_is_zoomed(bare: Place) -> None:
    build(bare, "ann")
    bare.tmux("resize-pane", "-Z", "-t", str(bare.pane("ann")["id"]))
    bare.tmux("resize-window", "-t", "csp", "-x", "160", "-y", "60")

    assert bare.tmux("display-message", "-p", "-t", "csp", "#{window_zoomed_flag}") == "1\n"


def test_nobodys_identity_is_left_in_the_environment_of_the_session(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "mine", "cat")
    bare.tmux("set-environment", "-g", "CSP_AUTH_TOKEN", "of-somebody-else")
    build(bare)
    found = bare.tmux("show-environment", "-t", "csp").splitlines()

    assert {f"-{name}" for name in IDENTITY} <= set(found)


def test_a_server_that_we_start_knows_no_token(bare: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSP_AUTH_TOKEN", "the-token-of-a-room")
    monkeypatch.setenv("HEADER", "X-Auth-Token: the-token-of-a-room")
    build(bare)
    server = bare.tmux("display-message", "-p", "#{pid}").strip()

    assert "the-token-of-a-room" not in bare.tmux("show-environment", "-g")
    assert b"the-token-of-a-room" not in Path(f"/proc/{server}/environ").read_bytes()


def test_a_dead_socket_is_removed_and_a_living_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.panes.tmux_session._SERVER_END_S", 0.05)
    dead, living = tmp_path / "dead", tmp_path / "living"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(dead))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(living))
        server.listen(50)
        for path in (dead, living, tmp_path / "none"):
            remove_dead_socket(str(path))

        assert [path.name for path in tmp_path.iterdir()] == ["living"]


def test_a_session_is_named_after_its_room() -> None:
    assert (session_name("default"), session_name("other")) == ("csp", "csp-other")


def test_rooms_of_two_state_folders_differ() -> None:
    keys = {room_key(Path("/a"), "default"), room_key(Path("/b"), "default"), room_key(Path("/a"), "x")}

    assert len(keys) == 3
    assert room_key(Path("/a"), "x").startswith("x@")


def test_what_belongs_to_the_terminal_or_to_another_room_is_not_passed_on() -> None:
    env = {
        "HOME": "/h",
        "CSP_PORT": "0",
        "LANG": "C",
        "_private": "1",
        "PWD": "/x",
        "OLDPWD": "/x",
        "SHLVL": "2",
        "_": "x",
        "TERM": "xterm",
        "TERMCAP": "x",
        "COLUMNS": "1",
        "LINES": "1",
        "TERM_PROGRAM": "x",
        "TMUX": "x",
        "TMUX_PANE": "%1",
        "CSP_PANES": "x",
        "CSP_AUTH_TOKEN": "x",
        "CSP_AGENT": "x",
        "CSP_GATEWAY_URL": "x",
        "BASH_FUNC_f%%": "x",
        "1x": "y",
    }

    assert passed_on(env) == {"HOME": "/h", "CSP_PORT": "0", "LANG": "C", "_private": "1"}


# --- whose session it is --------------------------------------------------------------------------


def test_a_foreign_session_of_our_name_is_refused(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "csp", "cat")

    with pytest.raises(Refused, match="there is a tmux session 'csp' that is not the room's"):
        TmuxSession("default", bare.state)
    assert TmuxSession("other", bare.state).id == ""


def test_our_session_is_found_by_its_mark_whatever_its_name(bare: Place) -> None:
    built = build(bare, "ann")
    bare.tmux("rename-session", "-t", "csp", "mine")
    found = TmuxSession("default", bare.state)

    assert (found.id, list(found.seats())) == (built.id, ["human", "ann"])


def test_a_session_lives_on_without_anybody_looking(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "mine", "cat")
    bare.tmux("set-option", "-t", "mine", "destroy-unattached", "off")
    bare.tmux("set-option", "-g", "destroy-unattached", "on")
    build(bare, "ann")

    assert bare.tmux("show-options", "-v", "-t", "csp", "destroy-unattached") == "off\n"


def test_the_keys_of_a_room_are_keys_of_its_session_alone(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "mine", "cat")
    bare.tmux("bind-key", "-n", "M-x", "display-message", "mine")
    build(bare, "ann")

    assert bare.tmux("show-options", "-v", "-t", "csp", "key-table") == "csp\n"
    assert "F10" not in bare.tmux("list-keys", "-T", "root")
    ours = bare.tmux("list-keys", "-T", "csp")
    assert "F10" in ours and "M-x" in ours


def test_f10_comes_back_to_the_human_pane_from_every_window(bare: Place) -> None:
    build(bare, "ann", cols=80, rows=23)
    terminal = attach(bare, rows=24, cols=80)
    bare.tmux("select-window", "-t", "csp:1")
    terminal.send("\x1b[21~")

    bare.wait(
        lambda: bare.tmux("display-message", "-p", "-t", "csp", "#{@csp_agent}") == "human\n",
        "the human pane",
    )
    terminal.close(force=True)


def test_f11_shows_a_pane_in_full_size_and_back(bare: Place) -> None:
    build(bare, "ann")
    terminal = attach(bare)
    for expected in ("1\n", "0\n"):
        terminal.send("\x1b[23~")
        bare.wait(
            lambda: bare.tmux("display-message", "-p", "-t", "csp", "#{window_zoomed_flag}") == expected,  # noqa: B023
            expected,
        )
    terminal.close(force=True)


# --- panes ----------------------------------------------------------------------------------------


def test_the_human_pane_stands_at_the_left_of_a_wide_window(bare: Place) -> None:
    build(bare, "ann", "ben")
    human, ann, ben = bare.panes()

    assert (human["cols"], human["rows"], human["left"], human["top"]) == (90, 48, 0, 1)
    assert ann["left"] == ben["left"] == 91 and ann["top"] < ben["top"] and ann["cols"] == 109


def test_the_human_pane_lies_across_the_top(bare: Place) -> None:
    build(bare, "ann", "ben", cols=120, rows=39)
    human, ann, ben = bare.panes()

    assert [pane["agent"] for pane in (human, ann, ben)] == ["human", "ann", "ben"]
    assert (human["cols"], human["rows"], human["left"], human["top"]) == (120, 14, 0, 1)
    assert ann["top"] == ben["top"] == 16 and ann["left"] < ben["left"] and ann["cols"] == 60
    assert bare.tmux("display-message", "-p", "-t", "csp:0", "#{window_name}") == "chat\n"


def test_who_has_no_place_gets_a_further_window(bare: Place) -> None:
    panes = build(bare, *SEVEN, cols=100, rows=23)
    assert windows(bare) == [["human", *SEVEN[:4]], [*SEVEN[4:]]]
    for window in ("csp:0", "csp:1"):
        for name, value in (("remain-on-exit", "on"), ("pane-border-status", "top"), ("allow-rename", "off")):
            assert bare.tmux("show-options", "-wv", "-t", window, name) == f"{value}\n", window
    bare.tmux("select-window", "-t", "csp:1")

    socket = panes.socket
    assert panes.attach_argv({}) == ["tmux", "attach-session", "-t", panes.id]
    assert bare.tmux("display-message", "-p", "-t", "csp", "#{window_index}") == "0\n"
    assert panes.attach_argv({"TMUX": f"{socket},1,0"}) == ["tmux", "switch-client", "-t", panes.id]


def test_the_human_pane_keeps_its_share_when_the_window_changes(bare: Place) -> None:
    build(bare, "ann", cols=120, rows=39)
    for rows, expected in ((90, (35, 36)), (23, (8, 9))):
        bare.tmux("resize-window", "-t", "csp", "-x", "140", "-y", str(rows))

        bare.wait(lambda: bare.pane("human")["rows"] in expected, f"{expected}")  # noqa: B023


def test_a_human_pane_that_was_closed_comes_back_on_top(bare: Place) -> None:
    panes = build(bare, "ann", "ben", cols=120, rows=39)
    bare.tmux("kill-pane", "-t", str(bare.pane("human")["id"]))
    panes.place_human()
    human, ann, ben = bare.panes()

    assert [pane["agent"] for pane in (human, ann, ben)] == ["human", "ann", "ben"]
    assert (human["cols"], human["rows"], human["top"]) == (120, 14, 1)
    bare.tmux("resize-window", "-t", "csp", "-x", "140", "-y", "90")
    bare.wait(lambda: bare.pane("human")["rows"] in (35, 36), "two fifths")


def test_a_pane_that_is_closed_leaves_its_place_to_the_others(bare: Place) -> None:
    panes = build(bare, "ann", "ben", "cid", cols=120, rows=39)
    panes.close(panes.seats()["ben"])

    assert [pane["agent"] for pane in bare.panes()] == ["human", "ann", "cid"]
    assert abs(bare.pane("ann")["cols"] - bare.pane("cid")["cols"]) <= 1


def test_the_last_pane_of_a_further_window_can_be_closed(bare: Place) -> None:
    panes = build(bare, *SEVEN[:5], cols=100, rows=23)
    panes.close(panes.seats()[SEVEN[4]])

    assert windows(bare) == [["human", *SEVEN[:4]]]


def test_a_command_runs_in_its_directory_with_an_odd_environment(bare: Place) -> None:
    odd = 'a "b" $HOME\n#{pane_id} ~ ünï \\ ;\t\x01'
    place = bare.folder / "o#{pane_id} dir"
    place.mkdir()
    bare.tmux("new-session", "-d", "-s", "mine", "cat")
    panes = TmuxSession("default", bare.state)
    env = {**bare.env, "CSP_TEST_ODD": odd, "CSP_AUTH_TOKEN": "secret-of-the-room"}
    panes.open(Size(cols=200, rows=49), bare.dir, env)
    pane = panes.place("ann", "agent")
    out = bare.folder / "env"
    script = "import os, sys; open(sys.argv[1], 'w').write(repr((dict(os.environ), os.getcwd())))"
    panes.run(pane, [sys.executable, "-c", script, str(out)], place, {"MINE": odd})
    bare.wait(lambda: panes.seats()["ann"].is_dead, "its end")
    found, where = ast.literal_eval(out.read_text())

    assert (found["CSP_TEST_ODD"], found["MINE"], Path(where)) == (odd, odd, place)
    assert "CSP_AUTH_TOKEN" not in found
    assert found["CSP_PANES"] == room_key(bare.state, "default")
    assert panes.seats()["human"].pid in panes.pids()
    assert len(panes.pids()) == 1


def test_the_last_words_of_a_pane_are_not_tmuxs_own(bare: Place) -> None:
    panes = build(bare, "ann")
    pane = panes.seats()["ann"].pane
    assert panes.last_line(pane) == ""
    # When tmux says that a program has ended is up to tmux, so the program says the same.
    ended = "ann ended (3); start it: csp up"
    script = f"echo first; echo '  no key here'; echo '{ended}'; exec sleep 600"
    panes.run(pane, ["sh", "-c", script], bare.dir)
    bare.wait(lambda: ended in bare.screen("ann"), "what tmux says")

    assert panes.last_line(pane) == "no key here"


def test_a_state_is_left_to_the_human_pane_once_that_shows_one(bare: Place) -> None:
    panes = build(bare, "ann")
    pane = panes.seats()["ann"].pane
    shown = []
    for before, word in (("", "starting"), ("starting", "idle"), ("busy", "idle")):
        bare.tmux("set-option", "-p", "-t", pane, "@csp_state", before)
        panes.set_state(pane, word)
        shown.append(bare.pane("ann")["state"])

    assert shown == ["starting", "idle", "busy"]


# --- what is the user's ---------------------------------------------------------------------------


def test_nothing_of_the_users_server_is_changed(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "mine", "cat")
    asks = (
        ("show-options", "-s"),
        ("show-options", "-g"),
        ("show-options", "-gw"),
        ("show-hooks", "-g"),
        ("show-environment", "-g"),
        ("list-keys",),
        ("show-options", "-t", "mine"),
    )
    before = [bare.tmux(*ask) for ask in asks]
    panes = build(bare, "ann")
    panes.kill()

    assert [bare.tmux(*ask) for ask in asks] == before


def test_the_users_own_status_line_stays_behind_the_mode(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "mine", "cat")
    bare.tmux("set-option", "-g", "status-right", "own text")
    TmuxSession("a-room-with-a-long-name", bare.state).open(Size(cols=200, rows=49), bare.dir, bare.env)
    session = "csp-a-room-with-a-long-name"
    left = bare.tmux("display-message", "-p", "-t", session, "#{T;=/#{status-left-length}:status-left}")

    assert left.strip() == f"[{session}]"
    assert bare.tmux("display-message", "-p", "-t", session, "#{T:status-right}") == "own text\n"
    assert bare.tmux("show-options", "-v", "-t", session, "status-right-length") == "100\n"


def test_the_end_of_the_session_is_not_that_of_the_server(bare: Place) -> None:
    bare.tmux("new-session", "-d", "-s", "mine", "-x", "120", "-y", "40", "cat")
    panes = build(bare, "ann")
    client = attach(bare, "mine", rows=40, cols=120)
    name = bare.tmux("list-clients", "-F", "#{client_name}").strip()
    bare.tmux("switch-client", "-c", name, "-t", "csp")
    panes.kill()

    assert panes.id == ""
    assert (panes.seats(), panes.pids()) == ({}, [])
    assert bare.attached() == ["mine"]
    assert bare.tmux("list-sessions", "-F", "#{session_name}") == "mine\n"
    client.close(force=True)


def test_the_server_ends_with_its_last_session_and_leaves_no_socket(bare: Place) -> None:
    panes = build(bare, "ann")
    path = Path(bare.tmux("display-message", "-p", "#{socket_path}").strip())
    assert path.is_socket()
    panes.kill()

    assert not path.exists()


def test_inside_tmux_the_size_is_that_of_the_client(bare: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    panes = build(bare, "ann")
    assert panes.client_size({}) is None
    client = attach(bare, rows=40, cols=120)
    path = bare.tmux("display-message", "-p", "#{socket_path},#{pid},0").strip()
    monkeypatch.setitem(os.environ, "TMUX", path)

    assert panes.client_size(os.environ) == Size(cols=120, rows=39)
    client.close(force=True)
