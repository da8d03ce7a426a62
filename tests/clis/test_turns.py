"""Turns of the three real CLIs, driven through a plain terminal; the model server's log is the truth."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.clis.bringup import CLIS, SetUp
from tests.clis.driving import DIALOG, IDLE, Driven, driven
from tests.clis.terminal import BACKSPACE, ESCAPE
from tests.models.rules import Endless, Fail, Rule, Shell, Text, say, slow
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

RULES = (
    say("^hello", "Hi there.\n\n- 日本語 👍\n- `code`"),
    Rule(
        match="^run",
        reply=[
            Text(text="I will run it."),
            Shell(command="expr 40 + 2 > out.txt"),
            Text(text="It ran."),
        ],
    ),
    Rule(match="^fail", reply=[Fail(kind="auth")]),
    Rule(match="^talk", reply=[Endless(text="on and on ", delay_s=0.1)]),
    Rule(match="^slowly", reply=[slow("one two three four five six seven", 0.5)]),
)


@pytest.fixture(scope="module", params=CLIS)
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    folder = tmp_path_factory.mktemp(request.param)
    with driven(request.param, folder, *RULES, set_up=SetUp(has_user_hooks=True)) as it:
        it.wait_idle()
        yield it


def test_a_pasted_text_reaches_the_model_exactly(at: Driven) -> None:
    text = "hello\n  second line; 日本語 👩‍👩‍👧 \\o/\nlast line"

    before = at.server.prompts(at.cli.client)
    at.submit(text)
    at.wait_idle()

    assert at.server.prompts(at.cli.client) == [*before, text]
    assert at.server.replies(at.cli.client)[-1] == "Hi there.\n\n- 日本語 👍\n- `code`"


def test_the_screen_shows_the_answer(at: Driven) -> None:
    at.submit("slowly please")

    at.terminal.wait_for("one two three four five six seven")


def _shows(at: Driven, pattern: str) -> bool:
    return re.search(pattern, at.terminal.screen(), re.MULTILINE) is not None


def test_a_tool_runs_once_it_is_approved(at: Driven) -> None:
    at.submit("run it")
    at.terminal.wait_for(DIALOG[at.cli.name])
    assert not (at.cli.cwd / "out.txt").exists()

    count = len(at.server.replies(at.cli.client))
    # A dialog that has only just been drawn swallows keys.
    at.press_until(b"1", lambda: not _shows(at, DIALOG[at.cli.name]))
    replies = at.wait_replies(count + 1)
    # One that was pressed again because the screen was slow stands in the composer now.
    at.press_until(BACKSPACE, lambda: _shows(at, IDLE[at.cli.name]))

    assert (at.cli.cwd / "out.txt").read_text() == "42\n"
    assert replies[-1] == "It ran."


def test_an_error_ends_the_turn_and_the_next_prompt_is_alone(at: Driven) -> None:
    at.submit("fail please")
    # The request has failed before the screen says so; what is typed until then belongs to the same turn.
    at.terminal.wait_for("API key")
    at.submit("hello again")

    assert at.server.prompts(at.cli.client)[-2:] == ["fail please", "hello again"]


def test_an_interrupt_aborts_the_request(at: Driven) -> None:
    at.submit("talk please")
    exchange = at.server.exchanges(at.cli.client, "main")[-1]
    at.terminal.wait_for("on and on")
    at.terminal.send(ESCAPE)

    wait_until_sync(lambda: exchange.ended == "aborted", 120.0, "the abort")


def test_the_users_own_hooks_fire(at: Driven) -> None:
    event = {"claude": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}[at.cli.name]
    at.submit("hello hooks")

    def told() -> list[str]:
        path = at.cli.user_hooks / f"{event}.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [json.loads(line)["prompt"] for line in lines if line]

    wait_until_sync(lambda: "hello hooks" in told(), 120.0, "the hook")
    assert at.cli.transcripts()
