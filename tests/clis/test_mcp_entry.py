"""The entry of our MCP server; how it gets into the settings of each CLI is in test_wiring.py."""

import tomllib

import pytest

from csp.clis.claude.wiring import with_permission
from csp.clis.codex.wiring import mcp_options, toml_string
from csp.clis.gemini.wiring import with_server
from csp.clis.mcp_entry import ENV
from csp.clis.registry import find_adapter, profile_names

NEEDED = {
    *("CSP_AUTH_TOKEN", "CSP_AGENT", "CSP_GATEWAY_URL", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"),
    *("SSL_CERT_FILE", "CSP_CA_FILE", "PYTHONPATH"),
}


def test_each_cli_that_knows_mcp_gets_the_server() -> None:
    having = [name for name in profile_names() if find_adapter(name).has_mcp]

    assert having == ["claude", "codex", "gemini"]


def test_the_server_is_given_all_that_it_needs_to_find_the_room() -> None:
    assert set(ENV) == NEEDED
    options = mcp_options(["python", "-P"])
    table = tomllib.loads("\n".join(options[1::2]))["mcp_servers"]["csp"]
    assert set(options[::2]) == {"-c"}
    assert set(table["env_vars"]) == NEEDED
    assert (table["command"], table["args"]) == ("python", ["-P"])
    entry = with_server({}, ["python"], dict.fromkeys(NEEDED, "value"))["mcpServers"]["csp"]
    assert entry["env"] == {name: f"${name}" for name in NEEDED}


def test_gemini_may_run_our_server_only_where_it_has_a_list_of_those_that_may() -> None:
    assert with_server({"mcp": {"allowed": ["a"]}}, ["x"], {})["mcp"] == {"allowed": ["a", "csp"]}
    assert with_server({"mcp": {"allowed": []}}, ["x"], {})["mcp"] == {"allowed": []}
    assert "mcp" not in with_server({"mcpServers": None}, ["x"], {})


def test_permissions_that_are_empty_are_filled() -> None:
    for settings in ({}, {"permissions": None}, {"permissions": {"allow": None}}):
        assert with_permission(settings) == {"permissions": {"allow": ["mcp__csp"]}}


@pytest.mark.parametrize("text", ['a "b" \\ c', "日本語", "\x7f\x00\t\n", ""])
def test_any_text_can_be_written_as_toml(text: str) -> None:
    assert tomllib.loads(f"text = {toml_string(text)}") == {"text": text}
