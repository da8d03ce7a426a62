"""Every setting reaches the place where it acts.

One row for each setting of csp/config.py: a value that is not the default, where it is to be found once the
environment gives it, and what is found there. A new setting needs a row.
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from csp.cli.parser import parse
from csp.cli.sidecar import sidecar
from csp.config import ROWS, Settings, load_settings
from csp.errors import NotFound
from csp.gateway.gateway import Gateway
from csp.gateway.rules_from_settings import load_rules
from csp.gateway.server import bind
from csp.panes.members import MemberRequest, PaneMember, choose, member_for
from csp.protocol.enums import HUMAN
from csp.protocol.events import MessageEvent, decode_event
from csp.room.commands import Send
from csp.room_registry import find_room
from tests.gateway.served import Clock, ServedRoom, served
from tests.rooms import ThreadRoom, free_port, save_agent_token


class Found(NamedTuple):
    """The settings with all that can be made of them without a process."""

    settings: Settings
    gateway: Gateway


class Acts(NamedTuple):
    """What the environment says, where that must be found, as what."""

    value: str
    find: Callable[[Found], object]
    found: object


def _of_rules(read: Callable[[Any], object]) -> Callable[[Found], object]:
    return lambda found: read(load_rules(found.settings))


def _of_room(read: Callable[[Gateway], object]) -> Callable[[Found], object]:
    return lambda found: read(found.gateway)


def _command(agent: str, role: str = "agent") -> Callable[[Found], object]:
    return lambda found: member_for(agent, (), found.settings, Path("/"), role=role).command


def _bound(found: Found) -> object:
    with closing(bind(found.settings)) as listener:
        return listener.getsockname()[0]


def _first_of_demo(found: Found) -> PaneMember:
    return choose(found.settings, MemberRequest(dir=Path("/"), demo=True), {}).members[0]


def _strictness(found: Found) -> object:
    with pytest.raises(NotFound):
        choose(found.settings, MemberRequest(dir=Path("/")), {"PATH": "/nowhere"})
    return "refused"


def _ordered(found: Found, profile: str = "generic") -> Any:
    """Return what the sidecar's command hands to whoever starts the sidecar."""
    import csp.sidecar.launch as launch_module

    orders: list[Any] = []
    _, arguments = parse(["sidecar", "--name", "a", "--profile", profile, "--cmd", "cat"])

    class Address(NamedTuple):
        url: str = "http://127.0.0.1:1"
        token: str = "token"
        room: str = "default"

    class TheCall(NamedTuple):
        args: Any
        settings: Settings
        cwd: Path = Path("/")
        address: Address = Address()

        def check_free_pane(self, what: str) -> None:
            """No pane is taken."""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch_module, "launch", lambda order, room: orders.append(order))
        sidecar(TheCall(arguments, found.settings))  # type: ignore[arg-type]
    return orders[0]


ACTS = {
    "host": Acts("127.0.0.2", _bound, "127.0.0.2"),
    "public_name": Acts(
        "a.example,b.example",
        _of_room(lambda gateway: {"a.example", "b.example"} <= gateway.host_guard._names),
        True,
    ),
    "history_cap": Acts("7", _of_room(lambda gateway: gateway.history._cap), 7),
    "durability": Acts("flush", _of_room(lambda gateway: gateway.writer._durability), "flush"),
    "auth_token": Acts("a-token", _of_room(lambda gateway: gateway.tokens.room_token), "a-token"),
    "room": Acts("other", _of_room(lambda gateway: gateway.agent_launcher._room), "other"),
    "board_provider": Acts("openai", _of_room(lambda gateway: gateway.remote_boards.is_wanted), True),
    "offline_after_s": Acts("7.5", _of_room(lambda gateway: gateway.presence._offline_after_s), 7.5),
    "message_ttl_s": Acts("7.5", _of_room(lambda gateway: gateway.board_summaries._message_ttl_s), 7.5),
    "turn_warn_ms": Acts("7500", _of_rules(lambda rules: rules.warn_s), 7.5),
    "turn_timeout_ms": Acts("7500", _of_rules(lambda rules: rules.timeout_s), 7.5),
    "soft_turns": Acts("7", _of_rules(lambda rules: rules.soft_turns), 7),
    "soft_tokens": Acts("7", _of_rules(lambda rules: rules.soft_tokens), 7),
    "window_items": Acts("7", _of_rules(lambda rules: rules.window.items), 7),
    "window_tokens": Acts("7", _of_rules(lambda rules: rules.window.tokens), 7),
    "max_turns": Acts("7", _of_rules(lambda rules: rules.limits.turns), 7),
    "max_tokens": Acts("7", _of_rules(lambda rules: rules.limits.tokens), 7),
    "max_minutes": Acts("7.5", _of_rules(lambda rules: rules.limits.minutes), 7.5),
    "max_cost_usd": Acts("7.5", _of_rules(lambda rules: rules.limits.cost), 7.5),
    "on_limit": Acts("stop", _of_rules(lambda rules: rules.on_limit), "stop"),
    "on_hard_limit": Acts("ask", _of_rules(lambda rules: rules.on_hard_limit), "ask"),
    "board_replies": Acts("false", _of_rules(lambda rules: rules.board_replies), False),
    "board_summary_after": Acts("7", _of_rules(lambda rules: rules.summary_after), 7),
    "board_summariser": Acts("codex", _of_rules(lambda rules: rules.summariser), "codex"),
    "board_max_kb": Acts("7", _of_rules(lambda rules: rules.board_max_bytes), 7 * 1024),
    "orchestrator": Acts("true", lambda found: _first_of_demo(found).agent, "orchestrator"),
    "worktrees": Acts("true", lambda found: _first_of_demo(found).worktree, True),
    "orch_cmd": Acts("boss -x", _command("orchestrator", "orchestrator"), ("boss", "-x")),
    "claude_cmd": Acts("cl -x", _command("claude"), ("cl", "-x")),
    "codex_cmd": Acts("co -x", _command("codex"), ("co", "-x")),
    "gemini_cmd": Acts("ge -x", _command("gemini"), ("ge", "-x")),
    "strict_cli_check": Acts("true", _strictness, "refused"),
    "injection_timeout_s": Acts("7.5", lambda found: _ordered(found).injection_timeout_s, 7.5),
    "claude_peers": Acts("true", lambda found: _ordered(found, "claude").has_peers, True),
}
#: Those that say where a room is, and from where the others come, have tests of their own below.
BELOW = {"port", "layout", "gateway_url", "agent", "history_dir", "config_file", "ca_file"}
#: Those of a cluster: tests/cluster/test_servers.py, test_gateways.py and test_page_failover.py.
OF_NATS = {"nats_ca", "nats_creds", "journal", "secret_file", "public_url"}


def test_every_setting_has_a_row() -> None:
    assert {row.name for row in ROWS} == ACTS.keys() | BELOW | OF_NATS


@pytest.fixture
async def found(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    env = {"HOME": str(tmp_path), next(row.env for row in ROWS if row.name == name): ACTS[name].value}
    settings = load_settings(env=env, cwd=tmp_path)
    gateway = Gateway(settings, tmp_path / "room", Clock())
    yield Found(settings, gateway)
    await gateway.close()


@pytest.mark.parametrize("name", ACTS)
async def test_setting_reaches_the_place_where_it_acts(name: str, found: Found) -> None:
    default = Settings().value(name)

    assert found.settings.value(name) != default
    assert ACTS[name].find(found) == ACTS[name].found


# --- where a room is -----------------------------------------------------------------------------


def test_port_is_the_one_that_is_listened_on(tmp_path: Path) -> None:
    port = free_port()
    settings = load_settings(env={"HOME": str(tmp_path), "CSP_PORT": str(port)}, cwd=tmp_path)

    with closing(bind(settings)) as listener:
        assert listener.getsockname() == ("127.0.0.1", port)


def test_history_lies_in_the_folder_that_is_named(tmp_path: Path) -> None:
    with ThreadRoom(tmp_path, name="other") as room:
        room.gateway.post("/message", {"to": "all", "content": "hello"})

        assert (tmp_path / "history" / "other" / "journal.jsonl").read_bytes().count(b"hello") == 1


def test_gateway_url_and_token_are_where_a_command_goes(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "CSP_GATEWAY_URL": "http://10.0.0.1:1", "CSP_AUTH_TOKEN": "a-token"}
    address = find_room(load_settings(env=env, cwd=tmp_path), tmp_path)

    assert (address.url, address.token) == ("http://10.0.0.1:1", "a-token")


def test_agent_says_whose_token_a_command_takes(tmp_path: Path) -> None:
    with ThreadRoom(tmp_path / "room") as room:
        settings = load_settings(env=room.env | {"CSP_AGENT": "claude"}, cwd=room.dir)
        save_agent_token(settings, "default", "claude", "the token of claude")

        assert find_room(settings, room.dir).token == "the token of claude"


def test_config_file_is_read_in_place_of_the_projects(tmp_path: Path) -> None:
    (tmp_path / "csp.toml").write_text("[limits]\nturns = 1\n")
    (tmp_path / "mine.toml").write_text("[limits]\nturns = 2\n")
    env = {"HOME": str(tmp_path), "CSP_CONFIG_FILE": "mine.toml"}

    assert load_settings(env=env, cwd=tmp_path).max_turns == 2


# --- the life of a message -----------------------------------------------------------------------


@pytest.fixture
async def short_lived(tmp_path: Path, clock: Clock) -> Any:
    async with served(tmp_path / "room", clock, message_ttl_s=7.0, board_summary_after=0) as room:
        yield room


async def _expires(room: ServedRoom) -> list[float | None]:
    """Return when the messages of the room expire, in their order."""
    lines = room.gateway.writer.journal.view.read_after(0, 1 << 20).lines
    return [
        event.expires
        for event in map(decode_event, lines)
        if isinstance(event, MessageEvent) and event.recipients
    ]


async def test_every_message_lives_as_long_as_the_setting_says(short_lived: ServedRoom, clock: Clock) -> None:
    room = short_lived
    claude, codex = await room.join("claude"), await room.join("codex")
    sent = await room.send("claude", "hello", codex.token)
    await room.post("/agent-output", {"content": "for the asker", "replyTo": sent}, claude.token)
    await room.post(f"/messages/{sent}/resend")
    await room.post("/board", {"text": "a note"})
    await room.post("/board/summarise", {"by": "codex"})
    await room.gateway.submit(Send(sender=HUMAN, to="claude", text="without an end"))
    expires = await _expires(room)

    assert expires[-1] is None
    assert set(expires[:-1]) == {clock.now + 7.0}
    assert len(expires) == 5
