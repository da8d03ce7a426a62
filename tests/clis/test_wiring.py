"""Arguments, environment, files of one run; what the user has chosen stays."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from csp.clis import wiring
from csp.clis.adapter import CliRun, Wired
from csp.clis.claude import wiring as claude_wiring
from csp.clis.gemini import wiring as gemini_wiring
from csp.clis.gemini.wiring import RULES_FILE
from csp.clis.registry import find_adapter
from csp.clis.wiring import unwire
from csp.sidecar.launch import rules_text
from tests.clis.install import BIN

SESSION = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"
RULES = 'Speak "plainly".\nNo \\ slash, 日本語 👍.'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    run_dir = tmp_path / "run"
    run_dir.mkdir(mode=0o700)
    return run_dir


def wire(kind: str, *given: Any, **more: Any) -> Wired:
    return wiring.wire(kind, CliRun(*given, **more))


def wired(
    name: str, run_dir: Path, home: Path, *args: str, rules: str = RULES, env: dict[str, str] | None = None
) -> Wired:
    return wire(
        *(name, run_dir, [f"/usr/bin/{name}", *args], {"HOME": str(home), **(env or {})}, SESSION, rules),
        cwd=str(home / "my.project"),
    )


def value(argv: list[str], flag: str) -> str:
    assert argv.count(flag) == 1
    return argv[argv.index(flag) + 1]


def settings(run: Wired) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(value(run.argv, "--settings")).read_text("utf-8"))
    return found


@pytest.mark.parametrize(
    "command",
    [
        *("claude -p hello", "claude --print", "claude mcp list", "claude --version", "claude update"),
        *("claude --output-format json --print hi", "claude -h", "claude --bg"),
        *("codex exec hi", "codex -m gpt-5 exec hi", "codex -c model=exec mcp list", "codex --help"),
        *(
            "codex login",
            "codex e hi",
            "gemini -p hi",
            "gemini --prompt=hi",
            "gemini mcp list",
            "gemini --acp",
        ),
        *("gemini --list-sessions", "gemini -v"),
    ],
)
def test_what_is_no_session_is_left_as_it_is(command: str, run_dir: Path, home: Path) -> None:
    argv = command.split()
    run = wire(argv[0], run_dir, argv, {"HOME": str(home), "A": "b"}, SESSION, RULES)

    assert run == Wired(argv=argv, env={"HOME": str(home), "A": "b"})
    assert list(run_dir.iterdir()) == []
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        *(
            "claude",
            "claude hello -- -p",
            "claude --model opus",
            "claude fix-the-mcp",
            "claude -c",
            "claude -r",
        ),
        *("codex", "codex resume --last", "codex -m exec", "codex fork", "codex --cd exec hello"),
        *("gemini", "gemini hello", "gemini -i hello", "gemini --resume latest"),
    ],
)
def test_what_is_a_session_is_wired(command: str) -> None:
    assert find_adapter(command.split()[0]).is_session(command.split())


def test_a_command_without_a_wiring_is_left_as_it_is(run_dir: Path, home: Path) -> None:
    run = wired("bash", run_dir, home, "-l")

    assert run == Wired(argv=["/usr/bin/bash", "-l"], env={"HOME": str(home)})


def test_claude_gets_hooks_session_rules(run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home, "--model", "opus", "hello")

    assert run.argv[-3:] == ["--model", "opus", "hello"]
    assert value(run.argv, "--session-id") == run.session_id == SESSION
    assert value(run.argv, "--append-system-prompt") == RULES
    assert set(settings(run)) == {"hooks", "crossSessionInbound", "permissions"}
    assert set(settings(run)["hooks"]) == set(claude_wiring.EVENTS)
    assert run.env == {"HOME": str(home)}
    project = str(home / "my.project").replace("/", "-").replace(".", "-").replace("_", "-")
    assert run.transcript_hint == str(home / ".claude" / "projects" / project / f"{SESSION}.jsonl")


def test_claudes_files_are_private(run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home)

    assert Path(value(run.argv, "--settings")).stat().st_mode & 0o777 == 0o600
    assert Path(run.spool_dir).stat().st_mode & 0o777 == 0o700


def test_claudes_hooks_write_to_the_spool(run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home)
    (entry,) = settings(run)["hooks"]["Stop"]
    subprocess.run(entry["hooks"][0]["command"], shell=True, input=b'{"a": 1}', check=True)

    assert [path.read_bytes() for path in Path(run.spool_dir).glob("*.json")] == [b'{"a": 1}']


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_no_rules_are_no_argument(name: str, run_dir: Path, home: Path) -> None:
    run = wired(name, run_dir, home, rules=" \n")

    assert not {"--append-system-prompt", "-c"} & set(run.argv)
    assert list(run_dir.rglob(RULES_FILE)) == []


@pytest.mark.parametrize("is_file", [True, False])
@pytest.mark.parametrize("is_one_word", [True, False])
def test_settings_that_the_user_gives_are_merged(
    is_file: bool, is_one_word: bool, run_dir: Path, home: Path
) -> None:
    theirs = {"model": "opus", "hooks": {"Stop": [{"hooks": ["mine"]}], "PreCompact": [{"hooks": []}]}}
    text = json.dumps(theirs)
    if is_file:
        (home / "my.project").mkdir()
        (home / "my.project" / "mine.json").write_text(text)
        text = "mine.json"
    args = [f"--settings={text}"] if is_one_word else ["--settings", text]
    run = wired("claude", run_dir, home, *args, "hello")
    merged = settings(run)

    assert merged["model"] == "opus"
    assert merged["hooks"]["PreCompact"] == [{"hooks": []}]
    assert merged["hooks"]["Stop"][0] == {"hooks": ["mine"]}
    assert len(merged["hooks"]["Stop"]) == 2
    assert run.argv[-1] == "hello"


@pytest.mark.parametrize("text", ["none.json", "{nonsense", "[]", '{"hooks": 7}'])
def test_settings_that_cannot_be_read_are_claudes_to_refuse(text: str, run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home, "--settings", text)

    assert run == Wired(argv=["/usr/bin/claude", "--settings", text], env={"HOME": str(home)})


@pytest.mark.parametrize(
    ("args", "session"),
    [
        (["--session-id", OTHER], OTHER),
        ([f"--session-id={OTHER}"], OTHER),
        (["--resume", OTHER], OTHER),
        (["-r", OTHER], OTHER),
        (["--resume"], ""),
        (["--resume", "fix the parser"], ""),
        (["-c"], ""),
        (["--continue"], ""),
        (["--resume", OTHER, "--fork-session"], ""),
        (["--resume", OTHER, "--fork-session", "--session-id", SESSION], SESSION),
        (["--from-pr", "7"], ""),
    ],
)
def test_a_session_that_the_user_has_chosen_stays(
    args: list[str], session: str, run_dir: Path, home: Path
) -> None:
    run = wired("claude", run_dir, home, *args)

    assert run.session_id == session
    assert run.argv[-len(args) :] == args
    assert run.argv.count("--session-id") == args.count("--session-id")
    assert bool(run.transcript_hint) == bool(session)


def test_what_stands_behind_two_dashes_is_no_option(run_dir: Path, home: Path) -> None:
    args = ["--", "--session-id", OTHER, "--settings", "x"]
    run = wired("claude", run_dir, home, *args)

    assert run.session_id == SESSION
    assert run.argv[-5:] == args


def test_rules_are_added_to_the_users_own(run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home, "--append-system-prompt", "Be kind.", "hello")

    assert value(run.argv, "--append-system-prompt") == f"Be kind.\n\n{RULES}"
    assert run.argv[-1] == "hello"


def test_rules_are_added_to_the_users_file(run_dir: Path, home: Path) -> None:
    (home / "my.project").mkdir()
    (home / "my.project" / "mine.md").write_text("Be kind.")
    run = wired("claude", run_dir, home, "--append-system-prompt-file", "mine.md")

    assert value(run.argv, "--append-system-prompt") == f"Be kind.\n\n{RULES}"
    assert "--append-system-prompt-file" not in run.argv


def test_a_file_of_rules_that_is_not_there_is_claudes_to_refuse(run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home, "--append-system-prompt-file", "none.md")

    assert value(run.argv, "--append-system-prompt-file") == "none.md"
    assert "--append-system-prompt" not in run.argv


def test_claudes_own_folder_is_where_it_says(run_dir: Path, home: Path) -> None:
    run = wired("claude", run_dir, home, env={"CLAUDE_CONFIG_DIR": "/etc/claude"})

    assert run.transcript_hint.startswith("/etc/claude/projects/")


def test_a_very_long_folder_has_no_hint(run_dir: Path, home: Path) -> None:
    run = wire("claude", run_dir, ["claude"], {"HOME": str(home)}, SESSION, cwd="/" + "a" * 250)

    assert (run.session_id, run.transcript_hint) == (SESSION, "")


def instructions(argv: list[str]) -> str:
    texts = [one for one in argv if one.startswith("developer_instructions=")]
    return str(tomllib.loads(texts[-1])["developer_instructions"])


def test_codex_gets_rules_but_no_hooks(run_dir: Path, home: Path) -> None:
    run = wired("codex", run_dir, home, "-m", "gpt-5", "hello")

    assert run.argv[:2] == ["/usr/bin/codex", "--no-daemon"]
    assert run.argv[-1] == "hello"
    assert instructions(run.argv) == RULES
    assert not [one for one in run.argv if "hook" in one]
    assert (run.session_id, run.transcript_hint) == ("", str(home / ".codex" / "sessions"))


def test_codex_may_write_where_the_runs_of_the_room_work(run_dir: Path, home: Path) -> None:
    env = {"HOME": str(home)}
    run = wire("codex", run_dir, ["codex", "resume", "--last"], env, SESSION, worktrees="/w")

    assert run.argv == ["codex", "--no-daemon", "--add-dir", "/w", "resume", "--last"]


def test_codex_hooks_are_wired_where_they_are_trusted(run_dir: Path, home: Path) -> None:
    run = wire("codex", run_dir, ["codex"], {"HOME": str(home)}, SESSION, is_hook_trusted=True)
    (text,) = [one for one in run.argv if one.startswith("hooks.")]
    (entry,) = tomllib.loads(text)["hooks"]["PermissionRequest"]
    subprocess.run(entry["hooks"][0]["command"], shell=True, input=b"{}", check=True)

    assert "--dangerously-bypass-hook-trust" in run.argv
    assert len(list(Path(run.spool_dir).glob("*.json"))) == 1


@pytest.mark.parametrize("args", [["--no-daemon"], ["--remote", "unix://"], ["--remote=unix://"]])
def test_codex_is_asked_once_to_do_without_its_server(args: list[str], run_dir: Path, home: Path) -> None:
    run = wired("codex", run_dir, home, *args)

    assert run.argv.count("--no-daemon") == args.count("--no-daemon")


def test_codex_own_instructions_stay(run_dir: Path, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('developer_instructions = "Be kind."\n[tui]\n')

    assert instructions(wired("codex", run_dir, home).argv) == f"Be kind.\n\n{RULES}"


@pytest.mark.parametrize(
    ("args", "own"),
    [
        (["-c", 'developer_instructions="Be brief."'], "Be brief."),
        (["--config", "developer_instructions=Be brief."], "Be brief."),
        (["-p", "work"], "At work."),
        (["--config", "nonsense = ["], "Be kind."),
    ],
)
def test_of_codex_own_instructions_the_last_ones_stay(
    args: list[str], own: str, run_dir: Path, home: Path
) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('developer_instructions = "Be kind."\n')
    (home / ".codex" / "work.config.toml").write_text('developer_instructions = "At work."\n')
    run = wired("codex", run_dir, home, *args, "hello")

    assert instructions(run.argv) == f"{own}\n\n{RULES}"
    assert run.argv[-1] == "hello"


def test_a_session_of_codex_that_is_resumed_is_known(run_dir: Path, home: Path) -> None:
    run = wired("codex", run_dir, home, "resume", OTHER)

    assert run.session_id == OTHER
    assert run.argv[-2:] == ["resume", OTHER]


def gemini_settings(run: Wired) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        Path(run.env["GEMINI_CLI_HOME"], ".gemini", "settings.json").read_text()
    )
    return found


@pytest.fixture
def gemini(home: Path) -> Path:
    folder = home / ".gemini"
    (folder / "tmp").mkdir(parents=True)
    (folder / "settings.json").write_text(
        '{// mine\n "theme": "http://x/*y*/", /* two\n lines */ "context": {"fileName": "A.md", "x": 1},\n'
        ' "hooks": {"AfterAgent": [{"hooks": ["mine"]}]}}'
    )
    (folder / "GEMINI.md").write_text("memory")
    (folder / "commands").mkdir()
    return folder


def test_gemini_gets_a_home_of_links(run_dir: Path, home: Path, gemini: Path) -> None:
    before = {path: path.read_text() for path in gemini.rglob("*") if path.is_file()}
    run = wired("gemini", run_dir, home, "hello")
    ours = Path(run.env["GEMINI_CLI_HOME"]) / ".gemini"

    assert value(run.argv, "--session-id") == run.session_id == SESSION
    assert run.argv[-1] == "hello"
    assert (ours / "GEMINI.md").readlink() == gemini / "GEMINI.md"
    assert (ours / "commands").readlink() == gemini / "commands"
    assert (ours / "tmp").readlink() == gemini / "tmp"
    assert (ours / RULES_FILE).read_text() == RULES + "\n"
    assert {path: path.read_text() for path in gemini.rglob("*") if path.is_file()} == before


def test_geminis_settings_are_merged(run_dir: Path, home: Path, gemini: Path) -> None:
    merged = gemini_settings(wired("gemini", run_dir, home))

    assert merged["theme"] == "http://x/*y*/"
    assert merged["context"] == {"fileName": ["A.md", RULES_FILE], "x": 1}
    assert merged["hooks"]["AfterAgent"][0] == {"hooks": ["mine"]}
    assert len(merged["hooks"]["AfterAgent"]) == 2
    assert set(merged["hooks"]) == set(gemini_wiring.EVENTS)


def test_gemini_without_a_home_gets_one(run_dir: Path, home: Path) -> None:
    run = wired("gemini", run_dir, home)

    assert gemini_settings(run)["context"] == {"fileName": ["GEMINI.md", RULES_FILE]}
    assert sorted(path.name for path in (home / ".gemini").iterdir()) == ["history", "tmp"]


def test_gemini_home_may_be_elsewhere(run_dir: Path, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run = wired("gemini", run_dir, home, env={"GEMINI_CLI_HOME": str(other)})
    ours = Path(run.env["GEMINI_CLI_HOME"]) / ".gemini"

    assert (ours / "tmp").readlink() == other / ".gemini" / "tmp"
    assert run.transcript_hint == str(other / ".gemini" / "tmp")


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": 7}', '{"context": 7}'])
def test_settings_that_cannot_be_read_are_geminis_to_refuse(
    text: str, run_dir: Path, home: Path, gemini: Path
) -> None:
    (gemini / "settings.json").write_text(text)
    run = wired("gemini", run_dir, home)

    assert run.env == {"HOME": str(home)}
    assert run.session_id == SESSION


@pytest.mark.parametrize(
    ("args", "session"),
    [(["--resume", OTHER], OTHER), (["-r", "latest"], ""), (["--session-id", OTHER], OTHER)],
)
def test_a_session_of_gemini_that_the_user_has_chosen_stays(
    args: list[str], session: str, run_dir: Path, home: Path
) -> None:
    run = wired("gemini", run_dir, home, *args)

    assert run.session_id == session
    assert run.argv == ["/usr/bin/gemini", *args]


def test_what_gemini_writes_through_a_link_is_the_users(run_dir: Path, home: Path, gemini: Path) -> None:
    run = wired("gemini", run_dir, home)
    ours = Path(run.env["GEMINI_CLI_HOME"]) / ".gemini"
    (ours / "tmp" / "chat.jsonl").write_text("chat")
    (ours / "state.json").write_text("new")
    (ours / "GEMINI.md").write_text("more memory")

    assert (gemini / "tmp" / "chat.jsonl").read_text() == "chat"
    assert (gemini / "state.json").read_text() == "new"
    assert (gemini / "GEMINI.md").read_text() == "more memory"


def test_what_gemini_renames_into_place_comes_home(run_dir: Path, home: Path, gemini: Path) -> None:
    (gemini / "trustedFolders.json").write_text("{}")
    os.utime(gemini / "trustedFolders.json", (1, 1))
    run = wired("gemini", run_dir, home)
    ours = Path(run.env["GEMINI_CLI_HOME"]) / ".gemini"
    for name in ("trustedFolders.json", "brand-new.json"):
        (ours / ".fresh").write_text(f"new {name}")
        (ours / ".fresh").rename(ours / name)
    (ours / "made").mkdir()
    (ours / "made" / "file").write_text("kept")
    unwire(run_dir)

    assert (gemini / "trustedFolders.json").read_text() == "new trustedFolders.json"
    assert (gemini / "brand-new.json").read_text() == "new brand-new.json"
    assert (gemini / "made" / "file").read_text() == "kept"
    assert not (gemini / RULES_FILE).exists()
    assert not ours.exists()
    assert (gemini / "commands").is_dir()


def test_what_the_user_has_changed_meanwhile_stays(run_dir: Path, home: Path, gemini: Path) -> None:
    run = wired("gemini", run_dir, home)
    ours = Path(run.env["GEMINI_CLI_HOME"]) / ".gemini"
    (ours / ".fresh").write_text("older")
    os.utime(ours / ".fresh", (1, 1))
    (ours / ".fresh").rename(ours / "state.json")
    (gemini / "state.json").write_text("newer")
    unwire(run_dir)

    assert (gemini / "state.json").read_text() == "newer"


def test_a_setting_that_is_changed_in_gemini_comes_home(run_dir: Path, home: Path, gemini: Path) -> None:
    theirs = {"ui": {"theme": "dark", "x": 1}, "old": 1, "hooks": {"Stop": []}}
    (gemini / "settings.json").write_text(json.dumps(theirs))
    run = wired("gemini", run_dir, home)
    changed = gemini_settings(run)
    changed["ui"]["theme"] = "light"
    changed["security"] = {"auth": 1}
    del changed["old"]
    Path(run.env["GEMINI_CLI_HOME"], ".gemini", "settings.json").write_text(json.dumps(changed))
    unwire(run_dir)

    assert json.loads((gemini / "settings.json").read_text()) == {
        "ui": {"theme": "light", "x": 1},
        "hooks": {"Stop": []},
        "security": {"auth": 1},
    }


def test_settings_with_comments_are_never_rewritten(run_dir: Path, home: Path, gemini: Path) -> None:
    before = (gemini / "settings.json").read_text()
    run = wired("gemini", run_dir, home)
    changed = gemini_settings(run) | {"theme": "light"}
    Path(run.env["GEMINI_CLI_HOME"], ".gemini", "settings.json").write_text(json.dumps(changed))
    unwire(run_dir)

    assert (gemini / "settings.json").read_text() == before


def test_settings_that_nobody_changed_stay_as_they_are(run_dir: Path, home: Path, gemini: Path) -> None:
    (gemini / "settings.json").write_text('{"a":1}')
    wired("gemini", run_dir, home)
    unwire(run_dir)
    unwire(run_dir)

    assert (gemini / "settings.json").read_text() == '{"a":1}'


def test_half_an_overlay_is_just_removed(run_dir: Path) -> None:
    (run_dir / "gemini-home" / ".gemini").mkdir(parents=True)
    unwire(run_dir)

    assert not (run_dir / "gemini-home").exists()


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("claude --model opus hello", f"claude --resume {OTHER} --model opus hello"),
        (f"claude --session-id {SESSION} -c", f"claude --resume {OTHER}"),
        (f"claude --resume={SESSION}", f"claude --resume {OTHER}"),
        ("codex -m gpt-5", f"codex -m gpt-5 resume {OTHER}"),
        (f"codex -m gpt-5 resume {SESSION}", f"codex -m gpt-5 resume {OTHER}"),
        ("codex fork --last", f"codex resume {OTHER}"),
        (f"gemini --session-id {SESSION} -y", f"gemini --resume {OTHER} -y"),
        ("bash -l", "bash -l"),
    ],
)
def test_a_session_can_be_gone_on_with(command: str, expected: str) -> None:
    argv = shlex.split(command)

    assert find_adapter(argv[0]).resume(argv, OTHER) == shlex.split(expected)


def test_a_resumed_run_is_wired_for_its_session(run_dir: Path, home: Path) -> None:
    argv = find_adapter("claude").resume(["claude", "--model", "opus"], OTHER)
    run = wire("claude", run_dir, argv, {"HOME": str(home)}, SESSION, cwd="/p")

    assert run.session_id == OTHER
    assert "--session-id" not in run.argv


def test_the_launcher_can_import_it_for_little() -> None:
    code = "import sys, csp.clis.wiring, csp.clis.claude.wiring, csp.clis.codex.wiring; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {
        "asyncio",
        "msgspec",
        "websockets",
        "subprocess",
        "tomllib",
        "shutil",
        "csp.clis.gemini.gemini_home",
    }
    assert heavy & set(run.stdout.split()) == set()


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_what_is_added_is_known_to_the_installed_cli(name: str, run_dir: Path, home: Path) -> None:
    """In every run the scenes with the real CLIs start and resume them with these very words."""
    run = subprocess.run([BIN / name, "--help"], capture_output=True, text=True, check=True, timeout=240)
    ours = wire(name, run_dir, [name], {"HOME": str(home)}, SESSION, "Rules.", is_hook_trusted=True).argv
    words = [*ours, *find_adapter(name).resume([name], SESSION)]
    added = {word for word in words if word.startswith("-") or word == "resume"}

    assert added
    assert {
        word for word in added if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", run.stdout)
    } == set()


# --- the tools of the room -----------------------------------------------------------------------

PEER_TOOLS = ["SendMessage", "ListAgents"]
SERVER = ["/opt/my python", "-P", "-m", "csp.cli", "mcp"]


def with_tools(name: str, run_dir: Path, home: Path, *args: str, env: dict[str, str] | None = None) -> Wired:
    return wire(
        *(name, run_dir, [f"/usr/bin/{name}", *args], {"HOME": str(home), **(env or {})}, SESSION, RULES),
        cwd=str(home),
        server=SERVER,
    )


def test_claude_gets_our_server_beside_those_of_its_user(run_dir: Path, home: Path) -> None:
    run = with_tools("claude", run_dir, home, "--mcp-config", "mine.json", "--model", "opus")
    given = [run.argv[at + 1] for at, word in enumerate(run.argv) if word == "--mcp-config"]
    # Without it newer versions tell the model of our tools only when it searches for them.
    entry = {"type": "stdio", "command": SERVER[0], "args": SERVER[1:], "alwaysLoad": True}

    assert given == [str(run_dir / "claude-mcp.json"), "mine.json"]
    assert json.loads(Path(given[0]).read_text()) == {"mcpServers": {"csp": entry}}
    # The option takes every word up to the next option for a file.
    assert run.argv[run.argv.index(given[0]) + 1] == "--settings"
    assert settings(run)["permissions"] == {"allow": ["mcp__csp"], "deny": PEER_TOOLS}


def test_claude_waits_for_our_server_on_a_busy_machine(run_dir: Path, home: Path) -> None:
    assert with_tools("claude", run_dir, home).env["MCP_TIMEOUT"] == "60000"
    assert with_tools("claude", run_dir, home, env={"MCP_TIMEOUT": "9"}).env["MCP_TIMEOUT"] == "9"


def test_claude_keeps_the_permissions_of_chosen_settings(run_dir: Path, home: Path) -> None:
    chosen = json.dumps({"permissions": {"allow": ["Read"], "deny": ["Bash"]}})
    run = with_tools("claude", run_dir, home, "--settings", chosen)

    assert settings(run)["permissions"] == {
        "allow": ["Read", "mcp__csp"],
        "deny": ["Bash", *PEER_TOOLS],
    }


def test_no_other_claude_reaches_this_one_past_the_room(run_dir: Path, home: Path) -> None:
    chosen = json.dumps({"crossSessionInbound": "accept"})
    run = wired("claude", run_dir, home, "--settings", chosen)

    assert settings(run)["crossSessionInbound"] == "refuse"
    assert settings(run)["permissions"] == {"deny": PEER_TOOLS}


def test_claude_keeps_the_tools_for_its_own_agents_where_they_are_wanted(run_dir: Path, home: Path) -> None:
    env = {"HOME": str(home)}
    run = wire("claude", run_dir, ["claude"], env, SESSION, cwd=str(home), has_peers=True)

    assert settings(run)["crossSessionInbound"] == "refuse"
    assert "permissions" not in settings(run)


def test_codex_gets_our_server_with_what_it_needs_to_know(run_dir: Path, home: Path) -> None:
    run = with_tools("codex", run_dir, home, "-c", "mcp_servers.mine.command='x'")
    given = [run.argv[at + 1] for at, word in enumerate(run.argv) if word == "-c"]
    ours = tomllib.loads("\n".join(one for one in given if one.startswith("mcp_servers.csp.")))
    server = ours["mcp_servers"]["csp"]

    assert "mcp_servers.mine.command='x'" in given
    assert [server["command"], *server["args"]] == SERVER
    assert {"CSP_AUTH_TOKEN", "CSP_AGENT", "CSP_GATEWAY_URL"} <= set(server["env_vars"])
    assert server["default_tools_approval_mode"] == "approve"
    assert (server["startup_timeout_sec"], server["tool_timeout_sec"]) == (60, 1900)


@pytest.mark.parametrize(("own", "is_given"), [('url = "http://x/mcp"', False), ('command = "x"', True)])
def test_codex_keeps_a_server_of_our_name_that_has_an_address(
    run_dir: Path, home: Path, own: str, is_given: bool
) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(f"[mcp_servers.csp]\n{own}\n")

    assert any("mcp_servers.csp." in word for word in with_tools("codex", run_dir, home).argv) is is_given


def test_gemini_gets_our_server_trusted_beside_those_of_its_user(run_dir: Path, home: Path) -> None:
    (home / ".gemini").mkdir()
    own = {"mcpServers": {"mine": {"command": "x"}}, "mcp": {"allowed": ["mine"], "excluded": []}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(own))
    run = with_tools("gemini", run_dir, home, env={"CSP_AGENT": "gemini", "CSP_AUTH_TOKEN": "secret"})
    written = (Path(run.env["GEMINI_CLI_HOME"]) / ".gemini" / "settings.json").read_text()
    found = json.loads(written)

    assert found["mcpServers"]["mine"] == {"command": "x"}
    assert found["mcpServers"]["csp"] == {
        "command": SERVER[0],
        "args": SERVER[1:],
        "env": {"CSP_AUTH_TOKEN": "$CSP_AUTH_TOKEN", "CSP_AGENT": "$CSP_AGENT"},
        "trust": True,
        "timeout": 1_900_000,
    }
    assert found["mcp"] == {"allowed": ["mine", "csp"], "excluded": []}
    assert "secret" not in written
    unwire(run_dir)
    assert json.loads((home / ".gemini" / "settings.json").read_text()) == own


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
def test_without_the_server_nothing_is_said_of_it(run_dir: Path, home: Path, name: str) -> None:
    run = wired(name, run_dir, home)
    files = [path.read_text() for path in run_dir.rglob("*") if path.is_file()]

    assert not any("mcp" in text.lower() for text in (*run.argv, *files))


def test_the_rules_speak_of_tools_to_those_who_have_them() -> None:
    assert "send_message" in rules_text("ada", has_tools=True)
    assert "send_message" not in rules_text("ada")
    assert rules_text("ada", has_tools=True).startswith(rules_text("ada"))
    assert rules_text("ada", "orchestrator", has_tools=True).count("send_message") == 1


# --- words and bounds ----------------------------------------------------------------------------

#: The words of each CLI that are no interactive session.
NO_SESSION = {
    "claude": "agents auth auto-mode doctor gateway install mcp plugin plugins project setup-token"
    " ultrareview update upgrade -p --print -h --help -v --version --bg --background",
    "codex": "agents exec e review login logout mcp plugin app-server remote-control completion update doctor"
    " sandbox debug apply a queue archive delete migrate-rollouts migrate-nfs-db unarchive cloud exec-server"
    " features help -h --help -V --version",
    "gemini": "mcp extensions extension skills skill hooks hook gemma -p --prompt --acp --experimental-acp -l"
    " --list-extensions --list-sessions --delete-session -v --version -h --help",
}


@pytest.mark.parametrize("name", NO_SESSION)
def test_each_command_of_a_cli_is_known(name: str) -> None:
    assert [word for word in NO_SESSION[name].split() if find_adapter(name).is_session([name, word])] == []


def test_the_value_of_each_option_of_codex_is_no_command() -> None:
    options = "-c --config --enable --disable --remote --remote-auth-token-env -i --image -m --model"
    options += " --local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval"

    assert [
        one for one in options.split() if not find_adapter("codex").is_session(["codex", one, "exec"])
    ] == []


def test_the_hooks_are_those_that_nothing_else_tells_of(run_dir: Path, home: Path, gemini: Path) -> None:
    """With the time they may take: in seconds for Claude, in milliseconds for Gemini."""
    claude = settings(wired("claude", run_dir, home))["hooks"]
    theirs = gemini_settings(wired("gemini", run_dir, home))["hooks"]

    assert set(claude) == {
        *("SessionStart", "UserPromptSubmit", "PermissionRequest"),
        *("PostToolUse", "PostToolUseFailure", "Stop", "StopFailure"),
    }
    assert set(theirs) == {
        *("SessionStart", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification")
    }
    assert {entry[-1]["hooks"][0]["timeout"] for entry in claude.values()} == {60}
    assert {entry[-1]["hooks"][0]["timeout"] for entry in theirs.values()} == {60_000}


def test_of_two_settings_or_rules_the_last_ones_count(run_dir: Path, home: Path) -> None:
    args = ["--settings", '{"a": 1}', "--settings", '{"b": 2}']
    args += ["--append-system-prompt", "One.", "--append-system-prompt=Two."]
    run = wired("claude", run_dir, home, *args)

    assert set(settings(run)) == {"b", "hooks", "crossSessionInbound", "permissions"}
    assert value(run.argv, "--append-system-prompt") == f"Two.\n\n{RULES}"


def test_claude_names_its_transcripts_after_the_real_folder(run_dir: Path, home: Path) -> None:
    (home / "real").mkdir()
    (home / "my.project").symlink_to(home / "real")

    assert Path(wired("claude", run_dir, home).transcript_hint).parent.name.endswith("-real")


@pytest.mark.parametrize(("length", "is_known"), [(200, True), (201, False)])
def test_the_longest_folder_that_has_a_hint(run_dir: Path, length: int, is_known: bool) -> None:
    run = wire("claude", run_dir, ["claude"], {"HOME": "/h"}, SESSION, cwd="/" + "a" * (length - 1))

    assert bool(run.transcript_hint) is is_known


def test_without_a_folder_the_one_of_the_process_is_meant(
    run_dir: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "here").mkdir()
    monkeypatch.chdir(home / "here")
    run = wire("claude", run_dir, ["claude"], {"HOME": "/h"}, SESSION)

    assert Path(run.transcript_hint).parent.name.endswith("-here")


@pytest.mark.parametrize(
    ("args", "session"),
    [
        (["resume"], ""),
        (["resume", "my-session"], ""),
        (["resume", OTHER.replace("2", "z")], ""),
        (["hello", OTHER], ""),
        (["-m", "resume", OTHER], ""),
    ],
)
def test_only_a_resumed_session_of_codex_is_known(
    args: list[str], session: str, run_dir: Path, home: Path
) -> None:
    assert wired("codex", run_dir, home, *args).session_id == session


def test_codex_home_is_where_it_says(run_dir: Path, home: Path) -> None:
    (home / "codex").mkdir()
    (home / "codex" / "config.toml").write_text('developer_instructions = "There."')
    run = wired("codex", run_dir, home, env={"CODEX_HOME": str(home / "codex")})

    assert run.transcript_hint == str(home / "codex" / "sessions")
    assert instructions(run.argv) == f"There.\n\n{RULES}"


def test_options_of_ours_never_follow_two_dashes_or_a_word(run_dir: Path, home: Path) -> None:
    dashes = wired("codex", run_dir, home, "-m", "gpt-5", "--", "-x", "hello").argv
    word = wired("codex", run_dir, home, "-m", "gpt-5", "resume", "--last").argv

    assert dashes[-5:] == ["-c", dashes[-4], "--", "-x", "hello"]
    assert word[-4:] == ["-c", word[-3], "resume", "--last"]


@pytest.mark.parametrize("flag", ["--session-id", "-r", "--resume", "--session-file"])
def test_each_way_to_choose_a_session_of_gemini_stays(flag: str, run_dir: Path, home: Path) -> None:
    run = wired("gemini", run_dir, home, flag, "latest")

    assert run.argv[1:] == [flag, "latest"]
    assert run.session_id == ""


@pytest.mark.parametrize(
    ("own", "names"),
    [({}, ["GEMINI.md"]), ({"fileName": "A.md"}, ["A.md"]), ({"fileName": ["A", "B"]}, ["A", "B"])],
)
def test_gemini_reads_the_rules_beside_the_files_of_its_user(
    own: dict[str, Any], names: list[str], run_dir: Path, home: Path
) -> None:
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps({"context": own}))
    run = wired("gemini", run_dir, home)

    assert gemini_settings(run)["context"] == {"fileName": [*names, RULES_FILE]}
    assert Path(run.env["GEMINI_CLI_HOME"], ".gemini", RULES_FILE).read_text() == f"{RULES}\n"


def test_a_tool_that_writes_a_plain_transcript_is_told_where(run_dir: Path, home: Path) -> None:
    run = wired("plain", run_dir, home, "-x")

    assert run.argv == ["/usr/bin/plain", "-x"]
    assert run.env == {"HOME": str(home), "CSP_TRANSCRIPT": str(run_dir / "transcript.jsonl")}
    assert (run.transcript_hint, run.spool_dir) == (run.env["CSP_TRANSCRIPT"], str(run_dir / "spool"))


def test_what_another_run_has_wired_is_left_alone(run_dir: Path, home: Path) -> None:
    wired("gemini", run_dir, home)
    unwire(run_dir, owner=1)
    assert (run_dir / "gemini-home").is_dir()
    unwire(run_dir, owner=os.getpid())
    assert not (run_dir / "gemini-home").exists()
