"""What POST /agents makes of its body, of the command that it runs; real starts are in tests/panes."""

import asyncio
import signal
from pathlib import Path

import msgspec
import pytest

from csp.errors import BadInput, Broken, CspError, Refused, TooMany
from csp.gateway import agent_launcher as starting_module
from csp.gateway.agent_launcher import AgentLauncher, failure, start_argv
from csp.protocol.enums import JoinRole
from csp.protocol.requests import StartBody
from csp.protocol.responses import StartedView
from tests.gateway.served import ServedRoom

ASKED = StartBody(name="Claude API", provider="anthropic", model="m")


def test_nothing_in_a_body_can_be_taken_for_an_option() -> None:
    body = StartBody(
        name="x", provider="--purge", model="-m", base_url="--yes", key_env="K", role=JoinRole.ORCHESTRATOR
    )
    words = start_argv(body, "default")[4:]

    assert words[:5] == ["add", "x", "--room=default", "--json", "--number"]
    assert words[5:] == [
        *("--provider=--purge", "--model=-m", "--base-url=--yes", "--key-env=K", "--role=orchestrator"),
    ]
    with pytest.raises(BadInput, match="begins with a dash"):
        start_argv(StartBody(name="--json", provider="openai", model="m"), "default")


@pytest.mark.parametrize(
    ("code", "reported", "kind", "message", "hint"),
    [
        (2, ("unknown provider 'x'", "expected one of: a"), BadInput, "unknown provider 'x'", "expected one"),
        (1, ("there is no key", ""), Refused, "there is no key", "see: csp logs"),
        (1, ("", ""), Broken, "the agent could not be started", "see the gateway's log"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_command(
    code: int, reported: tuple[str, str], kind: type[CspError], message: str, hint: str
) -> None:
    found = failure(code, *reported)

    assert (type(found), found.message) == (kind, message)
    assert found.hint.startswith(hint)


async def test_only_the_room_may_start_agents(room: ServedRoom) -> None:
    claude = await room.join("claude")
    body = {"name": "x", "provider": "openai", "model": "m"}

    assert (await room.call("POST", "/agents", body, token=claude.token)).status == 403
    assert (await room.call("POST", "/agents", {"name": "x"})).status == 400


# --- the command ---------------------------------------------------------------------------------


def runs(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have a shell script run in place of `csp add`."""
    monkeypatch.setattr(starting_module, "start_argv", lambda body, room: ["/bin/sh", "-c", script, room])


def reports(message: str) -> str:
    """Return a line of shell that reports a failure as a csp command does."""
    return f"""echo '{{"message":"{message}"}}' > /dev/fd/$CSP_FAILURE_FD"""


async def test_the_command_is_the_rooms_own_and_has_no_key_but_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = ("CSP_AGENT", "CSP_AUTH_TOKEN", "CSP_GATEWAY_URL", "CSP_ROOM", "OTHER_API_KEY", "GITHUB_TOKEN")
    for name in others:
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("MY_KEY", "kept")
    words = "".join(f"${name}" for name in others)
    runs(monkeypatch, f'printf \'{{"agent":"x%s","state":"%s"}}\' "{words}" "$MY_KEY$0"')

    started = await AgentLauncher("den").start(msgspec.structs.replace(ASKED, key_env="MY_KEY"))

    assert (started.success, started.agent_id, started.state) == (True, "x", "keptden")


async def test_only_so_many_are_started_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs(monkeypatch, 'printf \'{"agent":"x","state":"idle"}\'')
    starting = AgentLauncher("den")
    starting._under_way = 8
    with pytest.raises(TooMany, match="8 agents are being started"):
        await starting.start(ASKED)
    starting._under_way = 7
    await starting.start(ASKED)
    runs(monkeypatch, "exit 1")
    with pytest.raises(Broken):
        await starting.start(ASKED)

    assert starting._under_way == 7


async def test_a_start_goes_on_when_its_caller_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def start(body: StartBody) -> StartedView:
        begun.set()
        await may_end.wait()
        return StartedView(success=True, agent_id="x", state="idle")

    async def note(agent: str) -> None:
        noted.append(agent)

    noted: list[str] = []
    launcher = AgentLauncher("den")
    monkeypatch.setattr(launcher, "start", start)
    calling = asyncio.ensure_future(launcher.start_once("human", "call-1", ASKED, note))
    await begun.wait()
    calling.cancel()
    await asyncio.sleep(0)
    may_end.set()
    task = launcher.find("human", "call-1")

    assert task is not None
    assert (await task).agent_id == "x"
    assert noted == ["", "x"]
    assert launcher.find("human", "call-2") is None


BODY = {"name": "x", "provider": "openai", "model": "m", "id": "call-1"}


async def test_a_repeated_call_starts_one_agent(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may come while the first is under way, after its end, or to another gateway."""
    runs(monkeypatch, f'echo >> {tmp_path}/starts; printf \'{{"agent":"claude","state":"idle"}}\'')
    await room.join("claude")
    first, second = await asyncio.gather(*(room.call("POST", "/agents", BODY) for _ in range(2)))
    third = await room.call("POST", "/agents", BODY)
    await room.restart()
    last = await room.call("POST", "/agents", BODY)

    assert [answer.status for answer in (first, second, third, last)] == [201] * 4
    assert {answer.data["agentId"] for answer in (first, second, third, last)} == {"claude"}
    assert (tmp_path / "starts").read_text() == "\n"
    assert (await room.call("POST", "/agents", BODY | {"id": "call-2"})).status == 201
    assert (tmp_path / "starts").read_text() == "\n\n"


async def test_a_call_whose_end_nobody_knows_starts_nothing(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs(monkeypatch, f"echo >> {tmp_path}/starts; {reports('no key')}; exit 1")
    answers = [await room.call("POST", "/agents", BODY) for _ in range(2)]
    await room.restart()
    last = await room.call("POST", "/agents", BODY)

    assert [answer.status for answer in (*answers, last)] == [409] * 3
    assert "cannot tell whether x was started" in last.data["error"]
    assert (tmp_path / "starts").read_text() == "\n"


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ('printf \'{"agent":"x","problem":"x has ended"}\'', Refused, "x has ended"),
        (f"{reports('no such model')}; exit 2", BadInput, "no such model"),
        (f"echo '[]'; {reports('it broke')}; exit 1", Refused, "it broke"),
    ],
)
async def test_what_kept_it_from_coming_is_raised(
    monkeypatch: pytest.MonkeyPatch, script: str, kind: type[CspError], message: str
) -> None:
    runs(monkeypatch, script)
    with pytest.raises(kind, match=message):
        await AgentLauncher("den").start(ASKED)


async def test_a_command_that_nobody_waits_for_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []

    class Process:
        returncode = None
        send_signal = signals.append

        async def communicate(self) -> None:
            await asyncio.get_running_loop().create_future()

    async def start(*_: object, **__: object) -> Process:
        return Process()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    with pytest.raises(Refused, match=r"it has not joined within 0\.01 s"):
        await AgentLauncher("den").start(ASKED, patience_s=0.01)

    assert signals == [signal.SIGINT]
