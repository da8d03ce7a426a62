"""csp up and csp down: what was asked for, what is said about it."""

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.cli import up
from csp.cli.verb_call import VerbCall
from csp.config import Settings, earlier_rooms, load_settings
from csp.errors import BadInput, Refused
from csp.panes.down import EndReport
from csp.panes.processes import Process
from csp.project import claims_folder, read_claims
from csp.room_registry import RunningRoom, claim, remove_room, write_room
from tests.cli.recording import call_of, with_settings


def test_what_was_wished_for_is_passed_on(tmp_path: Path) -> None:
    words = ("--agents", "b, a,,b", "--demo", "--orchestrator")
    wish = up.wish_of(call_of("up", *words), Settings(), tmp_path)
    plain = up.wish_of(call_of("up"), Settings(), tmp_path)

    assert (wish.only, wish.demo, wish.orchestrator) == (("b", "a"), True, True)
    assert (plain.only, plain.demo, plain.orchestrator) == ((), False, False)
    assert wish.dir == plain.dir == tmp_path


def test_agents_without_a_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--agents: expected names separated by commas, got nothing"):
        up.wish_of(call_of("up", "--agents", " ,"), Settings(), tmp_path)


def test_a_line_up_names_its_agents(tmp_path: Path) -> None:
    settings = Settings(lineups={"review": ("ann", "bob"), "solo": ("ann",)})
    assert up.wish_of(call_of("up", "--lineup", "review"), settings, tmp_path).only == ("ann", "bob")
    for words, message in ((("x",), "--lineup: unknown line-up 'x'"), ((), "--lineup: expected a name")):
        with pytest.raises(BadInput) as caught:
            up.wish_of(call_of("up", "--lineup", *words), settings, tmp_path)
        assert (caught.value.message, caught.value.hint) == (message, "there are: review, solo")
    with pytest.raises(BadInput) as caught:
        up.wish_of(call_of("up", "--lineup", "x"), Settings(), tmp_path)
    assert caught.value.hint == 'save one in csp.toml: [lineups.review] agents = ["claude", "codex"]'
    with pytest.raises(BadInput, match="expected --agents or --lineup, got both"):
        up.wish_of(call_of("up", "--lineup", "solo", "--agents", "ann"), settings, tmp_path)


# --- whose room is opened ------------------------------------------------------------------------


@dataclass
class Home:
    """A home with two projects; `call` is a call in the first of them."""

    folder: Path
    env: dict[str, str]

    def __post_init__(self) -> None:
        for name in ("shop", "barn"):
            (self.folder / name / "src").mkdir(parents=True)

    def call(self, *words: str, at: str = "shop") -> VerbCall:
        flags = {"room": words[words.index("--room") + 1]} if "--room" in words else {}
        settings = load_settings(flags, env=self.env, cwd=self.folder / at)
        call = call_of("up", *words, cwd=self.folder / at)
        return VerbCall(args=call.args, settings=settings, cwd=call.cwd)

    def claim(self, *words: str, at: str) -> str:
        return claim(self.call(*words, at=at).settings, self.env).room

    def opened(self, *words: str, at: str = "shop") -> tuple[str, str, str]:
        """Return which room is opened, where its agents work and whose settings it has."""
        settings, dir, cwd = up.room_to_open(self.call(*words, at=at), self.env)
        project = settings.project
        assert project is not None
        return settings.room, str(dir.relative_to(self.folder)), str(cwd.relative_to(self.folder))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    monkeypatch.setattr("csp.config.process_environment", lambda: env)
    return Home(tmp_path, env)


def test_a_directory_opens_its_own_room(home: Home) -> None:
    home.claim(at="barn")

    assert home.opened() == ("shop", "shop", "shop")
    assert home.opened("--dir", "src") == ("src", "shop/src", "shop")
    assert home.opened("--dir", "../barn") == ("barn", "barn", "shop")


def test_a_directory_below_opens_the_room_of_its_project(home: Home) -> None:
    home.claim(at="shop")

    assert home.opened(at="shop/src") == ("shop", "shop/src", "shop/src")


def test_a_directory_that_is_none_is_refused(home: Home) -> None:
    with pytest.raises(BadInput, match="--dir: expected a directory, got 'nosuch'"):
        home.opened("--dir", "nosuch")


def test_a_named_room_is_opened_in_its_own_directory(home: Home) -> None:
    (home.folder / "barn" / "csp.toml").write_text("[limits]\nturns = 7\n")
    home.claim(at="barn")
    before = read_claims(claims_folder(home.env))

    assert home.opened("--room", "barn") == ("barn", "barn", "barn")
    assert up.room_to_open(home.call("--room", "barn"), home.env)[0].max_turns == 7
    assert home.opened("--room", "barn", "--dir", "src") == ("barn", "shop/src", "shop")
    assert read_claims(claims_folder(home.env)) == before


def test_a_new_name_is_a_room_of_this_directory(home: Home) -> None:
    assert home.opened("--room", "trial") == ("trial", "shop", "shop")


def test_a_room_whose_directory_is_gone_is_not_moved_by_itself(home: Home) -> None:
    home.claim(at="barn")
    shutil.rmtree(home.folder / "barn")

    with pytest.raises(Refused) as caught:
        home.opened("--room", "barn")
    assert caught.value.message == f"room 'barn' belongs to '{home.folder}/barn', which is gone"
    assert home.opened("--room", "barn", "--dir", ".") == ("barn", "shop", "shop")


def test_a_running_room_of_an_earlier_version_is_joined_where_it_runs(home: Home) -> None:
    running = RunningRoom(
        room="default",
        url="http://x",
        token="t",
        pid=os.getpid(),
        dir=home.folder / "barn",
        history=home.folder,
        started=1.0,
    )
    held = write_room(home.folder / "csp", running)
    found = [home.opened("--room", "default"), home.opened(at="barn"), home.opened(at="shop")]
    remove_room(held)

    assert found == [("default", "barn", "barn")] * 2 + [("shop", "shop", "shop")]


def test_a_name_that_is_written_out_is_the_room_of_the_directory(home: Home) -> None:
    assert home.claim("--room", "shop", at="shop") == "shop"
    assert home.claim(at="shop") == "shop"


def journal_of(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").touch()


def test_the_own_room_of_a_clone_is_no_room_of_an_earlier_version(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user has a claim to it; somebody else's project of the same name must not continue it."""
    clone = home.folder / "clone"
    monkeypatch.setattr("csp.config.clone_dir", lambda: clone)
    for name in ("shop", "old"):
        journal_of(clone / "history" / name)
    line = b'{"seq":1,"room_id":"dbb28cb7-445e-490d-9505-ec2a159fd1bf","crc":"00000000"}\n'
    (clone / "history" / "shop" / "journal.jsonl").write_bytes(line)

    assert earlier_rooms(home.env) == [("old", clone / "history" / "old")]
    assert home.call("--room", "old").settings.history_dir == clone / "history"
    assert home.call(at="shop").settings.history_dir == home.folder / ".local/share/csp/history"


def test_rooms_of_earlier_versions_are_offered_once(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.config.clone_dir", lambda: None)
    folder = home.folder / ".local/share/csp/history"
    for name in ("default", "shop", "x", "y"):
        journal_of(folder / name)
    settings = home.call().settings
    for _ in range(2):
        up.report_other_rooms(settings, home.folder / "shop", home.env)
        claim(settings, home.env)

    assert capsys.readouterr().err.splitlines() == [
        f"csp: an earlier room 'default' is in {folder}/default; continue it with: csp up --room default",
        f"csp: continuing the earlier room 'shop' from {folder}/shop",
        f"csp: an earlier room 'x' is in {folder}/x; continue it with: csp up --room x",
        "csp: 1 more earlier rooms; list them with: csp rooms",
    ]
    assert home.call("--room", "default").settings.history_dir == folder


SUMMARY = {"room": "den", "session": "csp-den", "attach": "tmux attach -t csp-den"}
HERE = {"agent": "ann", "state": "idle", "problem": ""}
GONE = {"agent": "bob", "state": "ended", "problem": "bob has ended"}


@pytest.mark.parametrize(
    ("outcomes", "code", "said"),
    [
        ([HERE], 0, ["room den is up with ann"]),
        ([HERE, GONE], 0, ["csp: bob has ended", "room den is up with ann"]),
        ([GONE], 1, ["csp: bob has ended", "room den is up with nobody"]),
        ([], 0, ["room den is up with nobody"]),
    ],
)
def test_up_fails_where_nobody_came(
    outcomes: list[dict[str, Any]], code: int, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert up.report_outcomes(call_of("up"), SUMMARY, outcomes) == code
    assert capsys.readouterr().err.splitlines() == [*said, "open it with: tmux attach -t csp-den"]


def test_a_script_learns_of_everyone_who_did_not_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert up.report_outcomes(call_of("up", "--json"), SUMMARY, [HERE, GONE]) == 1
    assert up.report_outcomes(call_of("up", "--json"), SUMMARY, [HERE]) == 0
    assert '"problem": "bob has ended"' in capsys.readouterr().out


def test_a_plan_is_shown_with_roles_models_and_worktrees(capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "id": "ann",
        "role": "agent",
        "duty": None,
        "command": "claude",
        "cwd": "/w",
        "worktree": False,
        "provider": "",
    }
    rows = [
        row,
        row | {"id": "bob", "worktree": True, "role": "orchestrator"},
        row | {"id": "gpt", "provider": "openai", "duty": "reviewer"},
    ]
    found = {"notes": ["a note"], "room": "den", "history": "/h", "session": "csp-den", "agents": rows}
    up.show_plan(call_of("up"), found | {"windows": [["you", "ann"], ["bob"]]})
    out, err = capsys.readouterr()

    assert err == "csp: a note\n"
    assert out.splitlines() == [
        "room den, history in /h",
        "tmux session csp-den",
        "  window 1: you, ann",
        "  window 2: bob",
        "  ann: claude (in /w)",
        "  bob, orchestrator: claude (in a git worktree of its own)",
        "  gpt, reviewer: claude (an API model)",
        "nothing was started",
    ]


def test_who_does_not_confirm_a_purge_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended: list[object] = []
    monkeypatch.setattr(up, "confirm", lambda question: False)
    monkeypatch.setattr("csp.panes.start_gateway.running_room", lambda *_: None)
    monkeypatch.setattr("csp.panes.down.end_room", lambda *words: ended.append(words))

    assert up.down(call_of("down", "--purge")) == 1
    assert (ended, capsys.readouterr().err) == ([], "nothing was ended\n")


@pytest.fixture
def ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A room that can be ended; keeps what was ended, what was purged."""
    found = SimpleNamespace(
        report=EndReport(), ended=[], purged=[], kept=[], running=None, room="default", state_dir=tmp_path
    )

    def end_room(state_dir: Path, room: str, history: Path, *more: object) -> Any:
        found.ended.append((room, history))
        return found.report

    def purge(history: Path, env: object) -> Any:
        found.purged.append(history)
        return found.kept

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("csp.panes.start_gateway.running_room", lambda *_: found.running)
    monkeypatch.setattr("csp.panes.down.end_room", end_room)
    monkeypatch.setattr("csp.panes.down.purge", purge)
    monkeypatch.setattr(up, "panes_of", lambda *_: None)
    return found


def down(ending: SimpleNamespace, *words: str, **settings: Any) -> int:
    own = {"state_dir": ending.state_dir, "history_dir": Path("/h")}
    return up.down(with_settings(call_of("down", *words), **own | settings))


def test_down_ends_the_room_and_keeps_its_history(
    ending: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert down(ending) == 0
    ending.report.ended, ending.report.left = ["tmux session csp"], ["ada runs elsewhere"]
    ending.running = SimpleNamespace(history=Path("/elsewhere/default"))
    assert down(ending) == 0

    assert ending.ended == [("default", Path("/h/default")), ("default", Path("/elsewhere/default"))]
    assert ending.purged == []
    assert capsys.readouterr().err.splitlines() == [
        "room default was not running",
        "csp: ada runs elsewhere",
        "ended tmux session csp",
    ]


def test_a_purge_that_was_said_yes_to_asks_nobody(
    ending: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    ending.kept = [Path("/h/default/worktrees/ada")]
    assert down(ending, "--purge", "--yes") == 0

    assert ending.purged == [Path("/h/default")]
    assert capsys.readouterr().err.splitlines()[1:] == [
        "csp: work in /h/default/worktrees/ada is not committed, so it was kept",
        "removed the history of room default",
    ]


def test_what_would_not_end_is_a_failure(
    ending: SimpleNamespace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ending.report.stubborn = [Process(7, "1", "sleep")]
    monkeypatch.setattr("csp.panes.down.alive", lambda processes: processes)
    with pytest.raises(Refused, match=r"would not end: 7 \(sleep\)"):
        down(ending, "--json")

    assert '"ended": []' in capsys.readouterr().out


def test_an_agent_neither_opens_nor_ends_a_room(ending: SimpleNamespace) -> None:
    with pytest.raises(Refused, match="this pane is agent 'ada'"):
        down(ending, agent="ada")
    with pytest.raises(Refused, match="this pane is agent 'ada'"):
        up.check_place(with_settings(call_of("up"), agent="ada"))
    with pytest.raises(BadInput, match="starts its own gateway"):
        up.check_place(with_settings(call_of("up"), gateway_url="http://x"))

    assert ending.ended == []


@pytest.mark.parametrize(
    ("room", "todo"),
    [
        ("default", "resume: csp up --room default · stop: csp down --room default"),
        ("den", "resume: csp up --room den · stop: csp down --room den"),
    ],
)
def test_who_interrupts_learns_what_still_runs(
    ending: SimpleNamespace,
    room: str,
    todo: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(KeyboardInterrupt), up.at_work(ending.state_dir, "den"):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "csp: interrupted; nothing of room den is running\n"

    ending.running = SimpleNamespace(url="http://x")
    monkeypatch.setattr(up, "panes_of", lambda *_: SimpleNamespace(id="$1", name="csp-den"))
    with pytest.raises(KeyboardInterrupt), up.at_work(ending.state_dir, room):
        raise KeyboardInterrupt

    assert capsys.readouterr().err == (
        f"csp: interrupted; still running: the gateway at http://x, tmux session csp-den ({todo})\n"
    )


@pytest.mark.parametrize(
    ("words", "is_person", "attaches"),
    [((), True, True), ((), False, False), (("--detach",), True, False), (("--json",), True, False)],
)
def test_only_a_person_is_brought_into_the_room(
    words: tuple[str, ...], is_person: bool, attaches: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    reported: list[Any] = []

    def become(program: str, argv: object, env: object) -> None:
        reported.append(program)
        raise SystemExit

    class Opening:
        panes = SimpleNamespace(attach_argv=lambda env: ["tmux"])

        def __init__(self, *words: object) -> None:
            pass

        def start(self, terminal: tuple[int, int] | None) -> None:
            checked.append(f"open {terminal}")

        def finish(self) -> list[Any]:
            return []

        def summary(self) -> dict[str, str]:
            return SUMMARY

    monkeypatch.setattr("csp.panes.up.OpenRoom", Opening)
    monkeypatch.setattr("csp.panes.tmux_session.check_tmux", lambda env: checked.append("tmux"))
    monkeypatch.setattr("csp.panes.tmux_session.check_terminal", lambda env: checked.append("terminal"))
    monkeypatch.setattr(up, "is_terminal", lambda stream: is_person)
    monkeypatch.setattr("csp.cli.up.os.get_terminal_size", lambda: os.terminal_size((80, 24)))
    monkeypatch.setattr(up, "report_outcomes", lambda *found: reported.append("reported"))
    monkeypatch.setattr(up, "finish_unseen", lambda opening: reported.append("unseen"))
    monkeypatch.setattr("csp.cli.up.os.execvpe", become)
    with contextlib.suppress(SystemExit):
        up.up(with_settings(call_of("up", *words, cwd=tmp_path), state_dir=tmp_path))

    assert reported == (["unseen", "tmux"] if attaches else ["reported"])
    assert checked == ["tmux", *(["terminal", "open (80, 24)"] if attaches else ["open None"])]
