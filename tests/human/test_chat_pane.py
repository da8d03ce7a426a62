"""The human pane in a real terminal, before a real gateway."""

import re
import signal
from pathlib import Path

import pytest

from tests.human.scene import CHAT, Pane, come, join, open_pane
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.xdist_group("human pane")


def test_a_message_goes_out_gets_its_tick_and_the_answer_is_shown(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    pane.type("@claude hello there")
    item = claude.next_item("hello there")
    claude.report(item, "confirmed")
    claude.reply(item, "hello human\nsecond line")
    screen = pane.wait_for(r"✓ claude")

    assert re.search(r"^\d\d:\d\d you → claude: hello there$", screen, re.MULTILINE)
    assert re.search(r"^\d\d:\d\d #\d+ claude\n  hello human\n  second line  — claude$", screen, re.MULTILINE)
    assert (item["from"], item["text"]) == ("human", "hello there")


def test_plain_text_goes_to_the_last_target_which_the_prompt_shows(room: LiveRoom, pane: Pane) -> None:
    codex = come(room, pane, "codex")
    come(room, pane, "claude")
    pane.type("@codex first")
    pane.wait_for("^→codex>")
    pane.type("second")

    assert codex.next_item("second")["text"] == "second"
    assert room.gateway.get("/inbox/claude")["items"] == []


def test_several_that_are_named_get_one_message_and_a_doubt_is_asked(room: LiveRoom, pane: Pane) -> None:
    agents = [come(room, pane, name) for name in ("ada", "bob", "cy")]
    pane.type("@ada @bob which of you?")
    found = [agent.next_item("which of you?")["id"] for agent in agents[:2]]
    pane.wait_for("^→ada, bob>")
    pane.type("exit")
    pane.wait_for(r"^\? Send 'exit' to ada, bob\? \(type /quit\) y/N$")
    pane.type("n")
    pane.wait_for("^→ada, bob>")

    assert found[0] == found[1]
    assert room.gateway.get("/inbox/cy")["items"] == []
    assert len(room.gateway.get("/inbox/ada")["items"]) == 1


def test_the_ticks_of_a_message_to_all_name_each_agent(room: LiveRoom, pane: Pane) -> None:
    agents = [come(room, pane, name) for name in ("ada", "bob", "cy")]
    pane.type("@all hello")
    states = [("confirmed", ""), ("confirmed", ""), ("failed", "the CLI has ended")]
    for agent, (state, reason) in zip(agents, states, strict=True):
        agent.report(agent.next_item(), state, reason)

    # On a busy machine the reports come too far apart for one line.
    pane.wait_for(r"✗ cy: the CLI has ended$")
    pane.wait_for(r"✓ ada\b")
    pane.wait_for(r"✓ (?:ada, )?bob\b")


def test_why_a_message_is_held_is_said(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    pane.type("@claude hello")
    claude.report(claude.next_item(), "held", "draft")

    pane.wait_for(r"held for claude: draft \(you have text in its input box")


def test_an_agent_that_is_offline_gets_it_later_as_the_tick_says(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    claude.set_state("offline")
    pane.type("@claude are you there")

    pane.wait_for("held for claude: offline")


def test_an_unknown_agent_or_command_brings_the_nearest(room: LiveRoom, pane: Pane) -> None:
    come(room, pane, "claude")
    pane.type("@cluade hello")
    pane.type("/agnets")

    pane.wait_for("no agent 'cluade' is here .did you mean 'claude'")
    pane.wait_for("unknown command /agnets .did you mean /agents")


def test_200_pasted_lines_are_one_message_shown_folded(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    text = "\n".join(f"line {number}" for number in range(200))
    pane.send(b"@claude ")
    pane.paste(text)
    pane.wait_for("200 lines to all: Enter sends them as one message")
    pane.send(b"\r")
    pane.wait_for(r"19\d more lines from you, sent whole$")

    assert claude.next_item()["text"] == text
    assert pane.history().count("line 100") == 0


def test_an_agents_escapes_are_shown_not_obeyed(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    claude.say("human", "\x1b[2Jred \x1b]0;title\x07 \r fake\x9b5n \u202eabc")
    pane.wait_for(re.escape("␛[2Jred ␛]0;title␇ ␍ fake\\x9b5n \\u202eabc"))

    assert b"\x1b]0;title" not in pane.raw
    assert b"\x1b[2J" not in pane.raw


def test_a_long_message_is_folded_until_it_is_asked_for(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    claude.say("human", "\n".join(f"row {number}" for number in range(100)))
    screen = pane.wait_for(r"more lines from claude, /show \d+$")
    assert "row 50" not in pane.history()
    found = re.search(r"/show (\d+)", screen)
    assert found
    pane.type(found[0])
    pane.wait_for("^ *q closes")
    pane.send(b"G")
    pane.wait_for(r"row 99$")
    pane.send(b"q")
    pane.wait_for("^(→|->)all>")

    assert "row 50" not in pane.screen()


def test_an_agent_that_needs_approval_rings_and_says_what_to_type(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    choices = [{"number": 1, "label": "Yes"}, {"number": 2, "label": "No"}]
    dialog = {"tool": "Bash", "arguments": "rm -rf build", "question": "Proceed?", "choices": choices}
    before = pane.raw.count(b"\a")
    claude.set_state("needs_approval", dialog=dialog)
    pane.wait_for(r"▲ claude asks to use Bash\n  rm -rf build\n  y Approve   n Deny   f Open its pane")
    pane.wait_for(r"▲ claude: rm -rf build  Alt-Y Approve  Alt-N Deny$")
    pane.wait_for("claude NEEDS APPROVAL")
    pane.type("/approve claude 2")
    control = wait_until_sync(lambda: room.gateway.get("/queue")["items"], what="the button")[0]
    claude.gateway.post("/delivery", {"id": control["id"], "state": "confirmed"})
    pane.wait_for("approve ✓ claude")

    assert pane.raw.count(b"\a") == before + 1


def test_an_agent_that_needs_its_human_names_its_pane(room: LiveRoom, pane: Pane) -> None:
    codex = come(room, pane, "codex")
    codex.set_state("needs_human", detail="log in")
    pane.wait_for("▲ codex needs you in its pane\n  log in\n  f Open its pane")

    assert b"\a" in pane.raw


def test_the_bottom_line_shows_states_with_what_waits(room: LiveRoom, pane: Pane) -> None:
    come(room, pane, "claude")
    codex = come(room, pane, "codex")
    codex.set_state("busy")
    pane.wait_for("^claude idle · codex busy$")
    pane.type("@codex later")

    pane.wait_for(r"^claude idle · codex busy \| 1 waiting$")


def test_choices_stand_in_the_bottom_line_while_the_talk_stays(room: LiveRoom) -> None:
    claude = join(room, "claude")
    with open_pane(room, rows=8) as pane:
        for number in range(8):
            claude.say("human", f"line {number} of the talk")
        pane.wait_for("line 7 of the talk")
        before = pane.screen().splitlines()
        pane.send(b"@cl")
        pane.wait_for("^@claude *$")

        assert pane.screen().splitlines()[:6] == before[:6]


def test_commands_and_agents_are_completed(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    pane.send(b"@cl\t hello\r")
    claude.next_item("hello")
    pane.send(b"/paus")
    pane.wait_for(r"/pause +\(hold back an agent's messages")
    pane.send(b"\t cl\t\r")

    pane.wait_for("^paused claude$")


def test_what_was_typed_before_comes_back(room: LiveRoom) -> None:
    join(room, "claude")
    with open_pane(room) as pane:
        pane.type("@claude remember me")
        pane.wait_for("you → claude: remember me")
    with open_pane(room) as pane:
        pane.send(b"\x1b[A")

        pane.wait_for("^→all> @claude remember me")


def test_a_search_of_what_was_typed_shows_its_match_at_once(room: LiveRoom, pane: Pane) -> None:
    claude = come(room, pane, "claude")
    pane.type("@claude a zebra crossing")
    claude.next_item("zebra")
    pane.send(b"\x12zeb")
    pane.wait_for("^→claude> @claude a zebra crossing$")
    pane.send(b"\x07")

    pane.wait_for("^→claude>$")


def test_what_was_said_meanwhile_is_shown_on_return(room: LiveRoom, tmp_path: Path) -> None:
    # The pane that the tests share is a person's too: what it has shown counts as seen in this room.
    alone = {
        "XDG_RUNTIME_DIR": str(tmp_path),
        "CSP_GATEWAY_URL": room.url,
        "CSP_AUTH_TOKEN": room.token,
    }
    claude = join(room, "claude")
    with open_pane(room, env=alone) as pane:
        claude.say("human", "seen before")
        pane.wait_for("seen before")
        pane.send(b"\x04")
        assert pane.end() == 0
    for number in range(35):
        claude.say("human", f"missed {number}.")
    with open_pane(room, env=alone) as pane:
        shown = pane.wait_history("--- now ---")

        assert "--- since you were away (30 messages, the newest of more" in shown
        assert "seen before" not in shown
        assert "missed 4." not in shown
        assert shown.index("missed 5.") < shown.index("missed 34.")


def test_a_lost_gateway_is_said_once_and_nothing_typed_is_lost(room: LiveRoom) -> None:
    claude = join(room, "claude")
    with open_pane(room) as pane:
        room.kill9()
        pane.wait_for("NO GATEWAY")
        pane.type("@claude typed while away")
        pane.wait_for("you → claude: typed while away")
        room.start()
        pane.wait_for("the gateway is back")

        assert claude.next_item("typed while away")
        assert pane.history().count("the gateway is unreachable") == 1


def test_a_gateway_that_comes_later_is_waited_for(room: LiveRoom) -> None:
    claude = join(room, "claude")
    room.stop()
    with open_pane(room, rows=80, env={"CSP_GATEWAY_URL": room.url, "CSP_AUTH_TOKEN": room.token}) as pane:
        pane.wait_for("^NO GATEWAY$")
        pane.type("@claude typed before it came")
        pane.wait_for("you → claude: typed before it came")
        room.start()

        assert claude.next_item("typed before it came")
        pane.wait_for("the gateway is back")
        pane.wait_for("^claude ")


def test_a_token_that_is_no_longer_good_ends_the_pane_with_one_line(room: LiveRoom) -> None:
    env = {"CSP_GATEWAY_URL": room.url, "CSP_AUTH_TOKEN": "wrong"}
    with Pane(CHAT, room.env | {"TERM": "xterm"} | env, room.dir, rows=24, columns=80) as pane:
        assert pane.end() == 1
        pane.wait_for("^csp: token is not valid in this room")
        assert pane.is_cooked


def test_a_second_client_of_the_human_is_shown_too(room: LiveRoom, pane: Pane) -> None:
    come(room, pane, "claude")
    room.gateway.post("/message", {"to": "claude", "content": "from elsewhere"})

    pane.wait_for("you → claude: from elsewhere")


def test_who_comes_and_goes_is_said(room: LiveRoom, pane: Pane) -> None:
    come(room, pane, "claude")
    pane.wait_for("· claude joined$")
    room.gateway.delete("/agents/claude")

    pane.wait_for("· claude was removed")


def test_5000_pasted_lines_are_still_one_message(room: LiveRoom) -> None:
    claude = join(room, "claude")
    text = "\n".join(f"line {number}" for number in range(5000))
    with open_pane(room) as pane:
        pane.paste(text)
        pane.wait_for("5000 lines to all")
        pane.send(b"\r")

        assert claude.next_item()["text"] == text


def test_ctrl_c_clears_the_line_and_says_how_to_leave(room: LiveRoom, pane: Pane) -> None:
    pane.send(b"half a line")
    pane.wait_for("half a line")
    pane.send(b"\x03")
    pane.wait_gone("half a line")
    assert "to leave" not in pane.screen()
    pane.send(b"\x03\x03")

    pane.wait_for("to leave: Ctrl-D or /quit")


@pytest.mark.parametrize("how", ["ctrl-d", "/quit", "sigterm", "sighup"])
def test_leaving_restores_the_terminal(room: LiveRoom, how: str) -> None:
    with open_pane(room) as pane:
        if how == "ctrl-d":
            pane.send(b"\x04")
        elif how == "/quit":
            pane.type("/quit")
        else:
            pane.process.send_signal(signal.SIGTERM if how == "sigterm" else signal.SIGHUP)

        assert pane.end() == 0
        assert pane.raw.rfind(b"\x1b[?2004l") > pane.raw.rfind(b"\x1b[?2004h") > 0
        assert pane.is_cooked
        assert b"Traceback" not in pane.raw


def test_f12_stops_and_keeps_what_is_being_typed(room: LiveRoom, pane: Pane) -> None:
    pane.send(b"not yet sent\x1b[24~")

    pane.wait_for(r"^No mode is running\. .*\n→all> not yet sent")


def test_a_stop_typed_while_the_gateway_dies_is_done_when_it_is_back(room: LiveRoom) -> None:
    with open_pane(room) as pane:
        room.kill9()
        pane.type("Allstop")
        room.start()

        pane.wait_for("^No mode is running")


def test_ctrl_z_without_a_shell_above_says_so(room: LiveRoom, pane: Pane) -> None:
    pane.send(b"\x1a")

    pane.wait_for("Ctrl-Z does nothing here")


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"NO_COLOR": "1"}, "^\\d\\d:\\d\\d you → claude: hello$"),
        (
            {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            "you -> claude: hello$",
        ),
    ],
)
def test_names_say_who_speaks_without_colour_or_unicode(
    room: LiveRoom, env: dict[str, str], expected: str
) -> None:
    join(room, "claude")
    with open_pane(room, env=env) as pane:
        pane.type("@claude hello")
        pane.wait_for(expected)

        assert "NO_COLOR" not in env or b"\x1b[1;36m" not in pane.raw


def test_it_works_in_80_by_10(room: LiveRoom) -> None:
    for number in range(7):
        join(room, f"agent-{number}")
    claude = join(room, "claude")
    with open_pane(room, rows=10) as pane:
        pane.wait_for("^8 idle$")
        pane.send(b"/")
        pane.wait_for("/agents")
        claude.say("human", "hello from a small screen")
        pane.wait_for("hello from a small screen")
        pane.send(b"\x03@claude hi\r")

        assert claude.next_item("hi")
        pane.wait_for("^→claude>")


def test_a_resize_leaves_the_prompt_whole(room: LiveRoom) -> None:
    claude = join(room, "claude")
    with open_pane(room, rows=24, columns=120) as pane:
        pane.send(b"typing ")
        pane.resize(12, 60)
        claude.say("human", "after the resize")
        pane.wait_for("after the resize")
        pane.send(b"on")

        pane.wait_for("^→all> typing on\nclaude idle")
