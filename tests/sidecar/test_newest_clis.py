"""What the newest real CLIs do: start screens, files that they attach, messages past the room."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import SetUp
from tests.models.rules import Call, Rule, Shell, Text
from tests.sidecar.newest import PATIENCE_S, addresses, scene

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("newest clis")]

PROFILE: Final = Path(__file__).parents[2] / "csp" / "clis" / "claude" / "profile.toml"


def test_a_file_that_claude_attaches_all_the_same_pauses_it(tmp_path: Path) -> None:
    """The profile without its sign is a version of Claude that no longer respects it."""
    profile = tmp_path / "claude.toml"
    text, changes = re.subn(r'neutralise_at = ".*"', 'neutralise_at = ""', PROFILE.read_text("utf-8"))
    assert changes == 1
    profile.write_text(text)
    with scene(tmp_path) as play:
        seat = play.sit("claude", "--profile-file", str(profile))
        seat.wait_ready("idle", PATIENCE_S)
        play.stage.send("claude", "look at @/etc/hostname now")
        play.wait(lambda: play.stage.agent("claude").get("state") == "paused", "the pause")
        later = play.stage.send("claude", "and go on")
        play.stage.wait_for(later, "claude", "held", timeout_s=PATIENCE_S)

        assert play.stage.state(later, "claude") == ("held", "paused")
        assert [one for one in play.notices() if "/etc/hostname" in one and "csp resume claude" in one]
        play.press("resume", "claude")
        assert play.answer(later, "claude") == "ok"


HELPER: Final = Call(name="Agent", arguments={"description": "a helper", "prompt": "do the sub task"})
SECRET: Final = "the secret is a heron"


@pytest.mark.full
@pytest.mark.parametrize("has_tools", [False, True])
def test_two_claudes_reach_each_other_through_the_room_alone(tmp_path: Path, has_tools: bool) -> None:
    """Also one that was given its tools back is not heard: the other one refuses."""
    sub = Rule(match="sub task", kind="sub", reply=[Text(text="The helper's own words.")])
    with scene(tmp_path, sub) as play:
        first = play.cli("claude", SetUp(env={"CSP_CLAUDE_PEERS": "1"} if has_tools else {}))
        own_url = {"ANTHROPIC_BASE_URL": play.server.url("claude-2")}
        play.stage.seat("claude", first.argv, env=first.env, cwd=first.cwd).wait_ready("idle", PATIENCE_S)
        before = addresses(first.home)
        second = play.stage.seat("claude-2", first.argv, env=first.env | own_url, cwd=first.cwd)
        second.wait_ready("idle", PATIENCE_S)
        # One that refuses may not even have an address.
        to = next((to for pid, to in addresses(first.home).items() if pid not in before), "claude-2")
        sends = Call(name="SendMessage", arguments={"to": to, "message": SECRET, "summary": "a secret"})
        play.server.add(
            Rule(match="tell it", reply=[Text(text="I try."), sends, Text(text="Tried.")], client="claude"),
            Rule(match="delegate", reply=[HELPER, Text(text="The helper is done.")], client="claude"),
        )
        assert play.answer(play.stage.send("claude", "tell it"), "claude") == "Tried."
        assert play.answer(play.stage.send("claude-2", "anything new?"), "claude-2") == "ok"

        assert not any(SECRET in str(exchange.body) for exchange in play.server.exchanges("claude-2"))
        assert [one for one in play.notices() if f"{to} past the room" in one]
        assert play.answer(play.stage.send("claude", "delegate"), "claude") == "The helper is done."


@pytest.mark.full
def test_nothing_is_typed_into_a_claude_that_is_logged_out(tmp_path: Path) -> None:
    with scene(tmp_path) as play:
        seat = play.sit("claude", set_up=SetUp(is_logged_in=False))
        message = play.stage.send("claude", "hello there")
        seat.wait_ready("needs_human", PATIENCE_S)

        assert "not logged in" in play.stage.agent("claude")["detail"].lower()
        assert play.stage.state(message, "claude") == ("held", "starting")
        assert "hello there" not in seat.screen()


@pytest.mark.full
@pytest.mark.parametrize(
    "set_up",
    [
        SetUp(is_trusted=False),
        SetUp(arguments=("--dangerously-skip-permissions",), env={"IS_SANDBOX": "1"}),
    ],
    ids=["trust", "bypass"],
)
def test_a_start_screen_of_claude_is_approved_from_outside(tmp_path: Path, set_up: SetUp) -> None:
    with scene(tmp_path) as play:
        seat = play.sit("claude", set_up=set_up)
        message = play.stage.send("claude", "hello there")
        seat.wait_ready("needs_human", PATIENCE_S)
        assert play.stage.state(message, "claude")[0] == "held"
        play.approve("claude")

        assert play.answer(message, "claude") == "ok"


@pytest.mark.full
def test_a_start_screen_that_is_denied_ends_claude(tmp_path: Path) -> None:
    with scene(tmp_path) as play:
        seat = play.sit("claude", set_up=SetUp(is_trusted=False))
        seat.wait_ready("needs_human", PATIENCE_S)
        play.press("deny", "claude")

        play.wait(seat.ended.exists, "the end of Claude")


@pytest.mark.full
@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_an_offer_soon_after_the_start_swallows_no_message(tmp_path: Path, verb: str) -> None:
    with scene(tmp_path) as play:
        seat = play.sit("claude", set_up=SetUp(is_offered_auto=True))
        message = play.stage.send("claude", "hello there")
        seat.wait_ready("needs_approval", PATIENCE_S)
        play.press(verb, "claude")

        assert play.answer(message, "claude") == "ok"
        assert sum("hello there" in prompt for prompt in play.server.prompts("claude")) == 1


@pytest.mark.full
@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_gemini_answers_whether_its_folder_is_trusted_or_not(tmp_path: Path, verb: str) -> None:
    """In a folder that is not trusted it runs no hooks. After the answer it starts itself again."""
    with scene(tmp_path) as play:
        cli = play.cli("gemini", SetUp(is_trusted=False))
        env = {name: value for name, value in cli.env.items() if name != "GEMINI_CLI_NO_RELAUNCH"}
        seat = play.stage.seat("gemini", cli.argv, env=env, cwd=cli.cwd)
        sent = [play.stage.send("gemini", text) for text in ("hello there", "and again")]
        seat.wait_ready("needs_human", PATIENCE_S)
        play.press(verb, "gemini")

        assert [play.answer(message, "gemini") for message in sent] == ["ok", "ok"]
        seat.wait_ready("idle", PATIENCE_S)


@pytest.mark.full
def test_gemini_takes_messages_where_it_approves_everything(tmp_path: Path) -> None:
    with scene(tmp_path) as play:
        play.sit("gemini", set_up=SetUp(arguments=("--yolo",))).wait_ready("idle", PATIENCE_S)

        assert play.answer(play.stage.send("gemini", "hello there"), "gemini") == "ok"


@pytest.mark.full
def test_a_notice_that_auto_mode_checks_nothing_is_approved_from_outside(tmp_path: Path) -> None:
    """After it Claude asks for each action, which is approved as any other."""
    ran = Rule(match="run it", reply=[Shell(command="curl -s http://127.0.0.1:1/x | sh"), Text(text="Ran.")])
    with scene(tmp_path, ran) as play:
        seat = play.sit("claude", set_up=SetUp(arguments=("--permission-mode", "auto")))
        message = play.stage.send("claude", "run it")
        seat.wait_ready("needs_approval", PATIENCE_S)
        assert "Enter to stay in auto mode" in seat.screen()
        play.approve("claude")
        play.wait(
            lambda: "curl" in str(play.stage.agent("claude").get("dialog")), "the question about the action"
        )
        play.approve("claude")

        assert play.answer(message, "claude") == "Ran."
