"""Brings up a real CLI with no human: scratch home, made-up key, the model server as its only model."""

import json
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.clis.install import BIN, node_path
from tests.clis.loopback import Loopback
from tests.models.server import ModelServer

KEY: Final = "sk-ant-api03-" + "scripted-key-" * 4
_CLOSED: Final = "http://127.0.0.1:9"
CLIS: Final = ("claude", "codex", "gemini")

CLAUDE_EVENTS: Final = (
    *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PermissionRequest"),
    *("Notification", "Stop", "SubagentStart", "SubagentStop", "PreCompact", "StopFailure"),
)
CODEX_EVENTS: Final = (
    *(
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PermissionRequest",
        "Stop",
        "Interrupt",
    ),
)
GEMINI_EVENTS: Final = (
    *("SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool"),
    *("Notification", "PreCompress"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """How a CLI is brought up; the defaults lead straight to its idle composer.

    is_subscriber: Claude has a subscription's token instead of a key, so that usage limits are its own.
    is_offered_auto: Claude asks, soon after its composer is drawn, whether auto mode should be the default.
    """

    is_trusted: bool = True
    is_logged_in: bool = True
    is_subscriber: bool = False
    has_user_hooks: bool = False
    is_inline: bool = True
    is_offered_auto: bool = False
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealCli:
    """A CLI that is ready to be started: `argv` in `cwd` with `env` (the whole environment).

    argv[0] is a script named after the CLI that enters the namespace, so a profile is found by its name.
    """

    name: str
    client: str
    argv: list[str]
    env: dict[str, str]
    cwd: Path
    home: Path

    @property
    def user_hooks(self) -> Path:
        """Where the user's own hooks write: one file of JSON lines for each event."""
        return self.home / "user-hooks"

    def transcripts(self) -> list[Path]:
        """Return the transcript files there are, oldest first."""
        pattern = {
            "claude": "config/projects/*/*.jsonl",
            "codex": "codex/sessions/**/rollout-*.jsonl",
            "gemini": "gemini/.gemini/tmp/*/chats/*.jsonl",
        }[self.name]
        return sorted(self.home.glob(pattern), key=lambda path: path.stat().st_mtime_ns)


def bring_up(
    name: str,
    server: ModelServer,
    loopback: Loopback,
    folder: Path,
    set_up: SetUp | None = None,
    *,
    client: str = "",
    cwd: Path | None = None,
) -> RealCli:
    """Write the scratch home of a CLI into `folder/<client>`; nothing is started."""
    set_up = set_up or SetUp()
    client = client or name
    home = folder / client
    cwd = cwd or folder / "project"
    for path in (home / "bin", home / "user-hooks", cwd):
        path.mkdir(parents=True, exist_ok=True)
    env = _environment(home) | _PREPARE[name](home, cwd, server.url(client), set_up) | set_up.env
    wrapper = home / "bin" / name
    command = shlex.join(loopback.wrap([str(BIN / name)]))
    wrapper.write_text(f'#!/bin/sh\nexec {command} "$@"\n', "utf-8")
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    argv = [str(wrapper), *_ARGUMENTS[name](set_up), *set_up.arguments]
    return RealCli(name=name, client=client, argv=argv, env=env, cwd=cwd, home=home)


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "PATH": f"{home / 'bin'}:{node_path()}",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "HTTP_PROXY": _CLOSED,
        "HTTPS_PROXY": _CLOSED,
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _claude(home: Path, cwd: Path, url: str, set_up: SetUp) -> dict[str, str]:
    config = home / "config"
    state: dict[str, Any] = {
        "hasCompletedOnboarding": True,
        "lastOnboardingVersion": "2.1.328",
        "theme": "dark",
        "numStartups": 5,
        "projects": {},
        "hasSeenAutoDefaultNotice": True,
        "hasSeenAutoDefaultNudge": not set_up.is_offered_auto,
    }
    if set_up.is_trusted:
        state["projects"][str(cwd)] = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    if set_up.is_logged_in:
        state["customApiKeyResponses"] = {"approved": [KEY[-20:]], "rejected": []}
    _write(config / ".claude.json", state)
    # In auto mode, its own default, a model decides what it asks a person; the scripted one cannot.
    permissions = {"defaultMode": "default"}
    _write(
        config / "settings.json",
        {"hooks": _hooks(home, CLAUDE_EVENTS, set_up), "permissions": permissions},
    )
    return {
        **_claude_key(set_up),
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _claude_key(set_up: SetUp) -> dict[str, str]:
    if set_up.is_subscriber:
        return {"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-" + "scripted-token-" * 4}
    return {"ANTHROPIC_API_KEY": KEY} if set_up.is_logged_in else {}


def _codex(home: Path, cwd: Path, url: str, set_up: SetUp) -> dict[str, str]:
    config = home / "codex"
    lines = [
        'model = "gpt-5.2-codex"',
        'approval_policy = "on-request"',
        'sandbox_mode = "workspace-write"',
        "check_for_update_on_startup = false",
        *(['model_provider = "scripted"'] if set_up.is_logged_in else []),
        "[model_providers.scripted]",
        'name = "scripted"',
        f'base_url = "{url}/v1"',
        'env_key = "SCRIPTED_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
        "[analytics]",
        "enabled = false",
    ]
    if set_up.is_trusted:
        lines += [f"[projects.{json.dumps(str(cwd))}]", 'trust_level = "trusted"']
    _write_text(config / "config.toml", "\n".join(lines) + "\n")
    if set_up.has_user_hooks:
        _write(config / "hooks.json", {"hooks": _hooks(home, CODEX_EVENTS, set_up)})
    return {"CODEX_HOME": str(config), "SCRIPTED_KEY": KEY}


def _gemini(home: Path, cwd: Path, url: str, set_up: SetUp) -> dict[str, str]:
    config = home / "gemini" / ".gemini"
    auth = {"auth": {"selectedType": "gemini-api-key"}} if set_up.is_logged_in else {}
    settings = {
        "security": auth | {"folderTrust": {"enabled": True}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": 2},
        "ui": {"hideTips": True},
        "hooks": _hooks(home, GEMINI_EVENTS, set_up),
    }
    _write(config / "settings.json", settings)
    if set_up.is_trusted:
        _write(config / "trustedFolders.json", {str(cwd): "TRUST_FOLDER"})
    return {
        **({"GEMINI_API_KEY": KEY} if set_up.is_logged_in else {}),
        "GEMINI_CLI_HOME": str(home / "gemini"),
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GOOGLE_GEMINI_BASE_URL": url,
    }


_PREPARE: Final = {"claude": _claude, "codex": _codex, "gemini": _gemini}


def _codex_arguments(set_up: SetUp) -> list[str]:
    inline = ["--no-alt-screen"] if set_up.is_inline else []
    trust = ["--dangerously-bypass-hook-trust"] if set_up.has_user_hooks else []
    return ["--no-daemon", *inline, *trust]


def _no_arguments(_: SetUp) -> list[str]:
    return []


_ARGUMENTS: Final = {"claude": _no_arguments, "codex": _codex_arguments, "gemini": _no_arguments}


def _hooks(home: Path, events: tuple[str, ...], set_up: SetUp) -> dict[str, Any]:
    """Return the user's own hooks, which keep what they are told: `{}` where there are none."""
    if not set_up.has_user_hooks:
        return {}
    return {
        event: [
            {
                "matcher": "*",
                "hooks": [
                    {
                        "type": "command",
                        "command": f"(cat; echo) >> {home}/user-hooks/{event}.jsonl; echo '{{}}'",
                    }
                ],
            }
        ]
        for event in events
    }


def _write(path: Path, value: object) -> None:
    _write_text(path, json.dumps(value, indent=1))


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
