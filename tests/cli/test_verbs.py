"""Every verb against a real gateway."""

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pexpect
import pytest

from csp.cli.status import _WHY
from csp.config import Settings
from csp.protocol.enums import HeldReason
from csp.room_registry import running_rooms
from tests.cli.live import TIMEOUT_S, Place
from tests.forks import run
from tests.rooms import save_agent_token


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Place]:
    """A place without a gateway."""
    place = Place(tmp_path)
    yield place
    place.close()


@pytest.fixture
def fresh(bare: Place) -> Place:
    """A place with a room of its own, for tests that end it or count its history."""
    bare.gateway()
    return bare


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("shared"))
    place.gateway()
    yield place
    place.close()


@pytest.fixture
def place(shared: Place) -> Iterator[Place]:
    """A place with a running room and nobody in it; its history is that of the tests before."""
    yield shared
    shared.empty()


# --- send ----------------------------------------------------------------------------------------


def test_send_prints_the_id_as_data_and_the_number_as_talk(place: Place) -> None:
    claude = place.agent("claude")
    done = place.csp("send", "claude", "hello", "there")
    item = claude.next_item()

    assert (done.code, done.out, done.err) == (0, f"{item['id']}\n", f"sent #{item['seq']} to claude\n")
    assert (item["from"], item["text"]) == ("human", "hello there")


def test_send_prints_the_whole_answer_as_json(place: Place) -> None:
    place.agent("claude")
    place.agent("codex")
    done = place.csp("send", "all", "hello", "--json", "--id", "mine", "--thread", "side", "--urgent")

    assert done.json["id"] == "mine"
    assert sorted(done.json["recipients"]) == ["claude", "codex"]


def test_the_same_id_is_never_sent_twice(place: Place) -> None:
    claude = place.agent("claude")
    answers = [place.csp("send", "claude", "hello", "--id", "once", "--json").json for _ in range(2)]

    assert answers[0] == answers[1]
    assert len(claude.gateway.get("/inbox/claude")["items"]) == 1


def test_send_reads_a_text_from_stdin(place: Place) -> None:
    claude = place.agent("claude")
    place.csp("send", "claude", "-", stdin="one\n\ntwo\n")

    assert claude.next_item()["text"] == "one\n\ntwo"


def test_an_empty_text_is_a_misuse(place: Place) -> None:
    done = place.csp("send", "claude")

    assert (done.code, done.err) == (2, "csp: expected text to send, got nothing (see: csp send --help)\n")


def test_a_text_over_the_limit_is_refused_before_it_is_read_whole(place: Place) -> None:
    done = place.csp("send", "claude", "-", stdin="x" * 300_000)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("csp: text is over 262144 bytes")


def test_an_unknown_agent_brings_the_nearest(fresh: Place) -> None:
    fresh.agent("claude")
    done = fresh.csp("send", "cluade", "hello")

    assert done.code == 1
    assert "'cluade'" in done.err
    assert "'claude'" in done.err


def test_from_last_quotes_the_last_words_of_an_agent(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    place.csp("send", "claude", "question")
    claude.reply(claude.next_item(), "first line\nsecond line")
    place.csp("send", "codex", "check this", "--from-last", "claude")

    assert codex.next_item()["text"] == "check this\n\nclaude said:\n> first line\n> second line"


def test_from_last_needs_no_text_of_its_own(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    place.csp("send", "claude", "question")
    claude.reply(claude.next_item(), "answer")
    done = place.csp("send", "codex", "--from-last", "claude")

    assert done.code == 0
    assert codex.next_item()["text"] == "claude said:\n> answer"


def test_from_last_of_a_silent_agent_fails(place: Place) -> None:
    place.agent("claude")
    done = place.csp("send", "claude", "x", "--from-last", "codex")

    assert (done.code, done.err) == (1, "csp: 'codex' has sent no message yet (see: csp history)\n")


def test_the_token_of_the_environment_decides_the_sender(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    env = {"CSP_GATEWAY_URL": place.room().url, "CSP_AUTH_TOKEN": codex.token, "CSP_AGENT": "codex"}
    place.csp("send", "claude", "hello", **env)

    assert claude.next_item()["from"] == "codex"


# --- send --wait ---------------------------------------------------------------------------------


def test_wait_prints_the_reply_alone(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("send", "claude", "question", "--wait")
    claude.reply(claude.next_item(), "the answer\nin two lines")
    out, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, out) == (0, "the answer\nin two lines\n")
    assert err.startswith("sent ")


def test_wait_prints_each_reply_with_its_name(place: Place) -> None:
    agents = [place.agent("claude"), place.agent("codex")]
    process = place.start("send", "all", "question", "--wait")
    for agent in agents:
        agent.reply(agent.next_item(), f"I am {agent.id}")
    out, _ = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 0
    assert sorted(out.splitlines()) == ["claude: I am claude", "codex: I am codex"]


def test_wait_takes_the_first_reply_of_each(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    process = place.start("send", "all", "question", "--wait")
    item = claude.next_item()
    claude.reply(item, "first")
    claude.reply(item, "second")
    codex.reply(codex.next_item(), "mine")
    out, _ = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, out) == (0, "claude: first\ncodex: mine\n")


def test_wait_says_at_once_what_was_lost(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    process = place.start("send", "all", "question", "--wait", "--json")
    claude.report(claude.next_item(), "failed", "no composer")
    codex.reply(codex.next_item(), "fine")
    out, err = process.communicate(timeout=TIMEOUT_S)
    answer = json.loads(out)

    assert process.returncode == 1
    assert "csp: claude: failed: no composer\n" in err
    assert answer["failed"] == {"claude": "failed: no composer"}
    assert answer["replies"]["codex"]["text"] == "fine"


def test_wait_says_that_a_message_was_withdrawn(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("send", "claude", "question", "--wait")
    item = claude.next_item()
    cancelled = place.csp("cancel", item["id"])
    out, err = process.communicate(timeout=TIMEOUT_S)

    assert (cancelled.code, cancelled.err) == (0, f"cancelled #{item['seq']}\n")
    assert (process.returncode, out) == (1, "")
    assert "csp: claude: withdrawn" in err


def test_wait_ends_with_the_reason_after_its_timeout(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("send", "claude", "question", "--wait", "--timeout", "1.5")
    claude.report(claude.next_item(), "held", "busy")
    _, err = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 1
    assert "csp: claude: no reply within 1.5 s (busy)\n" in err


def test_wait_outlives_a_restart_of_the_gateway(fresh: Place) -> None:
    claude = fresh.agent("claude")
    process = fresh.start("send", "claude", "question", "--wait")
    item = claude.next_item()
    fresh.running[0].send_signal(signal.SIGKILL)
    fresh.running[0].wait()
    fresh.gateway("--port", fresh.room_port(claude))
    claude.reply(item, "still here")
    out, _ = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, out) == (0, "still here\n")


def test_wait_shows_a_person_what_it_waits_for(place: Place) -> None:
    claude = place.agent("claude")
    child = place.terminal("send", "claude", "question", "--wait")
    item = claude.next_item()
    claude.report(item, "held", "busy")
    child.expect_exact("waiting for claude (busy)…", timeout=TIMEOUT_S)
    claude.reply(item, "\x1b[2Jdone")
    child.expect(pexpect.EOF, timeout=TIMEOUT_S)
    child.close()

    assert child.exitstatus == 0
    assert "\x1b[2J" not in str(child.before)
    assert "␛[2Jdone" in str(child.before)


def test_ctrl_c_ends_a_wait_with_a_clean_line(place: Place) -> None:
    place.agent("claude")
    child = place.terminal("send", "claude", "question", "--wait")
    child.expect_exact("waiting for claude (queued)…", timeout=TIMEOUT_S)
    child.sendintr()
    child.expect(pexpect.EOF, timeout=TIMEOUT_S)
    child.close()

    assert child.exitstatus == 130
    assert str(child.before).removeprefix("^C") == "\r\x1b[K"


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ("interrupted", "its turn was interrupted"),
        ("failed", "its turn failed"),
        ("limited", "it has reached a usage limit"),
    ],
)
@pytest.mark.parametrize("text", ["", "half of"])
def test_wait_tells_how_a_turn_broke_off(place: Place, ending: str, why: str, text: str) -> None:
    claude = place.agent("claude")
    process = place.start("send", "claude", "question", "--wait")
    item = claude.next_item()
    claude.gateway.post("/agent-output", {"content": text, "replyTo": item["id"], "ending": ending})
    out, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, out) == (1, f"{text}\n" if text else "")
    assert err.endswith(f"csp: claude: {why}\n")


def test_wait_is_not_ended_by_activity(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("send", "claude", "question", "--wait")
    item = claude.next_item()
    claude.gateway.post("/agent-output", {"content": "I look", "replyTo": item["id"], "activity": True})
    claude.gateway.post("/agent-output", {"content": "@working", "replyTo": item["id"]})
    claude.reply(item, "42")
    out, _ = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, out) == (0, "42\n")


def test_history_marks_a_turn_that_broke_off(fresh: Place) -> None:
    claude = fresh.agent("claude")
    for text in ("", "half of"):
        claude.gateway.post("/agent-output", {"content": text, "ending": "interrupted"})
    first, second = fresh.csp("history").out.splitlines()

    assert first.endswith(" claude: (interrupted)")
    assert second.endswith(" claude: (interrupted) half of")


# --- in a pane -----------------------------------------------------------------------------------


def test_a_command_in_a_pane_speaks_as_its_agent(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    settings = replace(Settings(), state_dir=place.state)
    path = save_agent_token(settings, "default", "codex", codex.token)
    done = place.csp("send", "claude", "hello", CSP_AGENT="codex")
    by_url = place.csp("send", "claude", "hello", CSP_AGENT="codex", CSP_GATEWAY_URL=place.room().url)

    assert (done.code, by_url.code) == (0, 0)
    assert claude.next_item()["from"] == "codex"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_command_in_a_pane_never_speaks_as_the_human(place: Place) -> None:
    claude = place.agent("claude")
    done = place.csp("send", "claude", "hello", CSP_AGENT="gemini")

    assert (done.code, done.out) == (1, "")
    assert "no token of agent 'gemini' in room 'default'" in done.err
    assert claude.gateway.get("/inbox/claude")["items"] == []


# --- acting on messages --------------------------------------------------------------------------


def test_resend_is_a_new_message(place: Place) -> None:
    claude = place.agent("claude")
    first = place.csp("send", "claude", "hello").out.strip()
    claude.report(claude.next_item(), "failed", "no composer")
    done = place.csp("resend", first)
    item = claude.next_item()

    assert (done.code, done.out) == (0, f"{item['id']}\n")
    assert (item["text"], item["id"] != first) == ("hello", True)


@pytest.mark.parametrize("sign", ["", "#"])
def test_a_message_may_be_named_by_its_number_in_the_history(place: Place, sign: str) -> None:
    claude = place.agent("claude")
    number = place.csp("send", "claude", "my number", "--json").json["seq"]
    claude.report(claude.next_item(), "failed", "no composer")
    assert f"#{number} " in place.csp("history").out
    done = place.csp("resend", f"{sign}{number}")

    assert (done.code, done.err[:14]) == (0, "sent again as ")
    assert claude.next_item()["text"] == "my number"
    assert "unknown message '999999'" in place.csp("resend", "999999").err


@pytest.mark.parametrize("verb", ["resend", "cancel", "continue"])
def test_an_unknown_message_is_named(place: Place, verb: str) -> None:
    done = place.csp(verb, "m-999")

    assert done.code == 1
    assert "'m-999'" in done.err


# --- looking -------------------------------------------------------------------------------------


def test_agents_are_listed_with_a_word_for_their_state(place: Place) -> None:
    empty = place.csp("agents")
    claude = place.agent("claude")
    claude.gateway.post("/state", {"state": "busy", "detail": "running tests"})
    shown, data = place.csp("agents"), place.csp("agents", "--json")

    assert empty.out == "no agents\n"
    assert shown.out.split() == ["claude", "busy", "cli", "running", "tests"]
    assert [agent["id"] for agent in data.json] == ["claude"]


def test_what_an_agent_asks_of_a_person_is_shown(place: Place) -> None:
    claude = place.agent("claude")
    choices = [{"number": 1, "label": "Yes"}, {"number": 2, "label": "No"}]
    dialog = {"tool": "Bash", "arguments": "rm -r\n  build", "question": "May I?", "choices": choices}
    claude.gateway.post("/state", {"state": "needs_approval", "detail": "Bash", "dialog": dialog})
    shown, data = place.csp("status").out.splitlines(), place.csp("status", "--json").json
    agents = place.csp("agents").out.splitlines()

    assert shown[1].startswith("needs you: claude asks to use Bash (")
    assert [line.split() for line in shown[2:6]] == [
        ["rm", "-r", "build"],
        ["Approve", "csp", "approve", "claude", "1"],
        ["Deny", "csp", "deny", "claude", "2"],
        ["Open", "its", "pane", "in", "the", "room:", "/focus", "claude"],
    ]
    assert shown[6].split() == ["claude", "needs_approval", "cli", "Bash:", "rm", "-r", "build"]
    assert [item["id"] for item in data["attention"]] == ["approval:claude"]
    assert [line.strip() for line in agents[1:]] == [
        "wants Bash: rm -r build",
        "May I?",
        "1 Yes · 2 No",
        "answer with: csp approve claude [--choice N], or csp deny claude",
    ]


def test_rules_are_given_listed_and_removed(place: Place) -> None:
    place.agent("claude")
    added = place.csp("allow", "claude", "--json", "--", "pytest", "-q").json["rule"]
    listed = place.csp("rules").out
    removed = place.csp("unallow", f"#{added['number']}")

    assert listed.split() == [f"#{added['number']}", "claude", "may", "run:", "pytest", "-q"]
    assert removed.err == "claude has to ask again for: pytest -q\n"
    assert place.csp("rules", "--json").json == {"items": []}


def test_a_limit_is_shown_with_its_end(place: Place) -> None:
    claude = place.agent("claude")
    ends = [time.time() + 60, time.time() + 90 * 86400]
    shown = []
    for until in ends:
        claude.gateway.post("/state", {"state": "limited", "until": until})
        shown.append(place.csp("agents").out.split())

    assert shown[0][1:4] == ["limited", "until", time.strftime("%H:%M", time.localtime(ends[0]))]
    assert shown[1][3] == time.strftime("%Y-%m-%d", time.localtime(ends[1]))


def test_a_screen_that_needs_a_person_is_named(place: Place) -> None:
    claude = place.agent("claude")
    claude.gateway.post("/state", {"state": "needs_human", "detail": "trust: do you trust this folder?"})

    (row,) = place.csp("agents").out.splitlines()
    assert row.split("  ") == ["claude", "needs_human", "cli", "trust: do you trust this folder?"]


def test_every_reason_to_wait_is_a_sentence(place: Place) -> None:
    claude = place.agent("claude")
    place.csp("send", "claude", "hello")
    item = claude.next_item()
    shown = {"queued": place.csp("status").out}
    for reason in ("starting", "busy", "dialog", "typing", "draft", "stuck", "paused"):
        claude.report(item, "held", reason)
        shown[reason] = place.csp("status").out
    claude.report(item, "typed")
    shown["typed"] = place.csp("status").out

    for reason, out in shown.items():
        (line,) = [line for line in out.splitlines() if line.startswith("waiting: ")]
        assert re.search(rf"\({reason}\)|: {reason} for", line)
        assert re.search(r" for \d+ s, \w+ \w+ .*: hello$", line), line


def test_every_reason_of_the_wire_has_its_sentence() -> None:
    assert set(HeldReason) | {"queued", "typed"} == set(_WHY)


def test_status_says_what_waits_for_whom(place: Place) -> None:
    claude = place.agent("claude")
    place.csp("send", "claude", "a long\ntext " + "x" * 100)
    claude.report(claude.next_item(), "held", "dialog")
    done = place.csp("status")
    room, agent, waiting = done.out.splitlines()

    assert room.startswith(f"room default at {place.room().url}: ok, seq ")
    assert agent.split() == ["claude", "idle", "cli", "1", "waiting"]
    assert re.fullmatch(
        r"waiting: \S+ from human to claude: held \(dialog\) for \d+ s, claude has a dialog open; "
        r"answer it in its pane or with csp approve or csp deny: a long text x+…",
        waiting,
    )


def test_a_long_queue_is_counted_not_poured_out(place: Place) -> None:
    claude, codex = place.agent("claude"), place.agent("codex")
    for number in range(25):
        codex.gateway.post("/message", {"to": "claude", "content": f"hello {number}"})
    lines = [line for line in place.csp("status").out.splitlines() if line.startswith("waiting: ")]

    assert claude.next_item()["text"] == "hello 0"
    assert len(lines) == 21
    assert lines[-1] == "waiting: 5 more; list all with: csp status --json"


def test_status_names_the_sessions_that_run(place: Place) -> None:
    place.agent("claude")
    place.agent("codex")
    place.csp("mode", "set", "debate", "tabs or spaces", "--rounds", "2")
    running = place.csp("status").out.splitlines()[1]
    place.csp("stop")
    ended = place.csp("status")

    assert re.fullmatch(r"debate \S+: running, round 1 of 2, tabs or spaces", running)
    assert "debate" not in ended.out
    assert place.csp("status", "--json").json["sessions"][0]["reason"] == "stopped_by_user"


def test_status_as_json_has_everything(place: Place) -> None:
    place.agent("claude")
    place.csp("send", "claude", "hello")
    answer = place.csp("status", "--json").json

    assert answer["health"]["room"] == "default"
    assert [agent["id"] for agent in answer["agents"]] == ["claude"]
    assert [item["agent"] for item in answer["queue"]] == ["claude"]


def test_an_agent_sees_a_status_without_the_queue(place: Place) -> None:
    claude = place.agent("claude")
    done = place.csp("status", CSP_GATEWAY_URL=place.room().url, CSP_AUTH_TOKEN=claude.token)

    assert done.code == 0
    assert "waiting messages are shown only with the room's token" in done.out


# --- control -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        ("pause", "paused"),
        ("resume", "resumed"),
        ("share", "sharing"),
        ("noshare", "no longer sharing"),
        ("restart", "asked to restart"),
    ],
)
def test_each_switch_of_an_agent_can_be_pressed(place: Place, verb: str, said: str) -> None:
    place.agent("claude")
    done = place.csp(verb, "claude")

    assert (done.code, done.out, done.err) == (0, "", f"{said} claude\n")


@pytest.mark.parametrize(
    ("verb", "said"), [("interrupt", "interrupted"), ("approve", "approved"), ("deny", "denied")]
)
def test_a_button_is_done_when_the_agent_says_so(place: Place, verb: str, said: str) -> None:
    claude = place.agent("claude")
    process = place.start(verb, "claude")
    item = claude.next_item()
    is_waiting = process.poll() is None
    claude.report(item, "typed")
    claude.report(item, "confirmed")
    out, err = process.communicate(timeout=TIMEOUT_S)

    assert (is_waiting, item["control"]) == (True, verb)
    assert (process.returncode, out, err) == (0, "", f"{said} claude\n")


def test_a_button_that_did_not_work_says_why(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("approve", "claude")
    claude.report(claude.next_item(), "failed", "no dialog is open")
    out, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, out, err) == (1, "", "csp: approve claude: failed: no dialog is open\n")


def test_a_button_without_proof_says_so(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("interrupt", "claude")
    claude.report(claude.next_item(), "submitted")
    _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err) == (0, "sent interrupt to claude, which does not confirm it\n")


def test_a_button_for_an_agent_that_goes_is_withdrawn(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("deny", "claude")
    claude.next_item()
    place.csp("remove", "claude")
    _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err) == (1, "csp: deny claude: withdrawn\n")


def test_approve_carries_the_choice(place: Place) -> None:
    claude = place.agent("claude")
    process = place.start("approve", "claude", "--choice", "2", "--json")
    item = claude.next_item()
    claude.report(item, "failed", "no choice 2")
    out, _ = process.communicate(timeout=TIMEOUT_S)
    answer = json.loads(out)

    assert (item["choice"], process.returncode) == (2, 1)
    assert (answer["id"], answer["state"], answer["reason"]) == (item["id"], "failed", "no choice 2")


def test_a_button_shows_a_person_what_it_waits_for(place: Place) -> None:
    claude = place.agent("claude")
    child = place.terminal("approve", "claude")
    item = claude.next_item()
    child.expect_exact("waiting for claude (queued)…", timeout=TIMEOUT_S)
    claude.report(item, "confirmed")
    child.expect(pexpect.EOF, timeout=TIMEOUT_S)
    child.close()

    assert child.exitstatus == 0
    assert "approved claude" in str(child.before)


def test_a_button_outlives_a_restart_of_the_gateway(fresh: Place) -> None:
    claude = fresh.agent("claude")
    process = fresh.start("approve", "claude")
    item = claude.next_item()
    fresh.running[0].send_signal(signal.SIGKILL)
    fresh.running[0].wait()
    fresh.gateway("--port", fresh.room_port(claude))
    claude.report(item, "confirmed")
    _, err = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, err) == (0, "approved claude\n")


def test_token_is_the_one_that_opens_the_room(place: Place) -> None:
    done = place.csp("token")

    assert (done.code, done.out, done.err) == (0, place.room().token + "\n", "")


def test_remove_takes_an_agent_out(place: Place) -> None:
    place.agent("claude")
    done = place.csp("remove", "claude")

    assert (done.code, done.err) == (0, "removed claude\n")
    assert place.csp("agents", "--json").json == []
    assert place.csp("remove", "claude").code == 1


def test_stop_without_a_session_says_so(place: Place) -> None:
    done = place.csp("stop")

    assert (done.code, done.err) == (0, "No mode is running. To stop an agent: csp interrupt AGENT\n")
    assert place.csp("stop", "--all", "--json").json["success"] is True


# --- history -------------------------------------------------------------------------------------


def test_history_shows_what_was_said(fresh: Place) -> None:
    claude = fresh.agent("claude")
    fresh.csp("send", "claude", "one\ntwo")
    claude.reply(claude.next_item(), "three")
    lines = fresh.csp("history", "--agent", "claude").out.splitlines()

    assert lines[-3].endswith(" human -> claude: one")
    assert lines[-2] == "    two"
    assert lines[-1].endswith(": three")


def test_history_is_limited_searched_filtered(fresh: Place) -> None:
    fresh.agent("claude")
    for text in ("red apple", "green apple", "red pear"):
        fresh.csp("send", "claude", text)
    texts = [item["text"] for item in fresh.csp("history", "--json", "--types", "human_message").json]
    found = [item["text"] for item in fresh.csp("history", "--json", "--search", "apple").json]
    last = fresh.csp("history", "--json", "--limit", "1").json
    before = fresh.csp("history", "--json", "--before", str(last[0]["seq"]), "--limit", "1").json
    after = fresh.csp("history", "--json", "--after", str(before[0]["seq"])).json

    assert texts == ["red apple", "green apple", "red pear"]
    assert found == ["red apple", "green apple"]
    assert [item["text"] for item in (*last, *before, *after)] == ["red pear", "green apple", "red pear"]


def test_follow_goes_on_through_a_restart_on_another_port_until_ctrl_c(fresh: Place) -> None:
    fresh.agent("claude")
    fresh.csp("send", "claude", "first")
    process = fresh.start("history", "--follow", "--json", "--types", "human_message")
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline())]
    fresh.csp("send", "claude", "second")
    lines.append(json.loads(process.stdout.readline()))
    fresh.running[0].send_signal(signal.SIGTERM)
    fresh.running[0].wait()
    fresh.gateway()
    fresh.csp("send", "claude", "third")
    lines.append(json.loads(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TIMEOUT_S)

    assert [line["text"] for line in lines] == ["first", "second", "third"]
    assert (process.returncode, err) == (130, "")


def test_follow_tells_a_person_that_the_gateway_is_away(fresh: Place) -> None:
    claude = fresh.agent("claude")
    child = fresh.terminal("history", "--follow")
    fresh.csp("send", "claude", "first")
    child.expect_exact("human -> claude: first", timeout=TIMEOUT_S)
    fresh.running[0].kill()
    fresh.running[0].communicate()
    child.expect_exact("; waiting for it…", timeout=TIMEOUT_S)
    fresh.gateway("--port", fresh.room_port(claude))
    child.expect_exact("\r\x1b[K", timeout=TIMEOUT_S)
    fresh.csp("send", "claude", "second")
    child.expect_exact("human -> claude: second", timeout=TIMEOUT_S)
    child.close(force=True)


def test_prune_removes_what_is_old(fresh: Place) -> None:
    claude = fresh.agent("claude")
    for text in ("one", "two", "three"):
        fresh.csp("send", "claude", text)
        claude.reply(claude.next_item(), "noted")
    last = fresh.csp("history", "--json", "--limit", "1", "--types", "human_message").json[0]["seq"]
    asked = fresh.csp("history", "prune", "--before", str(last))
    done = fresh.csp("history", "prune", "--before", str(last), "--yes")
    left = fresh.csp("history", "--json", "--types", "human_message").json

    assert asked.code == 2
    assert "add --yes to proceed" in asked.err
    assert (done.code, done.err) == (0, f"removed all events before #{last}\n")
    assert [item["text"] for item in left] == ["three"]


def test_prune_keeps_as_many_as_are_wanted(fresh: Place) -> None:
    fresh.agent("claude")
    fresh.csp("send", "claude", "one")
    seq = fresh.csp("status", "--json").json["health"]["seq"]
    nothing = fresh.csp("history", "prune", "--keep", str(seq + 10), "--yes")
    done = fresh.csp("history", "prune", "--keep", "1", "--yes")

    assert (nothing.code, nothing.err) == (0, "nothing to prune\n")
    assert (done.code, done.err) == (0, f"removed all events before #{seq}\n")


@pytest.mark.parametrize("flags", [[], ["--before", "1", "--keep", "1"]])
def test_prune_wants_one_measure(fresh: Place, flags: list[str]) -> None:
    done = fresh.csp("history", "prune", *flags, "--yes")

    assert (done.code, done.err) == (2, "csp: expected prune with --before SEQ or with --keep N\n")


def test_redact_takes_a_text_out(fresh: Place) -> None:
    fresh.agent("claude")
    message = fresh.csp("send", "claude", "my password").out.strip()
    done = fresh.csp("history", "redact", message, "--yes")

    assert (done.code, done.err) == (0, f"redacted {message}\n")
    assert "password" not in fresh.csp("history", "--json").out
    assert "password" not in (fresh.history / "default/journal.jsonl").read_text()


def test_a_person_is_asked_before_a_text_is_gone(place: Place) -> None:
    place.agent("claude")
    message = place.csp("send", "claude", "keep me").out.strip()
    child = place.terminal("history", "redact", message)
    child.expect_exact("[y/N]", timeout=TIMEOUT_S)
    child.sendline("n")
    child.expect(pexpect.EOF, timeout=TIMEOUT_S)
    child.close()

    assert child.exitstatus == 1
    assert "keep me" in place.csp("history").out


def test_an_unknown_form_of_history_is_a_misuse(place: Place) -> None:
    done = place.csp("history", "prnue")

    assert (done.code, done.err) == (2, "csp: expected prune or redact ID, got 'prnue'\n")


def test_export_prints_everything_oldest_first(fresh: Place) -> None:
    claude = fresh.agent("claude")
    for number in range(5):
        fresh.csp("send", "claude", f"text {number}\n```\nnever closed")
    claude.reply(claude.next_item(), "done")
    whole, data = fresh.csp("export").out, fresh.csp("export", "--format", "json").json
    newest = fresh.csp("export", "--format", "json", "--limit", "2").json

    assert whole.startswith("# Room default\n\n## 2")
    assert [whole.index(f"\n> text {number}\n> ```\n") for number in range(5)] == sorted(
        whole.index(f"\n> text {number}\n") for number in range(5)
    )
    assert [item["text"][:6] for item in data if item["sender"] == "human"] == [f"text {n}" for n in range(5)]
    assert newest == data[-2:]


def test_export_of_an_empty_room_is_still_a_document(fresh: Place) -> None:
    assert fresh.csp("export", "--format", "json").json == []
    assert fresh.csp("export").out == "# Room default\n"


# --- gateway and doctor --------------------------------------------------------------------------


def test_a_gateway_is_found_from_a_directory_below_its_own(bare: Place) -> None:
    below = bare.home / "work/a/b"
    below.mkdir(parents=True)
    bare.gateway("--dir", str(bare.home / "work"))

    assert (bare.room().dir, bare.room().room) == (bare.home / "work", "work")
    done = run(["agents"], below, bare.env())
    assert (done.returncode, done.stdout) == (0, "no agents\n")


def test_two_rooms_are_told_apart(bare: Place) -> None:
    for name in ("one", "two"):
        folder = bare.home / name
        folder.mkdir()
        bare.gateway("--room", name, "--dir", str(folder))
    done = bare.csp("agents")
    named = bare.csp("status", "--room", "two", "--json")

    assert done.code == 1
    assert done.err == (
        f"csp: the room of '{bare.home}' is not running; running elsewhere: one ({bare.home}/one),"
        f" two ({bare.home}/two) (open it with: csp up; choose another one with --room NAME)\n"
    )
    assert named.json["health"]["room"] == "two"
    # A clone that CSP runs from may have stopped rooms of its own.
    rows = [row for row in bare.csp("rooms", "--json").json if row["state"] != "stopped"]
    assert [row["room"] for row in rows] == ["one", "two"]


def test_a_second_gateway_of_a_room_is_refused(place: Place) -> None:
    done = place.csp("gateway", "--port", "0", "--history", str(place.history))

    assert done.code == 1
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith("csp: ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--tls-cert", "nosuch.pem"], "--tls-cert: expected a file, got 'nosuch.pem'"),
        (["--dir", "nosuch"], "--dir: expected a directory, got 'nosuch'"),
        (["--durability", "some"], "--durability: expected one of none, flush, fsync, got 'some'"),
        (
            ["--room", "No Room"],
            "--room: expected a room name of a-z, 0-9 or -, at most 32 characters long, got 'No Room'",
        ),
    ],
)
def test_a_gateway_checks_what_it_was_given(bare: Place, argv: list[str], message: str) -> None:
    done = bare.csp("gateway", *argv)

    assert (done.code, done.err) == (2, f"csp: {message}\n")


def test_a_stopped_gateway_leaves_no_room(fresh: Place) -> None:
    fresh.running[0].send_signal(signal.SIGINT)
    fresh.running[0].communicate(timeout=TIMEOUT_S)

    assert fresh.running[0].returncode == 0
    assert running_rooms(fresh.state) == []
    assert list(fresh.state.iterdir()) == []


def test_a_dead_gateway_is_not_taken_for_a_running_one(fresh: Place) -> None:
    fresh.running[0].kill()
    fresh.running[0].communicate()
    done = fresh.csp("agents")

    assert (done.code, done.err) == (1, "csp: no room is running; start one with: csp up\n")


def test_doctor_checks_the_machine(place: Place) -> None:
    done = place.csp("doctor", "--json")

    assert done.code == 0
    assert [finding["check"] for finding in done.json] == [
        *("python", "tmux", "package", "terminal", "state folder", "history", "port", "room default"),
        *("cli claude", "cli codex", "cli gemini"),
    ]


def test_doctor_finds_what_is_wrong(bare: Place) -> None:
    bare.state.mkdir(parents=True, mode=0o755)
    os.chmod(bare.state, 0o755)
    (bare.home / "file").write_text("")
    done = bare.csp("doctor", "--history", str(bare.home / "file"))
    bad = [line for line in done.out.splitlines() if line.startswith("FAIL")]

    assert done.code == 1
    assert [line.split(":")[0] for line in bad] == ["FAIL  state folder", "FAIL  history"]


def test_doctor_reads_a_journal_of_a_running_room(fresh: Place) -> None:
    fresh.agent("claude")
    done = fresh.csp("doctor", "--journal")

    assert done.code == 0
    assert done.out == f"{fresh.history}/default/journal.jsonl: 1 lines checked, no problems\n"


def test_doctor_finds_a_damaged_line_of_a_stopped_room(fresh: Place) -> None:
    fresh.agent("claude")
    fresh.csp("send", "claude", "hello")
    fresh.running[0].send_signal(signal.SIGTERM)
    fresh.running[0].communicate(timeout=TIMEOUT_S)
    journal = fresh.history / "default/journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"hello", b"jello"))
    shown = fresh.csp("doctor", "--journal", "--history", str(fresh.history))
    data = fresh.csp("doctor", "--journal", "--history", str(fresh.history), "--json")

    assert (shown.code, data.code) == (1, 1)
    assert "line does not match its checksum" in shown.out
    assert data.json["problems"] == 1


def test_doctor_names_a_journal_that_is_not_there(bare: Place) -> None:
    done = bare.csp("doctor", "--journal", "--history", str(bare.history))

    assert done.code == 1
    assert done.err.startswith(f"csp: no journal at '{bare.history}/default/journal.jsonl'")


# --- speed ---------------------------------------------------------------------------------------


def test_send_loads_nothing_heavy(place: Place) -> None:
    place.agent("claude")
    done = place.python("send", "claude", "hello", PYTHONPROFILEIMPORTTIME="1")
    loaded = {line.rpartition("|")[2].strip() for line in done.err.splitlines()}

    assert "csp.http_client" in loaded
    assert loaded & {"aiohttp", "asyncio", "websockets", "msgspec", "logging", "difflib", "tomllib"} == set()
