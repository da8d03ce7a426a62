"""What `csp up` and `csp add` decide before anything is started."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

from csp.config import AgentSpec, Settings
from csp.errors import BadInput, CspError, Refused
from csp.panes import room_processes, up
from csp.panes.members import CSP, MemberRequest, PaneMember
from csp.panes.resume_state import SavedConversation, load_conversations, save_conversations
from csp.panes.room_processes import RoomProcesses
from csp.panes.tmux_session import DEFAULT_SIZE, AgentPane
from csp.panes.up import AddAgents, OpenRoom, plan, sidecar_argv
from csp.panes.wait_ready import StartOutcome
from csp.room_registry import Address, RunningRoom
from csp.sidecar.run_record import SidecarRecord, agents_dir
from csp.terminal.pane_layout import Size


def member(name: str, **more: Any) -> PaneMember:
    fields: dict[str, Any] = {"name": name, "agent": name.lower(), "command": ("cat",), "cwd": Path("/p")}
    return PaneMember(**fields | more)


class FakePanes:
    """Keeps what would be done to the panes."""

    def __init__(self, *seats: AgentPane) -> None:
        self.id = "$1"
        self.name = "csp"
        self.socket, self.attach_line = "/tmux/default", "tmux attach -t csp"
        self.by_agent = {seat.agent: seat for seat in seats}
        self.ran: list[tuple[str, list[str], Path]] = []
        self.envs: list[dict[str, str]] = []
        self.placed: list[tuple[str, str]] = []
        self.shown: list[tuple[str, str]] = []

    def seats(self) -> dict[str, AgentPane]:
        return self.by_agent

    def place(self, agent: str, role: str) -> str:
        self.placed.append((agent, role))
        return f"%{agent}"

    def place_human(self) -> str:
        self.placed.append(("human", ""))
        return "%human"

    def run(self, pane: str, argv: list[str], dir: Path, env: dict[str, str] | None = None) -> None:
        self.ran.append((pane, list(argv), dir))
        self.envs.append(env or {})

    def save_socket(self) -> None:
        pass

    def set_state(self, pane: str, word: str) -> None:
        self.shown.append((pane, word))


class FakeGateway:
    """Answers with what a test wants; keeps what it is told with whose token."""

    agents: ClassVar[list[dict[str, Any]]] = []
    mode: ClassVar[Any] = {}
    posts: ClassVar[list[tuple[str, str, Any]]] = []

    def __init__(self, url: str, token: str) -> None:
        self._token = token

    def get(self, path: str) -> Any:
        if isinstance(self.mode, CspError):
            raise self.mode
        return self.agents if path == "/agents" else self.mode

    def post(self, path: str, body: Any) -> Any:
        self.posts.append((self._token, path, body))


@pytest.fixture(autouse=True)
def gateway(monkeypatch: pytest.MonkeyPatch) -> type[FakeGateway]:
    monkeypatch.setattr(FakeGateway, "agents", [])
    monkeypatch.setattr(FakeGateway, "mode", {})
    monkeypatch.setattr(FakeGateway, "posts", [])
    for module in (up, room_processes):
        monkeypatch.setattr(module, "GatewayClient", FakeGateway)
    return FakeGateway


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "state").mkdir(mode=0o700)
    return Settings(state_dir=tmp_path / "state", history_dir=tmp_path / "history")


def seat(agent: str, *, is_dead: bool = False) -> AgentPane:
    return AgentPane(pane=f"%{agent}", window="@0", agent=agent, pid=7, is_dead=is_dead)


def running(tmp_path: Path) -> RunningRoom:
    history = tmp_path / "history" / "default"
    history.mkdir(parents=True, exist_ok=True)
    return RunningRoom(
        room="default", url="http://x:1", token="room", pid=1, dir=tmp_path, history=history, started=0.0
    )


def open_with(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    panes: FakePanes,
    room: RunningRoom | None,
    **wish: Any,
) -> tuple[OpenRoom, list[str]]:
    monkeypatch.setattr(up, "TmuxSession", lambda *_: panes)
    told: list[str] = []
    dir = settings.state_dir.parent
    made = OpenRoom(settings, MemberRequest(**{"dir": dir} | wish), dir, {}, lambda _: None, told.append)
    made._room = room
    return made, told


def save_run(settings: Settings, agent: str, *, pid: int = 1 << 22, room_id: str = "r-1") -> None:
    folder = agents_dir(settings.state_dir, "default") / agent
    folder.mkdir(parents=True)
    SidecarRecord(
        name=agent,
        agent=agent,
        token=f"token of {agent}",
        url="u",
        room="default",
        role="agent",
        pid=pid,
        profile="/p/generic.toml",
        argv=[],
        env={},
        cwd="/p",
        folder=str(folder),
        started=0.0,
        room_id=room_id,
    ).save(folder)


# --- the command of a pane ------------------------------------------------------------------------


def test_the_pane_of_an_agent_runs_its_sidecar() -> None:
    assert sidecar_argv(member("Ann"), "r", ("cat", "-u")) == [
        *(*CSP, "sidecar", "--room", "r", "--name", "Ann", "--", "cat", "-u")
    ]
    boss = member("Boss", profile="claude", role="orchestrator")
    assert sidecar_argv(boss, "r", ("claude",)) == [
        *(*CSP, "sidecar", "--room", "r", "--name", "Boss", "--profile", "claude"),
        *("--role", "orchestrator", "--", "claude"),
    ]
    model = member("gpt", provider="openai")
    assert sidecar_argv(model, "r", (*CSP, "agent", "--name", "gpt")) == [
        *(*CSP, "agent", "--name", "gpt", "--room", "r")
    ]


def test_a_role_and_a_prompt_reach_the_sidecar(settings: Settings) -> None:
    ann = member("Ann", duty="reviewer", prompt="Find mistakes.")
    processes = RoomProcesses(settings.state_dir, "r")
    path = processes.save_prompt(ann)

    assert (Path(path).read_text(), Path(path).stat().st_mode & 0o777) == ("Find mistakes.", 0o600)
    assert Path(path).parent == processes.agents_dir
    assert processes.save_prompt(member("Bob")) == ""
    words = ["--duty", "reviewer", "--prompt-file", path]
    assert sidecar_argv(ann, "r", ("cat",), path)[-6:] == [*words, "--", "cat"]
    model = replace(ann, provider="openai")
    assert sidecar_argv(model, "r", ("csp", "agent"), path) == ["csp", "agent", *words, "--room", "r"]


# --- the plan -------------------------------------------------------------------------------------


def test_the_plan_shares_the_agents_out_over_windows(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    monkeypatch.setattr(up, "TmuxSession", lambda *_: FakePanes())
    specs = tuple(AgentSpec(name=f"a{number}", command=("cat",)) for number in range(7))
    settings = replace(settings, agents=specs, room="other")
    found = plan(settings, MemberRequest(dir=tmp_path), dict(os.environ), (100, 24))

    assert found["windows"] == [["human", "a0", "a1", "a2", "a3"], ["a4", "a5", "a6"]]
    assert (found["session"], found["size"], found["dir"]) == ("csp-other", [100, 23], str(tmp_path))
    assert found["history"] == str(tmp_path / "history" / "other")
    assert found["agents"][0] == {
        "id": "a0",
        "role": "agent",
        "duty": None,
        "profile": None,
        "command": "cat",
        "cwd": str(tmp_path),
        "worktree": False,
        "provider": None,
    }
    assert plan(settings, MemberRequest(dir=tmp_path), dict(os.environ), None)["size"] == [200, 49]


def test_the_plan_fails_where_a_worktree_cannot_be_made(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    monkeypatch.setattr(up, "TmuxSession", lambda *_: FakePanes())
    settings = replace(settings, agents=(AgentSpec(name="ann", command=("cat",), worktree=True),))
    with pytest.raises(BadInput, match="a worktree needs a git repository"):
        plan(settings, MemberRequest(dir=tmp_path), dict(os.environ), None)


def test_a_history_that_is_a_file_is_refused(settings: Settings, tmp_path: Path) -> None:
    up.check_history(settings)
    (tmp_path / "history").mkdir()
    up.check_history(settings)
    (tmp_path / "history" / "default").write_text("")
    (tmp_path / "history" / "default").chmod(0o700)
    with pytest.raises(Refused, match=r"history/default' cannot be written"):
        up.check_history(settings)


def test_a_history_must_let_its_user_make_files(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    asked: list[int] = []
    monkeypatch.setattr("csp.panes.up.os.access", lambda path, mode: asked.append(mode))
    with pytest.raises(Refused, match="cannot be written"):
        up.check_history(settings)

    assert asked == [os.W_OK | os.X_OK]


# --- who takes part -------------------------------------------------------------------------------


def test_a_second_up_keeps_to_those_of_the_first(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    RoomProcesses(settings.state_dir, "default").save_lineup((member("ann"), member("Ben")))
    settings = replace(settings, agents=(AgentSpec(name="cid", command=("cat",)),))
    env = {"PATH": os.environ["PATH"]}
    for wish, everybody, wanted in (
        ({}, ["ann", "ben"], ["ann", "ben"]),
        ({"only": ("Ben",)}, ["ann", "ben"], ["ben"]),
        ({"only": ("cid",)}, ["cid", "ann", "ben"], ["cid"]),
    ):
        made, _ = open_with(monkeypatch, settings, FakePanes(), running(tmp_path), **wish)
        made._env = env
        found = made.members()

        assert [one.agent for one in found] == everybody, wish
        assert [one.agent for one in made.wanted(found)] == wanted, wish


def test_the_lineup_of_a_room_that_is_gone_does_not_count(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    RoomProcesses(settings.state_dir, "default").save_lineup((member("ann"),))
    panes = FakePanes()
    panes.id = ""
    made, told = open_with(monkeypatch, settings, panes, None)
    made._env = {"PATH": "/nowhere"}

    assert [one.agent for one in made.members()] == ["ada", "bob", "cy"]
    assert told[-1].startswith("none of claude, codex, gemini is installed")


@pytest.mark.parametrize(
    ("has_panes", "has_room", "said"),
    [
        (True, False, ["the gateway of room default is gone; starting it again"]),
        (False, True, ["the gateway of room default is up, but its panes are gone; recreating them"]),
        (False, False, []),
    ],
)
def test_what_is_found_is_said(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    tmp_path: Path,
    has_panes: bool,
    has_room: bool,
    said: list[str],
) -> None:
    panes = FakePanes()
    panes.id = "$1" if has_panes else ""
    made, told = open_with(monkeypatch, settings, panes, running(tmp_path) if has_room else None)
    made.report_found()

    assert told == said


# --- who is started -------------------------------------------------------------------------------


def test_only_the_missing_the_dead_and_the_removed_are_started(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, gateway: type[FakeGateway]
) -> None:
    for name, room_id in (("gone", "r-1"), ("young", "")):
        save_run(settings, name, pid=os.getpid(), room_id=room_id)
    gateway.agents = [{"id": "here", "online": True}, {"id": "dead", "online": False}]
    panes = FakePanes(
        *(seat(name) for name in ("human", "here", "gone", "young")), seat("dead", is_dead=True)
    )
    made, _ = open_with(monkeypatch, settings, panes, running(tmp_path))
    made.seat([member(name) for name in ("here", "dead", "gone", "young", "new")])

    assert [pane for pane, _, _ in panes.ran] == ["%dead", "%gone", "%new"]
    assert panes.placed == [("new", "agent")]


@pytest.mark.parametrize("seats", [(), (seat("human", is_dead=True),)])
def test_a_human_pane_that_is_missing_is_started(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, seats: tuple[AgentPane, ...]
) -> None:
    panes = FakePanes(*seats)
    made, _ = open_with(monkeypatch, settings, panes, running(tmp_path))
    made.seat([])

    assert panes.ran == [("%human", [*CSP, "chat", "--room", "default"], tmp_path)]
    assert panes.placed == ([] if seats else [("human", "")])


def test_good_bye_is_said_for_those_who_went_without_it(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, gateway: type[FakeGateway]
) -> None:
    save_run(settings, "ann")
    save_run(settings, "ben", pid=os.getpid())
    gateway.agents = [{"id": name, "online": name != "cid"} for name in ("ann", "ben", "cid", "dan")]
    known = {
        name: SavedConversation(profile="p", cwd="/p", token=f"token of {name}")
        for name in ("ann", "ben", "cid")
    }
    made, _ = open_with(monkeypatch, settings, FakePanes(), running(tmp_path))
    made.free_ids(["ann", "ben", "cid", "dan"], known)

    assert gateway.posts == [("token of ann", "/state", {"state": "offline"})]


def test_a_cli_that_ends_over_its_old_conversation_starts_anew(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    room = running(tmp_path)
    panes = FakePanes(seat("ann", is_dead=True), seat("ben"), seat("cid", is_dead=True))
    made, told = open_with(monkeypatch, settings, panes, room)
    made._resumed = {"ann", "ben"}
    path = made.conversations
    save_conversations(path, {"ann": SavedConversation(profile="p", cwd="/p", token="t", session="s")})
    members = [member(name) for name in ("ann", "ben", "cid")]
    outcomes = [StartOutcome(name, "offline", "it has ended") for name in ("ann", "ben", "cid")]

    assert made.restart_failed(members, outcomes)
    assert told == ["ann could not continue its conversation; it starts a new one"]
    assert [pane for pane, _, _ in panes.ran] == ["%ann"]
    assert load_conversations(path)["ann"].session == ""
    assert not made.restart_failed(members, [StartOutcome("ann", "idle")])


def test_a_conversation_that_is_gone_on_with_is_noted(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    made, _ = open_with(monkeypatch, settings, FakePanes(seat("human")), running(tmp_path))
    old = tmp_path / "t.jsonl"
    old.write_text("{}")
    talk = SavedConversation(profile="claude", cwd="/p", token="t", session="s-1", transcript=str(old))
    save_conversations(made.conversations, {"ann": talk})
    made.seat([member("ann", command=("claude",), profile="claude"), member("ben")])

    assert made._resumed == {"ann"}
    assert "--resume" in cast(FakePanes, made.panes).ran[0][1]


@pytest.mark.parametrize(
    ("mode", "word"),
    [
        ({"mode": "debate", "turnOrder": ["ann"], "waitingFor": ["ann"]}, "YOUR TURN"),
        ({"mode": "freeform"}, "idle"),
        (Refused("gone again"), "idle"),
    ],
)
def test_the_border_says_whose_turn_it_is_from_the_first(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    tmp_path: Path,
    gateway: type[FakeGateway],
    mode: Any,
    word: str,
) -> None:
    class Waits:
        def run(self, agents: list[str], show: object) -> list[StartOutcome]:
            return [StartOutcome(agent, "idle") for agent in agents]

    monkeypatch.setattr(up, "ReadyWait", lambda *_: Waits())
    monkeypatch.setattr(room_processes, "running_room", lambda *_: running(tmp_path))
    gateway.mode = mode
    panes = FakePanes(seat("ann"))
    made, _ = open_with(monkeypatch, settings, panes, running(tmp_path))
    made.wait([member("ann"), member("nowhere")])

    assert panes.shown == [("%ann", word)]


# --- from the start to the end --------------------------------------------------------------------


class Opened:
    """Opens a room whose parts are all made up; keeps what was done, in its order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> None:
        self.done: list[Any] = []
        self.panes = FakePanes()
        self.found: RunningRoom | None = None
        self.outcomes = [[StartOutcome("ann", "idle")]]
        self.has_lost_supervisor = False
        room = running(tmp_path)
        monkeypatch.setattr(up, "find_running", lambda *_: self.found)
        monkeypatch.setattr(
            up, "start_gateway", lambda *_, reach: self._do(" ".join(("gateway", *reach)), room)
        )
        monkeypatch.setattr(up, "open_to_lan", lambda *args: self._do(f"lan {args[2]}", room))
        monkeypatch.setattr(up, "has_lost_supervisor", lambda room: self.has_lost_supervisor)
        monkeypatch.setattr(up, "supervise_again", lambda *_: self._do("supervised", replace(room, pid=2)))
        monkeypatch.setattr(up, "TmuxSession", lambda *_: self.panes)
        monkeypatch.setattr(OpenRoom, "seat", lambda _, members: self.done.append([*members]))
        monkeypatch.setattr(OpenRoom, "wait", lambda _, members: self.outcomes.pop(0))
        monkeypatch.setattr(OpenRoom, "restart_failed", lambda _, members, outcomes: bool(self.outcomes))
        monkeypatch.setattr(OpenRoom, "save", lambda _: self.done.append("saved"))
        settings = replace(
            settings, agents=tuple(AgentSpec(name=name, command=("cat",)) for name in ("ann", "ben"))
        )
        self.sizes: list[Size | None] = [None]
        self.told: list[str] = []
        self.opening = OpenRoom(
            settings,
            MemberRequest(dir=tmp_path),
            tmp_path,
            dict(os.environ),
            lambda _: None,
            self.told.append,
        )

        def open_panes(size: Size, dir: Path, env: Any, form: object) -> None:
            self.done.append(size)

        monkeypatch.setattr(self.panes, "open", open_panes, raising=False)
        monkeypatch.setattr(self.panes, "client_size", lambda env: self.sizes[0], raising=False)

    def _do(self, what: str, room: RunningRoom) -> RunningRoom:
        self.done.append(what)
        return room


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path) -> Opened:
    return Opened(monkeypatch, settings, tmp_path)


@pytest.mark.parametrize(
    ("terminal", "client", "size"),
    [
        (None, None, DEFAULT_SIZE),
        (None, Size(cols=70, rows=7), DEFAULT_SIZE),
        ((120, 40), None, Size(cols=120, rows=39)),
        ((120, 40), Size(cols=70, rows=7), Size(cols=70, rows=7)),
        ((120, 1), None, Size(cols=120, rows=1)),
    ],
)
def test_a_new_room_is_as_large_as_its_terminal(
    opened: Opened, terminal: tuple[int, int] | None, client: Size | None, size: Size
) -> None:
    opened.panes.id, opened.sizes = "", [client]
    opened.opening.start(terminal)
    assert opened.opening.finish() == [StartOutcome("ann", "idle")]
    gateway, made, members, saved = opened.done

    assert (gateway, made, saved) == ("gateway", size, "saved")
    assert [one.agent for one in members] == ["ann", "ben"]
    where = {"session": "csp", "socket": "/tmux/default", "attach": "tmux attach -t csp"}
    assert opened.opening.summary() == {"room": "default", "url": "http://x:1", **where}
    assert opened.opening._is_new


def test_a_room_that_is_up_is_joined(opened: Opened, tmp_path: Path) -> None:
    opened.found = running(tmp_path)
    opened.opening.start(None)
    opened.opening.finish()

    assert [what for what in opened.done if isinstance(what, str | Size)] == ["saved"]
    assert opened.told == [f"room default is already running in {tmp_path}; joining it"]
    assert not opened.opening._is_new


def test_who_starts_anew_is_waited_for_again(opened: Opened) -> None:
    opened.outcomes.append([StartOutcome("ann", "busy")])

    opened.opening.start(None)
    assert opened.opening.finish() == [StartOutcome("ann", "busy")]


def test_a_new_room_is_reached_as_it_was_asked_for(opened: Opened) -> None:
    opened.opening._reach = ("--insecure",)
    opened.opening.start(None)

    assert opened.done[0] == "gateway --insecure"


def test_an_open_room_is_opened_to_a_network_and_not_changed_otherwise(
    opened: Opened, tmp_path: Path
) -> None:
    opened.found = replace(running(tmp_path), options="--insecure")
    for reach, did, told in (
        (("--lan", "10.0.0.7"), ["lan 10.0.0.7"], []),
        (("--insecure",), [], []),
        ((), [], []),
        (
            ("--tls-cert", "a"),
            [],
            ["room default keeps its addresses (to change them: csp down, then csp up)"],
        ),
    ):
        opened.opening._reach, opened.done[:], opened.told[:] = reach, [], []
        opened.opening.start(None)

        assert [what for what in opened.done if isinstance(what, str)] == did
        assert [line for line in opened.told if "addresses" in line] == told


@pytest.mark.parametrize("is_there", [True, False])
def test_a_lost_supervisor_comes_back_where_the_room_still_has_its_place(
    opened: Opened, tmp_path: Path, is_there: bool
) -> None:
    opened.found = replace(running(tmp_path), dir=tmp_path if is_there else tmp_path / "gone")
    opened.has_lost_supervisor = True
    opened.opening.start(None)
    opened.opening.finish()

    assert ("supervised" in opened.done) == is_there
    assert [line.split(";")[0] for line in opened.told][:1] == (
        ["the supervisor of room default is gone"]
        if is_there
        else [f"room default is already running in {tmp_path}/gone"]
    )


def test_all_who_take_part_are_remembered_and_not_only_those_named_now(
    opened: Opened, settings: Settings, tmp_path: Path
) -> None:
    processes = RoomProcesses(settings.state_dir, "default")
    processes.save_lineup((member("ann"), member("ben")))
    opened.found = running(tmp_path)
    opened.opening._wish = MemberRequest(dir=tmp_path, only=("ben",))
    opened.opening.start(None)
    opened.opening.finish()

    assert [[one.agent for one in what] for what in opened.done if isinstance(what, list)] == [["ben"]]
    assert [one.agent for one in processes.lineup()] == ["ann", "ben"]


def test_an_agent_works_in_its_worktree_if_it_has_one(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def ensure(dir: Path, history: Path, room: str, agent: str, env: Any) -> Path:
        asked.append((dir, history, room, agent))
        return tmp_path / "copy"

    monkeypatch.setattr(up, "ensure_worktree", ensure)
    made = opened.opening
    assert made.place(member("ann")) == member("ann")
    assert made.place(member("ben", worktree=True)).cwd == tmp_path / "copy"
    made._room = replace(running(tmp_path), history=tmp_path / "elsewhere")
    made.place(member("ben", worktree=True))

    assert asked == [
        (Path("/p"), tmp_path / "history" / "default", "default", "ben"),
        (Path("/p"), tmp_path / "elsewhere", "default", "ben"),
    ]


def test_a_new_session_starts_its_human_pane(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, gateway: type[FakeGateway]
) -> None:
    panes = FakePanes(seat("human"))
    made, _ = open_with(monkeypatch, settings, panes, running(tmp_path))
    made.seat([])
    assert panes.ran == []
    made._is_new = True
    made.seat([])

    assert [argv for _, argv, _ in panes.ran] == [[*CSP, "chat", "--room", "default"]]


def test_a_start_says_good_bye_for_whom_it_starts_and_goes_on_with_their_talk(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, gateway: type[FakeGateway]
) -> None:
    save_run(settings, "ann")
    gateway.agents = [{"id": "ann", "online": True}]
    old = tmp_path / "t.jsonl"
    old.write_text("{}")
    panes = FakePanes(seat("human"), seat("ann", is_dead=True))
    made, _ = open_with(monkeypatch, settings, panes, running(tmp_path))
    known = SavedConversation(profile="claude", cwd="/p", token="old", session="s-1", transcript=str(old))
    monkeypatch.setattr(up, "conversations_of", lambda *_: {"ann": known})
    made.seat([member("ann", command=("claude",), profile="claude")])

    assert gateway.posts == [("old", "/state", {"state": "offline"})]
    assert panes.ran[0][1][-3:] == ["claude", "--resume", "s-1"]


# --- add ------------------------------------------------------------------------------------------


def joining(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, panes: FakePanes, room: RunningRoom | None
) -> AddAgents:
    class Waits:
        def run(self, agents: list[str], show: object) -> list[StartOutcome]:
            return [StartOutcome(agent, "busy") for agent in agents]

    monkeypatch.setattr(up, "TmuxSession", lambda *_: panes)
    monkeypatch.setattr(room_processes, "running_room", lambda *_: room)
    monkeypatch.setattr(up, "ReadyWait", lambda *_: Waits())
    return AddAgents(settings, Address(url="u", token="t", room="default"), lambda _: None)


@pytest.mark.parametrize(
    ("online", "problem", "hint"),
    [
        (True, "ann is already in the room", "choose another name, such as ann-3"),
        (
            False,
            "ann still has a pane",
            "start it again: csp restart ann; or close its pane: csp remove ann --end",
        ),
    ],
)
def test_a_taken_name_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    tmp_path: Path,
    gateway: type[FakeGateway],
    online: bool,
    problem: str,
    hint: str,
) -> None:
    gateway.agents = [{"id": "ann", "online": online}, {"id": "ann-2", "online": True}]
    panes = FakePanes(seat("human"), seat("ann", is_dead=not online))
    room = joining(monkeypatch, settings, panes, running(tmp_path))
    with pytest.raises(Refused) as caught:
        room.add(member("ann"))

    assert (caught.value.message, caught.value.hint) == (problem, hint)
    assert (panes.placed, panes.ran) == ([], [])


def test_an_added_agent_may_get_the_next_free_name_and_is_remembered(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, gateway: type[FakeGateway]
) -> None:
    gateway.agents = [{"id": "ann", "online": True}, {"id": "ann-3", "online": False}]
    panes = FakePanes(seat("human"), seat("ann-2", is_dead=True))
    RoomProcesses(settings.state_dir, "default").save_lineup((member("ann"),))
    room = joining(monkeypatch, settings, panes, running(tmp_path))
    outcome = room.add(member("ann", role="orchestrator"), {"KEY": "secret"}, may_number=True)

    assert (outcome, room.dir) == (StartOutcome("ann-3", "busy"), tmp_path)
    assert panes.placed == [("ann-3", "orchestrator")]
    assert panes.ran[0][1][-4:] == ["--role", "orchestrator", "--", "cat"]
    assert panes.envs == [{"KEY": "secret"}]
    assert [one.agent for one in RoomProcesses(settings.state_dir, "default").lineup()] == ["ann", "ann-3"]
    assert panes.shown == [("%ann-3", "busy")]


def test_an_agent_added_to_a_room_of_worktrees_gets_its_own(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    made: list[tuple[Path, Path, str, str]] = []

    def ensure(dir: Path, history: Path, room: str, agent: str, env: object) -> Path:
        made.append((dir, history, room, agent))
        return Path("/tree")

    monkeypatch.setattr(up, "ensure_worktree", ensure)
    panes = FakePanes(seat("human"), seat("ann"))
    settings = replace(settings, worktrees=True, sources={"worktrees": "csp.toml"})
    joining(monkeypatch, settings, panes, running(tmp_path)).add(member("ann"), may_number=True)

    assert made == [(Path("/p"), tmp_path / "history" / "default", "default", "ann-2")]
    assert panes.ran[0][2] == Path("/tree")
    saved = RoomProcesses(settings.state_dir, "default").lineup()
    # Its directory is what the worktree is made from at the next start.
    assert [(one.agent, one.worktree, one.cwd) for one in saved] == [("ann-2", True, Path("/p"))]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (
            True,
            "the room is open, so bob cannot change directory"
            " (to move them: csp down, then csp up --worktrees)",
        ),
        (
            False,
            "the room is open, so ann cannot change directory"
            " (to move them: csp down, then csp up --no-worktrees)",
        ),
    ],
)
def test_agents_of_an_open_room_do_not_move(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path, wanted: bool, told: str
) -> None:
    panes = FakePanes(seat("ann"), seat("bob"))
    before = (member("ann", worktree=True), member("bob"), member("gpt", provider="openai"))
    RoomProcesses(settings.state_dir, "default").save_lineup(before)
    for source, expected in (("--worktrees", [told]), ("csp.toml", []), ("default", [])):
        changed = replace(settings, worktrees=wanted, sources={"worktrees": source})
        opening, said = open_with(monkeypatch, changed, panes, running(tmp_path))

        assert opening.members() == before
        assert said == expected


def test_nothing_is_added_to_a_room_without_panes(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    bare = FakePanes()
    bare.id = ""
    for panes, room in ((bare, running(tmp_path)), (FakePanes(), None)):
        with pytest.raises(Refused, match="room 'default' has no panes"):
            joining(monkeypatch, settings, panes, room)
