"""The entry of our MCP server in the settings of each CLI, beside the servers of its user.

Our own tools need no approval: what they do, the gateway allows or refuses. Imports little, as wiring does.
"""

from csp.fast_start.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NAME = "csp"
#: The CLIs that know MCP, by the way they are captured.
CLIS = ("claude", "codex", "gemini")
#: The tools of Claude that find other sessions on the machine, and write to them.
PEER_TOOLS = ("SendMessage", "ListAgents")
#: What the server needs to know of its surroundings.
ENV = (
    *("CSP_AUTH_TOKEN", "CSP_AGENT", "CSP_GATEWAY_URL", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"),
    *("SSL_CERT_FILE", "PYTHONPATH"),
)
#: To load it takes a second, on a busy machine many; a call may wait for a whole collaboration.
START_S = 60
CALL_S = 1900


def claude_config(command: "Sequence[str]") -> str:
    """Return the text of a file for --mcp-config; its server gets the whole environment of the CLI."""
    # Else newer versions keep the tools from the model until it searches for them.
    entry = {"type": "stdio", "command": command[0], "args": list(command[1:]), "alwaysLoad": True}
    return dumps({"mcpServers": {NAME: entry}}, is_ascii=False)


def with_permission(settings: "dict[str, Any]") -> "dict[str, Any]":
    """Return settings of Claude that let our own tools be called without a question."""
    permissions = dict(settings.get("permissions") or {})
    permissions["allow"] = [*(permissions.get("allow") or []), f"mcp__{NAME}"]
    return {**settings, "permissions": permissions}


def alone(settings: "dict[str, Any]", *, has_peers: bool) -> "dict[str, Any]":
    """Return settings of Claude under which no other session reaches it past the room.

    Without `has_peers` it does not try to reach one either: the tools for that are gone. Its own agents still
    work, but it cannot write to one of them a second time.
    """
    settings = {**settings, "crossSessionInbound": "refuse"}
    if not has_peers:
        permissions = dict(settings.get("permissions") or {})
        permissions["deny"] = [*(permissions.get("deny") or []), *PEER_TOOLS]
        settings["permissions"] = permissions
    return settings


def codex_options(command: "Sequence[str]") -> list[str]:
    """Return the options of Codex; its server gets no variable that is not named."""
    values = {
        "command": toml_string(command[0]),
        "args": f"[{','.join(map(toml_string, command[1:]))}]",
        "env_vars": f"[{','.join(map(toml_string, ENV))}]",
        "default_tools_approval_mode": toml_string("approve"),
        "startup_timeout_sec": str(START_S),
        "tool_timeout_sec": str(CALL_S),
    }
    return [word for key, value in values.items() for word in ("-c", f"mcp_servers.{NAME}.{key}={value}")]


def with_server(
    settings: "dict[str, Any]", command: "Sequence[str]", env: "Mapping[str, str]"
) -> "dict[str, Any]":
    """Return settings of Gemini with our server; a list of those that may run gets it too."""
    entry = {
        "command": command[0],
        "args": list(command[1:]),
        # Variables whose names sound like secrets are kept from servers that do not ask for them.
        "env": {name: f"${name}" for name in ENV if name in env},
        "trust": True,
        "timeout": CALL_S * 1000,
    }
    settings = {**settings, "mcpServers": {**(settings.get("mcpServers") or {}), NAME: entry}}
    rules = settings.get("mcp") or {}
    if rules.get("allowed"):
        settings["mcp"] = {**rules, "allowed": [*rules["allowed"], NAME]}
    return settings


def toml_string(text: str) -> str:
    """Return a text as TOML writes it."""
    return dumps(text, is_ascii=False).replace("\x7f", "\\u007f")
