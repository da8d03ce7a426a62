"""What a child process is told: by a list, or all but what is ours."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.config import ROWS
from csp.fast_start.child_environment import (
    CONNECTOR,
    HELPER,
    IDENTITY,
    TOOL,
    USER,
    child_environment,
    identity,
    without_git,
)

KINDS: Final = (TOOL, HELPER, CONNECTOR, USER)
ROOM: Final = "room-token-0123456789"
ENV: Final = {
    "PATH": "/bin",
    "HOME": "/home/ann",
    "LC_ALL": "C.UTF-8",
    "TERM": "xterm",
    "HTTPS_PROXY": "http://proxy",
    "https_proxy": "http://proxy",
    "SSL_CERT_FILE": "/ca.pem",
    "CSP_PORT": "7000",
    "CSP_MAX_TOKENS": "9",
    "EDITOR": "vi",
    "GITHUB_TOKEN": "ghp",
    "ANTHROPIC_API_KEY": "sk-ant",
    "OPENAI_API_KEY": "sk-oai",
    "GEMINI_API_KEY": "AIza",
    "CSP_AUTH_TOKEN": ROOM,
    "CSP_AGENT": "claude",
    "CSP_GATEWAY_URL": "http://127.0.0.1:1",
    "CSP_PAGE_SECRET": "page",
    "MY_TOKEN": ROOM,
    "CURL_ARGS": f"-H X-Auth-Token:{ROOM}",
}


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_gets_a_secret_of_the_room(kind: str) -> None:
    got = child_environment(kind, ENV)

    assert ROOM not in repr(got) and "CSP_PAGE_SECRET" not in got
    assert not set(IDENTITY) & set(got)


@pytest.mark.parametrize("kind", KINDS)
def test_a_child_has_what_it_was_given_as_its_own(kind: str) -> None:
    own = {"CSP_AUTH_TOKEN": "its own", "CSP_AGENT": "ada"}

    assert child_environment(kind, ENV, own).items() >= own.items()


def test_a_tool_gets_what_a_program_of_the_system_needs() -> None:
    assert set(child_environment(TOOL, ENV)) == {"PATH", "HOME", "LC_ALL"}


def test_a_helper_gets_settings_but_no_key() -> None:
    got = set(child_environment(HELPER, ENV))

    assert got == {
        *("PATH", "HOME", "LC_ALL", "TERM", "HTTPS_PROXY", "https_proxy", "SSL_CERT_FILE"),
        *("CSP_PORT", "CSP_MAX_TOKENS"),
    }


def test_a_connector_gets_the_one_key_that_it_names() -> None:
    got = child_environment(CONNECTOR, ENV, keys=("OPENAI_API_KEY",))

    assert got["OPENAI_API_KEY"] == "sk-oai"
    assert set(got) - set(child_environment(HELPER, ENV)) == {"OPENAI_API_KEY"}


def test_a_connector_cannot_name_the_rooms_token_as_its_key() -> None:
    assert "CSP_AUTH_TOKEN" not in child_environment(CONNECTOR, ENV, keys=("CSP_AUTH_TOKEN", "MY_TOKEN"))


@pytest.mark.parametrize("kind", [TOOL, HELPER, USER])
def test_only_a_connector_gets_a_key_by_its_name(kind: str) -> None:
    named = child_environment(kind, ENV, keys=("OPENAI_API_KEY",))

    assert named == child_environment(kind, ENV)


def test_a_program_of_the_user_keeps_what_is_the_users() -> None:
    got = set(child_environment(USER, ENV))

    assert set(ENV) - got == {*IDENTITY, "CSP_PAGE_SECRET", "MY_TOKEN", "CURL_ARGS"}


def test_a_secret_that_only_the_caller_knows_is_left_out_by_its_value() -> None:
    env = {"PATH": "/bin", "NOTES": "the token is abcdefgh!", "A": "abc"}

    assert child_environment(USER, env, secrets=("abcdefgh", "a")) == {"PATH": "/bin", "A": "abc"}


@pytest.mark.parametrize("kind", KINDS)
@given(env=st.dictionaries(st.sampled_from(sorted(ENV)), st.sampled_from(["", "x", ROOM, f"a{ROOM}"])))
def test_an_environment_that_was_made_is_made_again_as_it_is(kind: str, env: dict[str, str]) -> None:
    once = child_environment(kind, env, keys=("OPENAI_API_KEY",))

    assert child_environment(kind, once, keys=("OPENAI_API_KEY",)) == once


def test_every_setting_but_the_token_and_who_we_are_reaches_our_helpers() -> None:
    env = {row.env: "1" for row in ROWS}

    # Only a gateway reads the cluster's secret.
    assert set(env) - set(child_environment(HELPER, env)) == {*IDENTITY, "CSP_SECRET_FILE"}


def test_who_we_are_can_be_handed_on() -> None:
    assert identity(ENV) == {name: ENV[name] for name in IDENTITY}
    assert identity({"PATH": "/bin"}) == {}


def test_variables_of_git_would_name_another_repository() -> None:
    assert without_git({"GIT_DIR": "/x", "GITHUB_TOKEN": "t"}) == {"GITHUB_TOKEN": "t"}
