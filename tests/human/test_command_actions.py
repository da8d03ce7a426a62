"""What the commands ask of a gateway that has modes."""

import os
from pathlib import Path
from typing import Any

import pytest

from csp.errors import BadInput, NotFound, Refused
from csp.fast_start.failure_report import FailurePipe
from csp.human import command_actions, command_table
from csp.protocol import catalogue
from csp.protocol.enums import HUMAN, SYSTEM, MessageId
from csp.protocol.events import NoticePosted
from csp.protocol.notices import NoticeCode
from csp.room.human_input import ModeLine, StopLine, read_line
from csp.room.sessions.modes import mode_names
from tests.human.fakes import RUNNING, Modes
from tests.waiting import wait_until


@pytest.fixture
async def chat(tmp_path: Path) -> Modes:
    return Modes(tmp_path)


@pytest.mark.parametrize(
    ("line", "method", "path", "body"),
    [
        (
            '/mode debate "tabs or spaces" --replace --rounds 2 --agents Claude,codex'
            " --first codex --synth claude --ballot",
            "POST",
            "/mode",
            {
                "mode": "debate",
                "topic": "tabs or spaces",
                "rounds": 2,
                "agents": ["claude", "codex"],
                "first": "codex",
                "synth": "claude",
                "ballot": True,
            },
        ),
        ("/mode autopilot go on --replace", "POST", "/mode", {"mode": "autopilot", "topic": "go on"}),
        ("/end", "POST", "/mode", {"mode": "freeform"}),
        ("/mode freeform", "POST", "/mode", {"mode": "freeform"}),
        (
            "/mode autopilot go --replace --turns 9 --cost 0.5 --respect-final --soft-turns",
            "POST",
            "/mode",
            {
                "mode": "autopilot",
                "topic": "go",
                "limits": {"turns": 9, "cost": 0.5},
                "respect_final": True,
                "soft_turns": True,
            },
        ),
        ("/next", "POST", "/turn/next", {}),
        ("/pause", "POST", "/sessions/s-4/pause", {}),
        ("/extend 3", "POST", "/sessions/s-4/extend", {"rounds": 3}),
        ("/extend", "POST", "/sessions/s-4/extend", {}),
        ("/skip", "POST", "/sessions/s-4/skip", {}),
        ("/skip codex", "POST", "/sessions/s-4/skip", {"agent": "codex"}),
        ("/stop all", "POST", "/stop", {"all": True}),
        ("/approve claude 2", "POST", "/agents/claude/approve", {"choice": 2}),
        ("/deny claude", "POST", "/agents/claude/deny", {}),
        ("/interrupt claude", "POST", "/agents/claude/interrupt", {}),
        ("/restart claude", "POST", "/agents/claude/restart", {}),
        ("/pause claude", "POST", "/agents/claude/pause", {}),
        ("/remove codex", "DELETE", "/agents/codex", None),
    ],
)
async def test_a_command_is_one_request(chat: Modes, line: str, method: str, path: str, body: Any) -> None:
    await chat.do(line)

    assert chat.asked == [(method, path, body)]


async def test_the_status_names_the_turn_and_the_topic(chat: Modes) -> None:
    lines = await chat.do("/status")

    assert lines[:3] == ["Consensus 1/2 · codex +1", "  topic: which name", "  waiting for codex, claude"]
    assert lines[3:] == ["claude  idle  cli", "codex   idle  cli"]


async def test_the_status_says_what_was_used_and_what_it_cost(chat: Modes) -> None:
    row = {
        "agent": "claude",
        "model": "opus\x1b",
        "replies": 2,
        "input": 12000,
        "output": 34,
        "cost_usd": 0.5,
    }
    free = {"agent": "llama", "model": None, "replies": 1, "input": 5, "output": 6, "cost_usd": None}
    items = [
        row | {"unpriced": 1, "estimated": 0, "cached": 10_000, "new": 2034},
        free | {"unpriced": 1, "estimated": 1, "new": 11, "cached": 0},
    ]
    chat.answers["/usage"] = {"items": items, "prices": "genai-prices 1"}
    lines = await chat.do("/status")

    assert lines[-3:] == [
        "claude (opus␛): 2 replies, 2,034 new tokens (34 output), 10,000 cached, "
        "$0.5000 and 1 reply without a known price",
        "llama (a model it does not name): 1 reply, about 11 new tokens (6 output), 0 cached, price unknown",
        "prices: genai-prices 1",
    ]


async def test_votes_are_shown_with_their_reasons(chat: Modes) -> None:
    assert await chat.do("/votes") == [
        "votes: A (codex) 1; winner: A (codex)",
        "  A by codex: one two",
        "  claude voted A: ␛[1mgood",
    ]


async def test_a_mode_that_ended_says_why(chat: Modes) -> None:
    chat.answers["/mode"] = {"mode": "freeform", "status": "ended", "reason": "cap_reached"}

    assert (await chat.do("/status"))[0] == "no mode is running (the last one: ended, all rounds done)"


async def test_a_paused_mode_is_resumed(chat: Modes) -> None:
    chat.answers["/mode"] = RUNNING | {"status": "paused"}
    await chat.do("/resume")

    assert chat.asked == [("POST", "/sessions/s-4/resume", {})]


@pytest.mark.parametrize(("line", "status"), [("/pause", "paused"), ("/resume", "running")])
async def test_what_is_so_already_is_said(chat: Modes, line: str, status: str) -> None:
    chat.answers["/mode"] = RUNNING | {"status": status}

    assert await chat.do(line) == [f"consensus is {status} already"]
    assert chat.asked == []


@pytest.mark.parametrize("line", ["/stop", "/end", "/next", "/skip"])
async def test_a_person_reads_what_the_room_says_of_it(chat: Modes, line: str) -> None:
    assert await chat.do(line) == []


@pytest.mark.parametrize("line", ["/pause", "/resume", "/extend", "/skip", "/next", "/end"])
async def test_without_a_mode_nothing_is_asked(chat: Modes, line: str) -> None:
    chat.answers["/mode"] = {"mode": "freeform", "status": "ended", "sessionId": "s-4"}

    with pytest.raises(Refused, match="no mode is running"):
        await chat.do(line)
    assert chat.asked == []


def test_the_word_alone_is_a_stop() -> None:
    assert read_line("AllStop") == StopLine()


async def test_every_row_can_be_explained(chat: Modes) -> None:
    for row in catalogue.COMMANDS:
        chat.shown.lines.clear()

        assert (await chat.do(f"/help {row.name}"))[0] == f"{row.form}  {row.help}"


async def test_the_help_of_mode_lists_the_modes(chat: Modes) -> None:
    lines = await chat.do("/help mode")

    assert [line.split()[0] for line in lines[1:]] == mode_names()
    assert lines[1].endswith("with a ballot, they vote at the end.")
    chat.shown.lines.clear()
    assert len(await chat.do("/help next")) == 1


async def test_a_result_is_broken_between_words(chat: Modes) -> None:
    chat.look.columns = lambda: 30
    assert await chat.do("/layout") == ["layout top; choose with\n  /layout top | left | focus"]


async def test_a_rule_that_has_no_effect_says_so(chat: Modes) -> None:
    rule = {"number": 5, "agent": "ada", "pattern": "pytest", "problem": "no effect: ada"}
    chat.answers["/rules"] = {"success": True, "rule": rule}

    assert await chat.do("/allow codex pytest") == ["ada may run: pytest (/unallow 5)", "no effect: ada"]


async def test_help_fits_a_screen_of_80x24_and_names_every_command(chat: Modes) -> None:
    lines = await chat.do("/help")

    assert len(lines) <= 20 and [line for line in lines if len(line) > 80] == []
    named = " ".join(lines).split()
    assert [row.name for row in catalogue.COMMANDS if f"/{row.name}" not in named] == []


async def test_the_whole_help_says_what_every_command_does(chat: Modes) -> None:
    lines = await chat.do("/help all")

    assert [line for line in lines if len(line) > 80] == []
    for row in catalogue.COMMANDS:
        assert any(line.startswith(f"/{row.name}") and row.help in line for line in lines), row.name


def test_every_command_of_the_design_has_a_row() -> None:
    named = (
        "agents add remove restart mode status next end stop history search queue cancel resend pause resume"
        " share noshare approve deny interrupt continue votes extend skip focus export help quit fwd show"
        " needs answer allow rules unallow decide report"
        " review web board zoom layout rooms down"
    )

    assert set(named.split()) == {row.name for row in catalogue.COMMANDS}


async def test_a_fault_in_here_is_one_line_and_the_pane_goes_on(chat: Modes) -> None:
    chat.answers["/mode"] = {"proposals": [1]}
    async with chat:
        chat.enter("/votes")
        chat.enter("/help quit")
        await wait_until(lambda: any(line.startswith("/quit") for line in chat.shown.lines))

    assert any(line.startswith("unexpected error: AttributeError: ") for line in chat.shown.lines)


# --- what other programs do ----------------------------------------------------------------------


class Programs:
    """Stands for every program that is run; answers with what a test says, by the first words."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: tuple[int, str, str]) -> None:
        self.ran: list[tuple[str, ...]] = []
        self._answers = answers
        monkeypatch.setattr(command_actions, "_run", self.run)
        monkeypatch.setattr("csp.human.command_actions.sys.executable", "python")

    async def run(
        self, chat: Any, *command: str, pipe: FailurePipe | None = None, is_apart: bool = False
    ) -> tuple[int, str, str]:
        self.ran.append(command)
        verb = command[4] if command[0] == "python" else command[1]
        return self._answers.get(verb.replace("-", "_"), (0, "", ""))


def in_panes(folder: Path) -> Modes:
    return Modes(folder, {"CSP_PANES": "default@1", "TMUX": "x", "TMUX_PANE": "%1"})


async def test_an_agent_whose_pane_has_ended_gets_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, programs = in_panes(tmp_path), Programs(monkeypatch)
    chat.answers["/agents"] = [{"id": "claude", "online": False}, {"id": "codex", "online": True}]
    lines = await chat.do("/restart claude")

    up = ("python", "-P", "-m", "csp.cli", "up", "--room", "default", "--detach", "--agents", "claude")
    assert (programs.ran, chat.asked) == ([up], [])
    assert lines == ["starting claude again", "claude is here again"]


async def test_a_removed_agent_is_spoken_to_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat = in_panes(tmp_path)
    programs = Programs(monkeypatch, remove=(0, '{"success": true, "pane": "closed"}\n', ""))
    chat.target = "claude"
    assert await chat.do("/remove codex") == []
    assert chat.target == "claude"
    assert await chat.do("/remove claude end") == []

    assert [ran[4:] for ran in programs.ran] == [
        ("remove", "--room", "default", "codex", "--json"),
        ("remove", "--room", "default", "claude", "--json", "--end"),
    ]
    assert (chat.target, chat.asked) == ("all", [])


async def test_a_removed_agent_that_still_runs_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = in_panes(tmp_path)
    Programs(monkeypatch, remove=(0, '{"success": true, "pane": "running"}\n', ""))

    assert await chat.do("/remove codex") == ["codex still runs in its pane; end it with: /remove codex end"]
    with pytest.raises(BadInput, match="expected nothing or end, got 'now'"):
        await chat.do("/remove codex now")


async def test_the_pane_of_an_agent_that_was_removed_can_still_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = in_panes(tmp_path)
    programs = Programs(monkeypatch, remove=(0, '{"success": true, "pane": "closed"}\n', ""))

    assert await chat.do("/remove gone end") == []
    assert programs.ran[0][4:] == ("remove", "--room", "default", "gone", "--json", "--end")
    with pytest.raises(NotFound):
        await chat.do("/remove gone")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/add bob -- cat -u", ("bob", "--", "cat", "-u")),
        ("/add bob cat 'a b'", ("bob", "--", "cat", "a b")),
        (
            "/add bob --role orchestrator -- cat -- x",
            ("bob", "--role", "orchestrator", "--", "cat", "--", "x"),
        ),
    ],
)
async def test_an_agent_is_added_with_its_options(
    chat: Modes, monkeypatch: pytest.MonkeyPatch, line: str, words: tuple[str, ...]
) -> None:
    programs = Programs(monkeypatch, add=(0, "bob is here\n", ""))

    assert await chat.do(line) == ["bob is here"]
    assert programs.ran == [("python", "-P", "-m", "csp.cli", "add", "--room", "default", *words)]


async def test_a_command_that_fails_says_why(chat: Modes, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(monkeypatch, add=(1, "", "no such command\n"), web=(3, "", ""), review=(0, "", "said\n"))
    with pytest.raises(Refused, match=r"^no such command"):
        await chat.do("/add bob -- nothing")
    with pytest.raises(Refused, match="csp web failed with code 3"):
        await chat.do("/web")

    assert await chat.do("/review status") == ["said"]


async def test_focus_goes_to_the_window_then_to_the_pane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, programs = in_panes(tmp_path), Programs(monkeypatch, list_panes=(0, "%1 human\n%2 claude\n", ""))
    await chat.do("/focus claude")
    assert [ran[1:] for ran in programs.ran[1:]] == [
        ("select-window", "-t", "%2"),
        ("select-pane", "-t", "%2"),
    ]
    with pytest.raises(NotFound, match="no pane of codex"):
        await chat.do("/focus codex")
    Programs(monkeypatch, list_panes=(0, "%2 claude\n", ""), select_pane=(1, "", "no\nway"))
    with pytest.raises(Refused, match="could not go to the pane of claude: no way"):
        await chat.do("/focus claude")


async def test_who_leaves_the_room_pane_is_the_one_who_typed_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = in_panes(tmp_path)
    clients = "0 200 /dev/late \n0 100 /dev/early \n1 300 /dev/control \n"
    programs = Programs(monkeypatch, display_message=(0, "human\n", ""), list_clients=(0, clients, ""))
    lines = await chat.do("/quit")

    assert programs.ran[-1] == ("tmux", "detach-client", "-t", "/dev/late")
    assert programs.ran[0][:5] == ("tmux", "display-message", "-p", "-t", "%1")
    assert lines == ["the room keeps running; resume: csp up · stop: csp down"]


async def test_who_came_from_another_session_goes_back_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = "0 200 /dev/late my work\n"
    answers = {"display_message": (0, "human\n", ""), "list_clients": (0, clients, "")}
    programs = Programs(monkeypatch, **answers)
    await in_panes(tmp_path).do("/quit")
    gone = Programs(monkeypatch, **answers, switch_client=(1, "", "no such session"))
    await in_panes(tmp_path).do("/quit")

    assert programs.ran[2] == ("tmux", "switch-client", "-c", "/dev/late", "-t", "=my work")
    assert [ran[1] for ran in programs.ran[2:]] == ["switch-client", "display-message"]
    assert gone.ran[-1] == ("tmux", "detach-client", "-t", "/dev/late")


async def test_nobody_is_sent_away_where_nobody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = Programs(monkeypatch, display_message=(0, "human\n", ""), list_clients=(0, "1 3 /dev/x\n", ""))
    await in_panes(tmp_path).do("/quit")

    assert [ran[1] for ran in programs.ran] == ["display-message", "list-clients"]


@pytest.mark.parametrize("answer", [(0, "claude\n", ""), (0, "\n", ""), (1, "human\n", "no server")])
async def test_any_other_pane_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, str, str]
) -> None:
    Programs(monkeypatch, display_message=answer)

    assert await in_panes(tmp_path).do("/quit") == ["left"]


async def test_a_program_runs_where_the_pane_does_and_off_its_terminal(tmp_path: Path) -> None:
    chat = Modes(tmp_path, {"MINE": "1", "PATH": "/usr/bin:/bin"})
    reading, writing = os.pipe()
    os.write(writing, b"typed at the pane")
    os.close(writing)
    own = os.dup(0)
    os.dup2(reading, 0)
    try:
        code, out, said = await command_actions._run(
            chat, "sh", "-c", "pwd; echo $MINE$HOME; cat; echo no >&2; exit 3"
        )
    finally:
        os.dup2(own, 0)
        os.close(own)
        os.close(reading)

    assert (code, out, said) == (3, f"{tmp_path}\n1\n", "no\n")
    with pytest.raises(Refused, match="'no-such-program' cannot be run: no such file"):
        await command_actions._run(chat, "no-such-program")


@pytest.mark.parametrize(("name", "form"), [("a.json", "json"), ("a.md", "md"), ("a", "md")])
async def test_the_name_of_the_file_says_its_form(
    chat: Modes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, form: str
) -> None:
    programs = Programs(monkeypatch, export=(0, "all of it", ""))
    await chat.do(f"/export {name}")

    assert programs.ran[0][-2:] == ("--format", form)
    assert (tmp_path / name).read_text() == "all of it"


async def test_a_home_is_found_by_its_sign(
    chat: Modes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    Programs(monkeypatch, export=(0, "x", ""))

    assert await chat.do("/export ~/talk.md") == [f"wrote {tmp_path}/home/talk.md"]


# --- messages ------------------------------------------------------------------------------------


async def test_a_note_goes_before_what_is_passed_on(chat: Modes, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(chat, "say", lambda to, text: sent.append((to, text)))
    chat._last_words["claude"] = "tabs"
    await chat.do("/fwd claude codex what now?")
    await chat.do("/fwd claude all")

    assert sent == [("codex", "what now?\n\nclaude said:\n> tabs"), ("all", "claude said:\n> tabs")]


async def test_what_is_sent_again_gets_its_tick(chat: Modes) -> None:
    chat.answers["/messages/4/resend"] = {"id": "m-9", "seq": 9, "recipients": ["claude"]}
    assert await chat.do("/resend 4") == ["sent again as #9"]

    assert chat.ticks.is_own("m-9")
    chat.answers["/messages/m-9/cancel"] = {"id": "m-9", "seq": 9}
    assert await chat.do("/cancel m-9") == ["sent again as #9"]
    chat.answers["/messages/m-4/cancel"] = {"id": "m-4", "seq": 4}
    assert (await chat.do("/cancel m-4"))[1:] == ["cancelled #4"]


def expired(message: str) -> NoticePosted:
    code, params = NoticeCode.CONTROL_EXPIRED(message=message, control="approve", agent="claude")
    head = (9, 1.0, MessageId("e-9"), SYSTEM, HUMAN, "default", "text")
    return NoticePosted(*head, code=code, params=params)


async def test_a_button_gets_its_tick_by_its_own_name(chat: Modes) -> None:
    chat.answers["/agents/claude/approve"] = {"id": "b-1"}
    assert await chat.do("/approve claude") == []
    assert chat.ticks.tells(expired("b-1")) and not chat.ticks.tells(expired("b-2"))
    assert [*chat.ticks.silent(1e12)] == ["b-1"]

    assert await chat.do("/restart claude") == ["asked to restart claude"]


async def test_a_number_that_is_no_message_is_named(chat: Modes) -> None:
    chat.answers["/messages/%234/cancel"] = NotFound("unknown message '#4'")

    with pytest.raises(NotFound, match="unknown message '#4'"):
        await chat.do("/cancel #4")


async def test_the_newest_that_can_be_is_cancelled(chat: Modes) -> None:
    waiting = [
        {"id": "a", "seq": 3, "sender": "human", "state": "queued"},
        {"id": "b", "seq": 8, "sender": "human", "state": "held"},
        {"id": "c", "seq": 9, "sender": "human", "state": "typed"},
        {"id": "d", "seq": 10, "sender": "ada", "state": "held"},
    ]
    chat.answers["/queue"] = {"items": waiting}
    chat.answers["/messages/b/cancel"] = {"id": "b", "seq": 8}
    assert await chat.do("/cancel") == ["cancelled #8"]
    chat.answers["/queue"] = {"items": waiting[2:]}

    with pytest.raises(NotFound, match="no message of yours can be cancelled any more"):
        await chat.do("/cancel")


@pytest.mark.parametrize(
    ("asking", "line", "pressed"),
    [
        (("claude",), "/approve", ("claude", {})),
        (("claude",), "/deny 2", ("claude", {"choice": 2})),
        (("codex",), "/approve codex 1", ("codex", {"choice": 1})),
        ((), "/approve", "no dialog is open"),
        (("claude", "codex"), "/approve", "several dialogs are open: claude, codex"),
    ],
)
async def test_the_only_dialog_needs_no_name(
    chat: Modes, asking: tuple[str, ...], line: str, pressed: tuple[str, Any] | str
) -> None:
    items = [
        {"id": agent, "kind": "approval", "title": "asks", "agent": agent, "since": 1.0, "answers": []}
        for agent in asking
    ]
    chat.answers["/attention"] = {"items": items, "seq": 1}
    if isinstance(pressed, str):
        with pytest.raises((NotFound, BadInput), match=pressed):
            await chat.do(line)
        return
    await chat.do(line)

    verb = line.split()[0].removeprefix("/")
    assert chat.asked == [("POST", f"/agents/{pressed[0]}/{verb}", pressed[1])]


async def test_a_mode_without_a_topic_asks_for_one(chat: Modes) -> None:
    chat.answers["/mode"] = {"mode": "freeform"}
    lines = await chat.do("/mode debate --rounds 2")
    assert (lines, chat.asked) == (["? What is the topic? (an empty line cancels)"], [])
    assert chat.question is not None

    assert chat.question.then("tabs") == ModeLine(mode="debate", topic="tabs", numbers={"rounds": 2})
    assert chat.question.then("") is None


async def test_a_mode_that_would_end_another_one_asks(chat: Modes) -> None:
    lines = await chat.do("@router collaborate claude codex: build it")
    assert lines == ["? Consensus mode is running. Stop it and start the new one? y/N"]
    assert chat.asked == [] and chat.question is not None
    meant = chat.question.then("Y")
    assert isinstance(meant, ModeLine) and meant.replaces and chat.question.then("n") is None
    await command_table.set_mode(chat, meant)

    body = {"mode": "collaborate", "topic": "build it", "agents": ["claude", "codex"]}
    assert chat.asked == [("POST", "/mode", body)]


@pytest.mark.parametrize(
    ("line", "error"), [("/mode debate", "debate needs a topic"), ("/mode debate x", "consensus is running")]
)
async def test_a_script_is_refused_what_a_person_is_asked(tmp_path: Path, line: str, error: str) -> None:
    chat = Modes(tmp_path, is_person=False)

    with pytest.raises((BadInput, Refused), match=error):
        await chat.do(line)
    assert chat.asked == []


async def test_a_room_is_stopped_after_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat, programs = in_panes(tmp_path), Programs(monkeypatch)
    lines = await chat.do("/down")
    assert lines == ["? Stop the room with its panes, agents and gateway? y/N"] and programs.ran == []
    assert chat.question is not None
    await command_table.run(chat, chat.question.then("y"))  # type: ignore[arg-type]  # it is a command

    assert [command[4] for command in programs.ran] == ["down"]


async def test_the_rooms_of_the_machine_are_listed(chat: Modes, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(monkeypatch, rooms=(0, "a  running\nb  stopped\n", ""))

    assert await chat.do("/rooms") == ["a  running", "b  stopped"]
    assert programs.ran[0][4:] == ("rooms",)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([], "the loop guard isn't holding any message"),
        ([3, 4], "the loop guard holds several messages: #3, #4"),
    ],
)
async def test_only_one_held_message_needs_no_name(chat: Modes, held: list[int], said: str) -> None:
    items = [{"id": f"m-{seq}", "seq": seq, "reason": "loop"} for seq in held]
    chat.answers["/queue"] = {"items": [*items, {"id": "m-9", "seq": 9, "reason": "paused"}]}
    with pytest.raises((NotFound, BadInput), match=said):
        await chat.do("/continue")
    chat.answers["/queue"]["items"] += [{"id": "m-7", "seq": 7, "reason": "loop"}]
    chat.answers["/messages/m-7/continue"] = {"id": "m-7", "seq": 7}
    if not held:
        assert await chat.do("/continue") == ["released #7"]


@pytest.mark.parametrize(
    ("answer", "said"),
    [({"currentTurn": "codex"}, "it is the turn of codex"), ({}, "that was the last turn")],
)
async def test_a_script_reads_whose_turn_it_is(tmp_path: Path, answer: dict[str, Any], said: str) -> None:
    chat = Modes(tmp_path, is_person=False)
    chat.answers["/turn/next"] = answer

    assert await chat.do("/next") == [said]
    assert chat.roster._stale.is_set()
