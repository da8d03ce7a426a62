"""API models as a user starts them: by csp.toml, by csp agent, in real tmux panes."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from csp.agents.api.providers import Target
from csp.agents.api.requirements import find_key, how_to_install
from csp.cli.agent import agent, stay_of
from csp.cli.parser import parse
from csp.cli.verb_call import VerbCall
from csp.config import AgentSpec, Settings, load_settings
from csp.errors import BadInput, CspError, NotFound, Refused
from csp.model_providers import PROVIDERS
from csp.panes.members import CSP, MemberRequest, choose
from csp.panes.up import sidecar_argv
from csp.protocol.enums import JoinRole
from csp.room.commands import DEFAULT_WINDOW
from tests.agents.api_room import KEY, envelope
from tests.models.rules import Rule, Text, say
from tests.models.server import ModelServer
from tests.panes.place import Place
from tests.waiting import wait_until_sync

CLAUDE: Final = AgentSpec(name="claude-api", provider="anthropic", model="claude-sonnet-5")
TOML: Final = """
[[agent]]
name = "claude-api"
provider = "anthropic"
model = "claude-sonnet-5"
base_url = "{url}/claude"

[[agent]]
name = "home"
provider = "openai-compatible"
model = "llama-at-home"
base_url = "{url}/home/v1"
"""

#: This one cannot start, which says why in its pane and to who started it, and keeps nobody else back.
KEYLESS: Final = """
[[agent]]
name = "keyless"
provider = "openai"
model = "gpt-5"
"""

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("api panes")]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


# --- csp.toml ------------------------------------------------------------------------------------


def settings_of(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "csp.toml").write_text(text)
    return load_settings(env={"HOME": str(tmp_path)}, cwd=tmp_path, ask=lambda _: True)


def test_models_are_read_from_csp_toml(tmp_path: Path) -> None:
    more = 'key_env = "MY_KEY"\nrole = "orchestrator"\n'
    first, second = settings_of(tmp_path, TOML.format(url="http://127.0.0.1:1") + more).agents

    assert (first.provider, first.model, first.command) == ("anthropic", "claude-sonnet-5", ())
    assert (second.base_url, second.key_env) == ("http://127.0.0.1:1/home/v1", "MY_KEY")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('provider = "anthropic"', "agent 'x': provider also needs a model"),
        ('model = "m"', "agent 'x': model also needs a provider"),
        ('base_url = "http://a"', "agent 'x': base_url also needs a provider"),
        (
            'provider = "openai"\nmodel = "m"\ncommand = "c"',
            "agent 'x': an API model has no command",
        ),
        (
            'provider = "openai"\nmodel = "m"\nkey_env = "a b"',
            "agent.key_env: expected the name of an environment variable",
        ),
        ('provider = "openai"\nmodel = "m"\nbase_url = "x"', "agent.base_url: expected an http or https URL"),
    ],
)
def test_half_a_model_is_refused(tmp_path: Path, lines: str, expected: str) -> None:
    with pytest.raises(BadInput) as caught:
        settings_of(tmp_path, f'[[agent]]\nname = "x"\n{lines}\n')

    assert expected in caught.value.message


def test_a_model_gets_a_pane_of_its_own_without_a_sidecar(tmp_path: Path) -> None:
    spec = AgentSpec(
        name="home", provider="openai-compatible", model="m", base_url="http://a/v1", key_env="K"
    )
    lineup = choose(Settings(agents=(CLAUDE, spec)), MemberRequest(dir=tmp_path), {"PATH": ""})
    claude, home = lineup.members

    shown = "csp agent --name claude-api --provider anthropic --model claude-sonnet-5"
    assert claude.shown_command == shown
    assert home.shown_command.endswith("--model m --base-url http://a/v1 --key-env K")
    assert sidecar_argv(claude, "default", claude.command) == [*CSP, *shown.split()[1:], "--room", "default"]


def test_an_unknown_provider_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="unknown provider 'antropic'"):
        choose(
            Settings(agents=(AgentSpec(name="x", provider="antropic", model="m"),)),
            MemberRequest(dir=tmp_path),
            {},
        )


def test_a_server_without_an_address_is_refused(tmp_path: Path) -> None:
    spec = AgentSpec(name="x", provider="openai-compatible", model="m")
    with pytest.raises(BadInput, match="needs an address"):
        choose(Settings(agents=(spec,)), MemberRequest(dir=tmp_path), {})


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(NotFound) as caught:
        choose(Settings(agents=(CLAUDE,)), MemberRequest(dir=tmp_path), {})

    assert caught.value.message == "agent 'claude-api' needs the package 'anthropic', which is not installed"
    assert caught.value.hint == f"install it: {how_to_install(PROVIDERS['anthropic'])}"
    assert "--extra anthropic" in caught.value.hint


# --- keys ----------------------------------------------------------------------------------------


def test_a_key_comes_from_the_environment() -> None:
    provider = PROVIDERS["anthropic"]

    assert find_key("anthropic", provider, "", {"ANTHROPIC_API_KEY": f" {KEY}\n"}) == KEY
    assert find_key("anthropic", provider, "MINE", {"MINE": KEY, "ANTHROPIC_API_KEY": "x"}) == KEY


def test_a_missing_key_is_asked_for_by_the_name_of_its_variable() -> None:
    with pytest.raises(Refused, match="there is no key for openai: OPENAI_API_KEY is not set"):
        find_key("openai", PROVIDERS["openai"], "", {"OPENAI_API_KEY": " "})


def test_a_server_at_home_needs_no_key_and_gets_nobody_elses() -> None:
    provider = PROVIDERS["openai-compatible"]

    assert find_key("openai-compatible", provider, "", {"OPENAI_API_KEY": KEY}) == ""
    assert find_key("openai-compatible", provider, "MINE", {"MINE": KEY}) == KEY
    with pytest.raises(Refused, match="there is no key for openai-compatible: MINE is not set"):
        find_key("openai-compatible", provider, "MINE", {})


def test_a_key_comes_from_the_keyring_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keyring.py").write_text(
        "def get_password(service, name):\n"
        "    if name == 'LOCKED':\n        raise RuntimeError('locked')\n"
        f"    return {{('csp', 'OPENAI_API_KEY'): {KEY!r}}}.get((service, name))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)

    assert find_key("openai", PROVIDERS["openai"], "", {}) == KEY
    with pytest.raises(Refused, match="LOCKED is not set"):
        find_key("openai", PROVIDERS["openai"], "LOCKED", {})
    monkeypatch.delitem(sys.modules, "keyring", raising=False)


# --- by hand -------------------------------------------------------------------------------------


def call_of(tmp_path: Path, *words: str) -> VerbCall:
    """Return a call of csp agent in a room that is known by its address alone."""
    _, args = parse(["agent", "--name", "x", "--model", "m", *words])
    env = {"HOME": str(tmp_path), "CSP_GATEWAY_URL": "http://127.0.0.1:9", "CSP_AUTH_TOKEN": "room"}
    return VerbCall(args=args, settings=load_settings(env=env, cwd=tmp_path), cwd=tmp_path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--provider", "antropic"), "unknown provider 'antropic'"),
        (("--provider", "openai-compatible"), "openai-compatible needs an address"),
        (("--provider", "anthropic"), "there is no key for anthropic: ANTHROPIC_API_KEY is not set"),
        (("--provider", "openai", "--base-url", "nowhere"), "--base-url: expected an http or https URL"),
        (("--provider", "openai", "--key-env", "A B"), "A B"),
    ],
)
def test_mistakes_of_csp_agent_are_told_before_anything_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], expected: str
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(CspError) as caught:
        agent(call_of(tmp_path, *words))

    assert expected in caught.value.message and "\n" not in caught.value.message
    assert KEY not in f"{caught.value.message} {caught.value.hint}"


def test_csp_agent_names_a_missing_package_and_not_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(CspError, match="the package 'anthropic' is not installed") as caught:
        agent(call_of(tmp_path, "--provider", "anthropic"))

    assert caught.value.hint == f"install it: {how_to_install(PROVIDERS['anthropic'])}"
    assert KEY not in f"{caught.value.message} {caught.value.hint}"


def test_csp_agent_in_the_pane_of_an_agent_is_refused(tmp_path: Path) -> None:
    call = call_of(tmp_path, "--provider", "anthropic")
    inside = VerbCall(args=call.args, settings=replace(call.settings, agent="codex"), cwd=tmp_path)
    with pytest.raises(Refused, match="this pane is already agent 'codex'"):
        agent(inside)


def test_what_csp_agent_was_told_reaches_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", KEY)
    monkeypatch.setenv("CSP_PANES", "room-1")
    words = ("--provider", "openai", "--base-url", "http://a/v1", "--key-env", "MINE")
    stay = stay_of(call_of(tmp_path, *words, "--role", "orchestrator", "--timeout", "7.5"))

    assert stay.target == Target(provider="openai", model="m", key=KEY, base_url="http://a/v1", timeout_s=7.5)
    assert (stay.name, stay.role, stay.provider) == ("x", JoinRole.ORCHESTRATOR, PROVIDERS["openai"])
    assert (stay.url, stay.token, stay.room) == ("http://127.0.0.1:9", "room", "")
    assert (stay.cwd, stay.window) == (str(tmp_path), DEFAULT_WINDOW)
    assert stay.env == {"CSP_PANES": "room-1"}, "no key in a record that others read"


# --- in panes ------------------------------------------------------------------------------------


def test_csp_up_gives_models_panes_that_show_what_they_say_and_cost(place: Place) -> None:
    rules = [
        say("hello", "Hello \x1b[31mhuman\x1b[0m."),
        Rule(match="Round 1 of", reply=[Text(text=envelope("one", "home"))], client="claude"),
        Rule(match="Round 2 of", reply=[Text(text=envelope("two", final=True))], client="home"),
    ]
    with ModelServer(rules) as models:
        place.set(ANTHROPIC_API_KEY=KEY)
        (place.dir / "csp.toml").write_text(TOML.format(url=models.url("")[:-1]) + KEYLESS)
        plan = place.csp("up", "--dry-run")
        assert "claude-api: csp agent --name claude-api --provider anthropic" in plan.out
        assert "(an API model)" in plan.out
        begun = place.up()
        assert "keyless has ended: csp: there is no key for openai: OPENAI_API_KEY is not set" in begun.err
        assert "room default is up with claude-api, home" in begun.err
        assert place.online() == {"claude-api": "idle", "home": "idle"}
        place.csp("send", "claude-api", "hello", "--wait")
        wait_until_sync(lambda: "new tokens" in place.screen("claude-api"), 90, "the price")
        screen = place.screen("claude-api")
        assert "> human: hello" in screen and "Hello human." in screen and "$0.0" in screen
        place.csp("mode", "set", "collaborate", "a tale", "--agents", "claude-api,home")
        wait_until_sync(lambda: place.gateway.get("/mode")["reason"] == "final", 90, "the end")
        wait_until_sync(lambda: "llama-at-home" in place.screen("home").split("two")[-1], 90, "its cost")
        again = place.up()
        assert "joining it" in again.err
        status = place.csp("status").out
        assert "claude-api (claude-sonnet-5): 2 replies" in status
        done = place.csp("down")

    assert (done.code, "claude-api" in done.err, "home" in done.err) == (0, True, True)
    leaked = [
        path for path in place.history.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ]
    assert leaked == []
