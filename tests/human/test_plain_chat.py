"""The human off a terminal: lines in, lines out."""

import asyncio
import io
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from csp.errors import Unreachable
from csp.human.plain_chat import PlainChat
from csp.human.theme import UNICODE, Theme
from tests.human.scene import CHAT, Pane, csp_chat, join, plain, script_order
from tests.rooms import LiveRoom
from tests.waiting import wait_until


def test_a_script_sends_by_a_pipe(room: LiveRoom) -> None:
    claude, codex = join(room, "claude"), join(room, "codex")
    done = csp_chat(room, "@all hello from a script\n")

    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"\d\d:\d\d you → all: hello from a script\n", done.stdout)
    assert claude.next_item("hello from a script")
    assert codex.next_item("hello from a script")


def test_lines_are_done_in_their_order(room: LiveRoom) -> None:
    claude = join(room, "claude")
    plain(room, "".join(f"@claude message {number}\n" for number in range(40)))
    items = claude.gateway.get("/inbox/claude")["items"]

    assert [item["text"] for item in items] == [f"message {number}" for number in range(40)]


def test_a_line_that_fails_is_told_on_stderr_and_by_the_exit_code(room: LiveRoom) -> None:
    claude = join(room, "claude")
    done = plain(room, "/xyzzy\n@claude goes on\n")

    assert (done.returncode, done.stderr) == (
        1,
        "unknown command /xyzzy (see: /help)\n",
    )
    assert claude.next_item("goes on")


def test_nothing_drives_a_terminal_there(room: LiveRoom) -> None:
    join(room, "claude")
    done = csp_chat(room, "@claude hi\n/help\n/agents\n")

    assert "\x1b" not in done.stdout + done.stderr


def test_an_agents_pane_is_not_the_place_for_it(room: LiveRoom) -> None:
    token = room.gateway.post("/register", {"agentId": "claude"})["token"]
    done = csp_chat(room, "hi\n", CSP_AUTH_TOKEN=token)

    assert done.returncode == 1
    assert done.stderr.startswith("csp: csp chat acts as the human, but this token belongs to claude (")


def test_a_gateway_that_is_not_there_is_one_line(room: LiveRoom, tmp_path: Path) -> None:
    done = csp_chat(room, "hi\n", XDG_RUNTIME_DIR=str(tmp_path))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "is not running" in done.stderr


def test_a_wrong_token_is_one_line(room: LiveRoom) -> None:
    done = csp_chat(room, "hi\n", CSP_GATEWAY_URL=room.url, CSP_AUTH_TOKEN="wrong")

    assert done.returncode == 1
    assert done.stderr.startswith("csp: ")
    assert done.stderr.count("\n") == 1


def test_what_comes_in_is_printed_while_stdin_stays_open(room: LiveRoom) -> None:
    claude = join(room, "claude")
    process = subprocess.Popen(
        CHAT, env=room.env, cwd=room.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    process.stdin.write("@claude question\n")
    process.stdin.flush()
    item = claude.next_item("question")
    claude.reply(item, "answer")
    lines = iter(process.stdout.readline, "")

    assert any(line.endswith("claude: answer\n") for line in lines)
    process.stdin.write("/quit\n")
    process.stdin.flush()
    assert process.wait(60) == 0
    process.communicate()


def test_a_dumb_terminal_gets_plain_lines(room: LiveRoom) -> None:
    claude = join(room, "claude")
    with Pane(CHAT, room.env | {"TERM": "dumb", "LANG": "C.UTF-8"}, room.dir, rows=24, columns=80) as pane:
        pane.wait_for("room default: claude idle")
        pane.send(b"@claude hello\n")
        item = claude.next_item("hello")
        claude.reply(item, "hi")
        pane.wait_for("claude: hi")
        pane.send(b"\x04")

        assert pane.end() == 0
        assert b"\x1b" not in pane.raw


# --- commands ------------------------------------------------------------------------------------


def test_the_last_words_of_an_agent_are_passed_on(room: LiveRoom) -> None:
    claude, codex = join(room, "claude"), join(room, "codex")
    claude.say("human", "use a\nparser")
    plain(room, "/fwd claude codex what do you think?\n@codex so {claude.last}!\n")

    assert codex.next_item("claude said:")["text"] == "what do you think?\n\nclaude said:\n> use a\n> parser"
    assert codex.next_item("so use a\nparser!")["text"] == "so use a\nparser!"


REFUSED: Final = [
    ("/fwd mute codex", "mute has not said anything yet (see: /history)"),
    ("@codex {claud.last}", "unknown agent in '{claud.last}' (did you mean 'claude'?; to send"),
    ("/fwd claude", "which agent? (usage: /fwd FROM TO [NOTE])"),
    ("/pause claud", "no agent 'claud' is here (did you mean 'claude'?)"),
    ("/approve", "no dialog is open (see: /needs)"),
    ("/approve claude two", "expected a number, got 'two' (usage: /approve [AGENT] [N])"),
    ("/interrupt", "which agent? (usage: /interrupt AGENT)"),
    ("/y", "nothing needs you (see: /status)"),
    ("/agents now", "unexpected argument 'now' (usage: /agents)"),
    ("/pause", 'no mode is running (start one: /mode debate "topic")'),
    ("/skip", 'no mode is running (start one: /mode debate "topic")'),
    ("/next", 'no mode is running (start one: /mode debate "topic")'),
    ("/end", 'no mode is running (start one: /mode debate "topic")'),
    ("/mode freeform", 'no mode is running (start one: /mode debate "topic")'),
    ("/mode debat x", "unknown mode 'debat' (did you mean 'debate'?)"),
    ("@router talk claude codex: x", "unknown mode 'talk' (there are: debate, consensus, collaborate, "),
    ("/mode debate x --agents claude", "debate needs at least 2 agents, got 1 (see: /agents)"),
    ("/mode debate x --rouns 2", "unknown option --rouns (did you mean '--rounds'?)"),
    ("/stop claude", "'claude' cannot be stopped (/stop, /stop all or /interrupt AGENT)"),
    ("@", "name missing after @ (for example: @claude text)"),
    ("!", "name missing after ! (for example: !claude text)"),
    ("/export /proc/nowhere/x.md", "'/proc/nowhere/x.md' cannot be written: no such file or directory"),
    ("/continue", "the loop guard isn't holding any message (see: /queue)"),
    ("/cancel", "no message of yours can be cancelled any more (see: /queue)"),
    ("/cancel 999999", "unknown message '999999' (see: /history)"),
    ("/show abc", "expected the number of a message, got 'abc' (/show 12)"),
    ("/add", "missing argument (usage: /add NAME -- COMMAND)"),
    ("/add x -- 'unclosed", "the command cannot be read: no closing quotation (check its quotes)"),
    ("/focus claude", "this pane is not in tmux, so it cannot go to another one (attach with: csp up)"),
    ("@human hi", "that is you (name an agent, or all)"),
    ("@router collaborate claude", "expected a mode, agents, a colon and a goal"),
    (
        "/mode debate x --agents claude,nobody",
        "no agent 'nobody' is here (here are: claude, codex, mute)",
    ),
    ("/etc/passwd", "'/etc/passwd' is not a command (to send it as a text, type //etc/passwd)"),
]


def test_what_cannot_be_done_is_one_line_with_what_to_do(room: LiveRoom) -> None:
    for name in ("claude", "codex", "mute"):
        join(room, name)
    done = plain(room, "".join(f"{line}\n" for line, _ in REFUSED))
    complaints = done.stderr.splitlines()

    assert done.returncode == 1
    assert len(complaints) == len(REFUSED)
    for (line, said), complaint in zip(REFUSED, complaints, strict=True):
        assert complaint.startswith(said), line


def test_allstop_asks_the_room_to_stop(room: LiveRoom) -> None:
    join(room, "claude")
    lines = ["Allstop", "ALL-STOP!", "/stop", "/stop all", "@claude all stop"]
    done = plain(room, "".join(f"{line}\n" for line in lines))

    assert done.returncode == 0
    assert done.stdout.count("No mode is running.") == len(done.stdout.splitlines()) == len(lines)
    assert room.gateway.get("/inbox/claude")["items"] == []


def test_agents_are_steered(room: LiveRoom) -> None:
    join(room, "claude")
    done = plain(room, "/pause claude\n/share claude\n/agents\n/resume claude\n/noshare claude\n/agents\n")

    assert done.stdout.splitlines() == [
        "paused claude",
        "sharing claude",
        "claude  paused  cli  shares its pane",
        "resumed claude",
        "no longer sharing claude",
        "claude  idle  cli",
    ]


def test_an_agent_is_removed(room: LiveRoom) -> None:
    join(room, "claude")
    done = plain(room, "/remove claude\n/agents\n")

    assert done.returncode == 0
    assert "no agents yet" in done.stdout
    assert room.gateway.get("/agents") == []


def test_messages_are_found_withdrawn_and_sent_again(room: LiveRoom) -> None:
    claude = join(room, "claude")
    done = plain(
        room, "@claude zebra crossing\n/cancel\n/search zebra\n/resend\n/queue\n/history 1 claude\n", 1.5
    )

    assert "you → claude: zebra crossing" in done.stdout
    assert re.search(r"#\d+ cancelled", done.stdout)
    assert re.search(r"#\d+ human → claude: zebra crossing\n--- 1 message ---", done.stdout)
    assert re.search(r"^sent again as #\d+$", done.stdout, re.MULTILINE)
    assert re.search(r"^#\d+ human to claude, 0:0\d: queued: zebra crossing$", done.stdout, re.MULTILINE)
    assert (
        len([item for item in claude.gateway.get("/inbox/claude")["items"] if "zebra" in item["text"]]) == 1
    )


def test_a_message_that_the_loop_guard_holds_is_released(room: LiveRoom) -> None:
    ada, bob = join(room, "ada"), join(room, "bob")
    last = ada.gateway.post("/message", {"to": "bob", "content": "ping"})
    for speaker, other in [(bob, ada), (ada, bob)] * 4:
        body = {"to": other.id, "content": "ping", "replyTo": last["id"]}
        last = speaker.gateway.post("/message", body)
    done = plain(room, "/continue\n")

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith(f"▲ #{last['seq']} from ada to bob is held")
    assert done.stdout.endswith(f"\nreleased #{last['seq']}\n")


def test_the_history_is_exported_to_a_new_file(room: LiveRoom) -> None:
    claude = join(room, "claude")
    claude.say("human", "worth keeping")
    done = plain(room, "/export talk.md\n/export talk.md\n")
    path = room.dir / "talk.md"

    assert done.stdout == f"wrote {path}\n"
    assert done.stderr == f"'{path}' already exists (name a new one: /export FILE.md)\n"
    assert "worth keeping" in path.read_text("utf-8")


def test_a_link_to_the_page_is_printed(room: LiveRoom) -> None:
    done = plain(room, "/web\n/web\n")
    links = done.stdout.split()
    entered = [room.gateway.post("/page/enter", {"code": link.partition("#link=")[2]}) for link in links]

    assert (done.returncode, done.stderr) == (0, "")
    assert [link.partition("/#link=")[0] for link in links] == [room.url, room.url]
    assert [answer["room"] for answer in entered] == ["default", "default"]


def test_the_history_is_exported_into_a_folder(room: LiveRoom) -> None:
    folder = room.dir / "kept"
    folder.mkdir()
    done = plain(room, "/export kept\n")
    (path,) = folder.iterdir()

    assert done.stdout == f"wrote {path}\n"
    assert path.name.startswith("csp-default-")


def test_a_message_that_has_arrived_is_named_by_its_number(room: LiveRoom) -> None:
    claude = join(room, "claude")
    sent = room.gateway.post("/message", {"to": "claude", "content": "too late", "id": "an-id-of-its-own"})
    claude.report(claude.next_item(), "confirmed")
    done = plain(room, f"/cancel {sent['seq']}\n")

    said = (
        f"too late to cancel #{sent['seq']}: claude has already received it (see the queue with: /status)\n"
    )
    assert done.stderr == said
    assert plain(room, f"/cancel #{sent['seq']}\n").stderr == said


def test_an_agent_that_has_ended_outside_of_our_panes_is_started_again_by_hand(room: LiveRoom) -> None:
    join(room, "claude").set_state("offline")
    done = plain(room, "/restart claude\n")

    assert done.stderr == (
        "claude has ended (start it again where it ran: csp sidecar --name claude -- COMMAND)\n"
    )


def test_a_script_is_answered_for_each_step_of_a_mode(room: LiveRoom) -> None:
    join(room, "claude")
    join(room, "codex")
    lines = ["/mode debate tabs", "/pause", "/pause", "/resume", "/extend 1", "/skip codex", "/next"]
    done = plain(room, "".join(f"{line}\n" for line in [*lines, "/votes", "/end"]))
    own = [line for line in done.stdout.splitlines() if not re.match(r"\d\d:\d\d |  ", line)]

    assert (done.returncode, done.stderr) == (0, "")
    assert own == [
        *("began debate", "paused debate", "debate is paused already", "resumed debate", "extended debate"),
        *("skipped a turn of debate", "it is the turn of claude", "there are no votes to show"),
        "back in freeform",
    ]


def test_an_agent_is_found_by_any_spelling_of_its_name(room: LiveRoom) -> None:
    claude = join(room, "claude")
    plain(room, "@CLAUDE: loud\n")

    assert claude.next_item("loud")


async def test_a_gateway_that_dies_before_it_answers_is_told(
    room: LiveRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.human.chat._GIVE_UP_S", 0.5)
    monkeypatch.setattr("csp.human.plain_chat.PATIENCE_S", 0.1)
    join(room, "claude")
    reading, writing = os.pipe()
    out, said = io.StringIO(), io.StringIO()
    with open(reading) as stdin, open(writing, "w") as typed:
        look = Theme(UNICODE, has_colour=False)
        running = asyncio.ensure_future(PlainChat(script_order(room), look, stdin, out, said).run())
        typed.write("@claude before\n")
        typed.flush()
        await wait_until(lambda: "before" in room.journal_texts(), 60.0)
        await asyncio.to_thread(room.kill9)
        typed.write("@claude lost\n")
        typed.close()
        with pytest.raises(Unreachable):
            await running
    await asyncio.to_thread(room.start)

    assert "not sent to claude" in said.getvalue()


def test_board_is_written_on_searched_and_shown(room: LiveRoom) -> None:
    done = plain(
        room, "/board\n/board add the zebra crosses\n/board search zebras\n/board search\n/board n-999999\n"
    )
    note = room.gateway.get("/board")["items"][-1]["id"]

    assert "the board is empty; /board add TEXT writes on it" in done.stdout
    assert f"wrote {note}\n{note} room human: the zebra crosses\n" in done.stdout
    assert "expected what to look for" in done.stdout + done.stderr
    assert "unknown note 'n-999999'" in done.stdout + done.stderr
    assert f"{note} room human: the zebra crosses" in plain(room, f"/board {note}\n").stdout


def test_board_is_summed_up_and_its_forms_are_no_notes(room: LiveRoom) -> None:
    room.gateway.post("/register", {"agentId": "sage"})
    room.gateway.post("/board", {"text": "the zebra crosses"})
    done = plain(room, "/board show\n/board summarise\n/board export\n/board summarise sage\n")
    said = done.stdout + done.stderr

    assert "room human: the zebra crosses" in done.stdout
    assert "expected who writes it" in said
    assert "unknown note 'export'" in said
    assert "sage was asked to sum up " in done.stdout


class Terminal(io.StringIO):
    """Text that is a terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    """A stdin that cannot be read as text."""

    def __next__(self) -> str:  # type: ignore[override]  # typeshed says bytes
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")


async def test_a_bell_rings_only_where_somebody_may_hear_it(room: LiveRoom) -> None:
    look = Theme(UNICODE, has_colour=False)
    for said, expected in ((Terminal(), "\a"), (io.StringIO(), "")):
        PlainChat(script_order(room), look, io.StringIO(), io.StringIO(), said).bell()

        assert said.getvalue() == expected


async def test_a_stdin_that_cannot_be_read_is_said(room: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.human.plain_chat.PATIENCE_S", 0.1)
    said = io.StringIO()
    look = Theme(UNICODE, has_colour=False)
    await PlainChat(script_order(room), look, Broken("x"), io.StringIO(), said).run()

    assert said.getvalue().startswith("stdin cannot be read: 'utf-8' codec")
