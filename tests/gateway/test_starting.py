"""What POST /agents makes of its body, of the command that it runs; real starts are in tests/panes."""

import pytest

from csp.errors import BadInput, Broken, CspError, Refused
from csp.gateway.starting import failure, start_argv
from csp.wire import JoinRole, StartBody
from tests.gateway.served import ServedRoom

ASKED = StartBody(name="Claude API", provider="anthropic", model="m")


def test_nothing_in_a_body_can_be_taken_for_an_option() -> None:
    body = StartBody(
        name="x", provider="--purge", model="-m", base_url="--yes", key_env="K", role=JoinRole.ORCHESTRATOR
    )
    words = start_argv(body, "default")[4:]

    assert words[:4] == ["add", "x", "--room=default", "--json"]
    assert words[4:] == [
        *("--provider=--purge", "--model=-m", "--base-url=--yes", "--key-env=K", "--role=orchestrator"),
    ]
    with pytest.raises(BadInput, match="begins with a dash"):
        start_argv(StartBody(name="--json", provider="openai", model="m"), "default")


@pytest.mark.parametrize(
    ("code", "problem", "err", "kind", "message", "hint"),
    [
        (
            2,
            "",
            "csp: unknown provider 'x' (expected one of: a, b)\n",
            BadInput,
            "unknown provider 'x'",
            "exp",
        ),
        (1, "", "noise\ncsp: there is no key\n", Refused, "there is no key", "see: csp logs"),
        (1, "x has ended: why", "", Refused, "x has ended: why", "see: csp logs"),
        (1, "", "Traceback ...", Broken, "the agent could not be started", "see the gateway's log"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_command(
    code: int, problem: str, err: str, kind: type[CspError], message: str, hint: str
) -> None:
    found = failure(code, problem, err)

    assert (type(found), found.message) == (kind, message)
    assert found.hint.startswith(hint)


async def test_only_the_room_may_start_agents(room: ServedRoom) -> None:
    claude = await room.join("claude")
    body = {"name": "x", "provider": "openai", "model": "m"}

    assert (await room.call("POST", "/agents", body, token=claude.token)).status == 403
    assert (await room.call("POST", "/agents", {"name": "x"})).status == 400
