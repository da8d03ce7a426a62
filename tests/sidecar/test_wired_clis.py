"""The real CLIs with our wiring: the user's own things still work, replies are those that the model sent.

test_real_scenes has a shorter version of this for every day; test_transcripts_follow has the brains that come
and go, with recordings.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from csp.terminal.reply_tracker import Confirmed
from tests.clis.bringup import CLIS, SetUp
from tests.models.rules import Rule, Text, say, slow
from tests.sidecar.wired import IDLE, Room, WiredCli

RULES = "THE RULES OF THIS ROOM: be brief."
#: Its own settings, which the CLI reads but we must not write.
OWN_FILES = {
    "claude": ("config/settings.json",),
    "codex": ("codex/config.toml", "codex/hooks.json"),
    "gemini": ("gemini/.gemini/settings.json", "gemini/.gemini/trustedFolders.json"),
}
OWN_HOOKS = {
    "claude": ("SessionStart", "UserPromptSubmit", "Stop"),
    "codex": ("SessionStart", "UserPromptSubmit", "Stop"),
    "gemini": ("SessionStart", "BeforeAgent", "AfterAgent"),
}
SLOW = "\n".join(f"slow line {number}" for number in range(40))

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.parametrize("name", CLIS)]


def own_files(home: Path, name: str) -> dict[str, str]:
    return {file: (home / file).read_text("utf-8") for file in OWN_FILES[name] if (home / file).exists()}


async def test_the_users_own_hooks_and_settings_still_work(name: str, tmp_path: Path) -> None:
    with Room([say("hello", "Hi there.")], tmp_path) as room:
        cli = room.bring_up(name, SetUp(has_user_hooks=True))
        before = own_files(cli.home, name)
        async with WiredCli(cli, tmp_path, RULES) as run:
            await run.say("1", "hello")
            reply = await run.reply("1")
            await run.wait(lambda: (cli.user_hooks / f"{OWN_HOOKS[name][-1]}.jsonl").exists())
        fired = {path.stem for path in cli.user_hooks.glob("*.jsonl")}

        assert reply.text == "Hi there."
        assert set(OWN_HOOKS[name]) <= fired
        assert room.server.saw(RULES)
        assert before
        for file, text in own_files(cli.home, name).items():
            # Codex notes by itself, behind the user's lines, which of its tips it has shown.
            assert text.startswith(before[file].rstrip())
            assert (text == before[file]) or name == "codex"
            assert RULES not in text and "spool" not in text


async def test_two_in_one_directory_are_told_apart(name: str, tmp_path: Path) -> None:
    """Both have one home as well, so that they write into one folder."""
    with Room([say("one", "I am one."), say("two", "I am two.")], tmp_path) as room:
        first = room.bring_up(name)
        second = replace(first, client=f"{name}-2")
        async with WiredCli(first, tmp_path) as one, WiredCli(second, tmp_path) as two:
            await one.say("1", "one")
            await two.say("2", "two")
            await one.reply("1")
            await two.reply("2")
            await one.say("3", "one")
            await one.reply("3")

            assert [(reply.tag, reply.text) for reply in one.replies()] == [
                ("1", "I am one."),
                ("3", "I am one."),
            ]
            assert [(reply.tag, reply.text) for reply in two.replies()] == [("2", "I am two.")]


async def test_a_follower_that_takes_over_in_a_turn_loses_nothing(name: str, tmp_path: Path) -> None:
    rules = [say("hello", "Hi there."), Rule(match="slow", reply=[slow(SLOW, 3)])]
    with Room(rules, tmp_path) as room:
        cli = room.bring_up(name)
        async with WiredCli(cli, tmp_path) as run:
            await run.say("1", "hello")
            await run.reply("1")
            await run.say("2", "slow")
            dumped = await run.stop_following()
            await run.wait(lambda: [one for one in room.server.replies(name) if one == SLOW])
            run.follow_again(dumped)
            await run.reply("2")
            await run.idle()

            assert [(one.tag, one.text) for one in run.replies()] == [("1", "Hi there."), ("2", SLOW)]


async def test_a_follower_that_knows_nothing_gives_the_same_ids(name: str, tmp_path: Path) -> None:
    with Room([Rule(match="hello", reply=[Text(text="Hi there.")])], tmp_path) as room:
        cli = room.bring_up(name)
        async with WiredCli(cli, tmp_path, is_settling=False) as run:
            for tag in ("1", "2"):
                await run.say(tag, "hello")
                await run.reply(tag)
                await run.idle()
            await run.stop_following()
            first = run.replies()
            run.outcomes.clear()
            run.follow_again(b"")
            await run.wait(lambda: len(run.replies()) == 2 and run.outcomes[-1] == IDLE)
            tags = {one.tag for one in run.outcomes if isinstance(one, Confirmed)}

            assert tags == {"1", "2"}
            assert run.replies() == first
