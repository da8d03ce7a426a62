"""The settings: where each comes from, what is refused, how they are shown."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from csp.cli.parser import verb_parser
from csp.cli.verbs import VERBS
from csp.config import CLI_DEFAULTS, MAX_FOUND_BYTES, ROWS, AgentSpec, Settings, load_settings, shown
from csp.errors import BadInput
from csp.room_registry import claim

ROOT = Path(__file__).parent.parent
DERIVED = {"of_clis", "agents", "allow", "groups", "lineups", "state_dir", "project", "sources", "withheld"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".config/csp").mkdir(parents=True)
    return home


@pytest.fixture
def here(tmp_path: Path) -> Path:
    here = tmp_path / "project"
    here.mkdir()
    return here


def load(home: Path, here: Path, flags: Mapping[str, str] | None = None, /, **env: str) -> Settings:
    return load_settings(flags, env={"HOME": str(home)} | env, cwd=here, ask=lambda _: True)


def load_error(home: Path, here: Path, flags: Mapping[str, str] | None = None, /, **env: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        load(home, here, flags, **env)
    return caught.value


def test_nothing_given_means_the_defaults(home: Path, here: Path) -> None:
    settings = load(home, here)

    assert (settings.host, settings.port, settings.room) == ("127.0.0.1", 8765, "project")
    assert settings.orch_cmd == ("claude", "--model", "haiku")
    assert settings.max_cost_usd is None
    assert set(settings.sources.values()) == {"default"}


def test_the_nearest_source_wins(home: Path, here: Path) -> None:
    flags: dict[str, str] = {}
    env: dict[str, str] = {}
    seen = [load(home, here, flags, **env)]
    (home / ".config/csp/config.toml").write_text("[room]\nport = 1\n")
    seen.append(load(home, here, flags, **env))
    (here / "csp.toml").write_text("[room]\nport = 2\n")
    seen.append(load(home, here, flags, **env))
    env["CSP_PORT"] = "3"
    seen.append(load(home, here, flags, **env))
    flags["port"] = "4"
    seen.append(load(home, here, flags, **env))

    assert [settings.port for settings in seen] == [8765, 1, 2, 3, 4]
    assert [settings.sources["port"] for settings in seen] == [
        "default",
        str(home / ".config/csp/config.toml"),
        str(here / "csp.toml"),
        "CSP_PORT",
        "--port",
    ]


def test_a_value_like_the_default_still_counts_as_set(home: Path, here: Path) -> None:
    assert load(home, here, CSP_PORT="8765").is_set("port")
    assert not load(home, here).is_set("port")


def test_an_empty_variable_is_not_set(home: Path, here: Path) -> None:
    assert load(home, here, CSP_PORT="", CSP_MAX_COST_USD="").sources["port"] == "default"


def test_config_file_replaces_the_one_of_the_directory(home: Path, here: Path) -> None:
    (here / "csp.toml").write_text("[room]\nport = 2\nhost = 'localhost'\n")
    (here / "other.toml").write_text("[room]\nport = 5\n")

    settings = load(home, here, CSP_CONFIG_FILE="other.toml")

    assert (settings.port, settings.host) == (5, "127.0.0.1")


def test_a_missing_config_file_is_an_error(home: Path, here: Path) -> None:
    error = load_error(home, here, CSP_CONFIG_FILE="nosuch.toml")

    assert error.message == "CSP_CONFIG_FILE: expected a file that exists, got 'nosuch.toml'"


GATEWAYS = "an http or https URL without a user name, or several separated by commas"


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("CSP_PORT", "abc", "a whole number from 0 to 65535"),
        ("CSP_PORT", "65536", "a whole number from 0 to 65535"),
        ("CSP_PORT", "-1", "a whole number from 0 to 65535"),
        ("CSP_PORT", "\u0661", "a whole number from 0 to 65535"),
        ("CSP_HISTORY_CAP", "0", "a whole number from 1"),
        ("CSP_MAX_MINUTES", "0", "a number greater than 0"),
        ("CSP_MAX_MINUTES", "nan", "a number greater than 0"),
        ("CSP_MAX_COST_USD", "cheap", "a number greater than 0, or none"),
        ("CSP_DURABILITY", "fsyn", "one of none, flush, fsync"),
        ("CSP_ROOM", "My Room", "a room name of a-z, 0-9 or -, at most 32 characters long"),
        ("CSP_ROOM", "a" * 33, "a room name of a-z, 0-9 or -, at most 32 characters long"),
        ("CSP_ROOM", "../up", "a room name of a-z, 0-9 or -, at most 32 characters long"),
        ("CSP_ROOM", "room\n", "a room name of a-z, 0-9 or -, at most 32 characters long"),
        ("CSP_PUBLIC_URL", "https://gw.example/path", "an http or https URL without a path"),
        ("CSP_PUBLIC_URL", "gw.example", "an http or https URL without a path"),
        ("CSP_PUBLIC_NAME", "gw.example:8765", "host names without a port, separated by commas"),
        ("CSP_PUBLIC_NAME", "a.example,", "host names without a port, separated by commas"),
        ("CSP_GATEWAY_URL", "localhost:8765", GATEWAYS),
        ("CSP_GATEWAY_URL", "http://me:pw@host", GATEWAYS),
        ("CSP_GATEWAY_URL", "http://host:99999", GATEWAYS),
        ("CSP_GATEWAY_URL", "http://[::1", GATEWAYS),
        ("CSP_GATEWAY_URL", "http://a:1,b:2", GATEWAYS),
        ("CSP_GATEWAY_URL", "http://a:1,", GATEWAYS),
        ("CSP_ORCHESTRATOR", "maybe", "1 or 0"),
        ("CSP_CLAUDE_CMD", "claude 'open", "a command line"),
        ("CSP_HOST", "a\x1b[2J", "one line of text"),
    ],
)
def test_a_bad_value_names_its_source(
    home: Path, here: Path, variable: str, text: str, expected: str
) -> None:
    error = load_error(home, here, None, **{variable: text})

    assert error.message == f"{variable}: expected {expected}, got {text!r}"


@pytest.mark.parametrize("url", ["http://127.0.0.1:8765", "https://[::1]:1", "http://host/csp/", "http://h"])
def test_the_usual_urls_are_taken(home: Path, here: Path, url: str) -> None:
    assert load(home, here, CSP_GATEWAY_URL=url).gateway_url == url


def test_several_gateways_are_separated_by_commas(home: Path, here: Path) -> None:
    assert (
        load(home, here, CSP_GATEWAY_URL="http://a:1, https://b/r/x").gateway_url
        == "http://a:1,https://b/r/x"
    )


def test_a_bad_flag_names_the_flag(home: Path, here: Path) -> None:
    error = load_error(home, here, {"port": "abc"})

    assert error.message == "--port: expected a whole number from 0 to 65535, got 'abc'"


def test_a_bad_secret_is_not_repeated(home: Path, here: Path) -> None:
    error = load_error(home, here, CSP_AUTH_TOKEN="s3cret\n")

    assert "s3cret" not in error.message


@pytest.mark.parametrize(("text", "value"), [("1", True), ("off", False), ("Yes", True), ("0", False)])
def test_a_switch_is_read_from_its_usual_words(home: Path, here: Path, text: str, value: bool) -> None:
    assert load(home, here, CSP_ORCHESTRATOR=text).orchestrator is value


def test_a_limit_of_the_file_can_be_lifted_from_outside(home: Path, here: Path) -> None:
    (here / "csp.toml").write_text("[limits]\ncost_usd = 2.5\n")

    assert load(home, here).max_cost_usd == 2.5
    assert load(home, here, CSP_MAX_COST_USD="none").max_cost_usd is None


@pytest.mark.parametrize(
    ("toml", "message", "hint"),
    [
        ("[room]\nnmae = 'a'", "unknown key 'room.nmae'", "did you mean 'room.name'?"),
        ("[limit]\nturns = 1", "unknown key 'limit'", "did you mean 'limits'?"),
        ("room = 3", "room: expected a table, got 3", "write it as [room]"),
        ("[room]\nport = '8'", "room.port: expected a whole number from 0 to 65535, got '8'", ""),
        ("[room]\nport = true", "room.port: expected a whole number from 0 to 65535, got True", ""),
        ("[room]\norchestrator = 1", "room.orchestrator: expected 1 or 0, got 1", ""),
        ("[room]\nclaude_cmd = ['a', 1]", "room.claude_cmd: expected a command line, got ['a', 1]", ""),
        ("[room]\nclaude_cmd = []", "room.claude_cmd: expected a command line, got ''", ""),
        ("[agent]\nname = 'a'", "agent: expected a list of tables", "write each as [[agent]]"),
        ("[[agent]]\ncommand = 'a'", "agent: expected a name, got command", ""),
        (
            "[[agent]]\nname = 'a'\nprofil = 'x'",
            "unknown key 'agent.profil'",
            "did you mean 'agent.profile'?",
        ),
        ("[[agent]]\nname = 7", "agent.name: expected a name of 1 to 128 characters, got 7", ""),
        (
            "[[agent]]\nname = 'a'\nrole = 'big boss'",
            "agent.role: expected one short word of a-z, 0-9 or -, such as reviewer, got 'big boss'",
            "",
        ),
        (
            "[[agent]]\nname = 'a'\nprompt = \"a\\u001bb\"",
            "agent.prompt: expected a text of at most 16000 characters, got 'a\\x1bb'",
            "",
        ),
        ("[lineups]\nreview = 7", "lineups.review: expected a table", '[lineups.review] agents = ["..."]'),
        (
            "[lineups.review]\nagent = ['a']",
            "unknown key 'lineups.review.agent'",
            "did you mean 'lineups.review.agents'?",
        ),
        ("[lineups.review]", "lineups.review.agents: expected a list of names, got None", ""),
        ("[lineups.review]\nagents = []", "lineups.review.agents: expected a list of names, got []", ""),
        (
            "[lineups.review]\nagents = [7]",
            "lineups.review.agents: expected a name of 1 to 128 characters, got 7",
            "",
        ),
        (
            "[[agent]]\nname = 'a'\n[[agent]]\nname = 'a'",
            "agent.name: expected unique names, got 'a' twice",
            "",
        ),
    ],
)
def test_a_wrong_file_names_file_and_key(home: Path, here: Path, toml: str, message: str, hint: str) -> None:
    (here / "csp.toml").write_text(toml)

    error = load_error(home, here)

    assert (error.message, error.hint) == (f"{here / 'csp.toml'}: {message}", hint)


@pytest.mark.parametrize("raw", [b"[room", b"\xff\xfe", b"a = " + b"[" * 5000])
def test_a_file_that_is_not_toml_is_named(home: Path, here: Path, raw: bytes) -> None:
    (here / "csp.toml").write_bytes(raw)

    assert load_error(home, here).message.startswith(f"{here / 'csp.toml'}: not valid TOML: ")


def test_a_file_that_cannot_be_read_is_named(home: Path, here: Path) -> None:
    (here / "csp.toml").mkdir()

    assert load_error(home, here).message == f"cannot read '{here / 'csp.toml'}': not a regular file"


def test_a_device_in_the_place_of_the_file_is_not_read(home: Path, here: Path) -> None:
    # /dev/zero would be read for ever.
    (here / "csp.toml").symlink_to("/dev/null")

    assert load_error(home, here).message == f"cannot read '{here / 'csp.toml'}': not a regular file"


def test_a_very_long_file_is_refused_unless_the_user_names_it(home: Path, here: Path) -> None:
    (here / "csp.toml").write_text("#" * MAX_FOUND_BYTES + "#")

    assert load_error(home, here).message == f"{here / 'csp.toml'}: over 131072 bytes"
    assert not load(home, here, CSP_CONFIG_FILE="csp.toml").agents


@pytest.mark.parametrize("part", ["a", "'b c'", '"d.e"'])
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(home: Path, here: Path, part: str) -> None:
    (here / "csp.toml").write_text(".".join([part] * 2_000) + " = 1")

    assert load_error(home, here).message == f"{here / 'csp.toml'}: a key with more than 16 parts"


def test_agents_are_read_from_the_file(home: Path, here: Path) -> None:
    (here / "csp.toml").write_text(
        "[[agent]]\nname = 'claude'\ncommand = \"claude --model 'my opus'\"\nprofile = 'claude'\n"
        "[[agent]]\nname = 'boss'\ncommand = ['codex', '-m', 'x y']\nrole = 'orchestrator'\ncwd = 'sub'\n"
        "worktree = true\n"
    )

    assert load(home, here).agents == (
        AgentSpec(name="claude", command=("claude", "--model", "my opus"), profile="claude"),
        AgentSpec(
            name="boss", command=("codex", "-m", "x y"), role="orchestrator", cwd=here / "sub", worktree=True
        ),
    )


def test_worktrees_are_for_all_agents_unless_one_says_otherwise(home: Path, here: Path) -> None:
    assert not load(home, here).is_set("worktrees")
    (here / "csp.toml").write_text("[room]\nworktrees = true\n[[agent]]\nname = 'a'\nworktree = false\n")
    settings = load(home, here)

    assert (settings.worktrees, settings.agents[0].worktree) == (True, False)
    assert not load(home, here, CSP_WORKTREES="0").worktrees
    assert load(home, here, {"worktrees": "1"}, CSP_WORKTREES="0").worktrees


def test_a_role_says_what_an_agent_may_do_or_what_it_does(home: Path, here: Path) -> None:
    (here / "csp.toml").write_text(
        '[[agent]]\nname = \'a\'\nrole = \'reviewer\'\nprompt = """\nFind mistakes.\nBe kind.\n"""\n'
        "[[agent]]\nname = 'b'\nrole = 'orchestrator'\n[[agent]]\nname = 'c'\nrole = 'agent'\n"
    )

    found = [(agent.role, agent.duty, agent.prompt) for agent in load(home, here).agents]
    assert found == [
        ("agent", "reviewer", "Find mistakes.\nBe kind."),
        ("orchestrator", "", ""),
        ("agent", "", ""),
    ]


def test_line_ups_of_all_files_are_known_and_the_project_wins(home: Path, here: Path) -> None:
    (home / ".config/csp/config.toml").write_text(
        "[lineups.review]\nagents = ['x']\n[lineups.solo]\nagents = ['claude']\n"
    )
    (here / "csp.toml").write_text("[lineups.review]\nagents = ['claude', 'codex']\n")

    assert load(home, here).lineups == {"solo": ("claude",), "review": ("claude", "codex")}


def test_agents_of_two_files_are_not_mixed(home: Path, here: Path) -> None:
    (home / ".config/csp/config.toml").write_text("[[agent]]\nname = 'codex'\n")
    (here / "csp.toml").write_text("[[agent]]\nname = 'claude'\n")

    assert [agent.name for agent in load(home, here).agents] == ["claude"]


def test_a_path_in_a_file_is_relative_to_the_file(home: Path, here: Path) -> None:
    (home / ".config/csp/config.toml").write_text("[room]\nhistory_dir = '../chats'\n")

    assert load(home, here).history_dir == home / ".config/chats"
    assert load(home, here, CSP_HISTORY_DIR="chats").history_dir == here / "chats"


def test_a_clone_as_a_project_has_its_own_history(home: Path, here: Path) -> None:
    clone, data = ROOT, home / ".local/share/csp/history"

    assert load(home, clone).history_dir == load(home, clone / "docs").history_dir == clone / "history"
    assert load(home, here).history_dir == data


def test_a_named_room_of_an_earlier_version_is_found_with_its_history(
    home: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone := home / "clone").mkdir()
    monkeypatch.setattr("csp.config.clone_dir", lambda: clone)
    (clone / "history" / "default").mkdir(parents=True)
    (clone / "history" / "default" / "journal.jsonl").touch()
    data = home / ".local/share/csp/history"

    assert load(home, here, {"room": "default"}).history_dir == clone / "history"
    assert load(home, here, {"room": "other"}).history_dir == data
    assert load(home, here, {"room": "default"}, CSP_HISTORY_DIR="/h").history_dir == Path("/h")


def test_a_room_of_the_home_directory_is_not_that_of_everything_in_it(home: Path, here: Path) -> None:
    (notes := home / "notes").mkdir()
    (below := here / "below").mkdir()
    for folder in (home, here):
        claim(load(home, folder), {"HOME": str(home)})

    assert [load(home, folder).room for folder in (home, notes, below)] == ["home", "notes", "project"]


def test_a_claimed_room_keeps_its_history_folder(home: Path, here: Path, tmp_path: Path) -> None:
    claim(load(home, here, {"history_dir": "/journals"}), {"HOME": str(home)})

    assert load(home, here).history_dir == Path("/journals")
    assert load(home, tmp_path, {"room": "project"}).history_dir == Path("/journals")


def test_history_of_an_installed_package_lies_in_the_users_data(
    home: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.config.__file__", str(here / "site-packages/csp/config.py"))

    assert load(home, here).history_dir == home / ".local/share/csp/history"
    assert load(home, here, XDG_DATA_HOME="/data").history_dir == Path("/data/csp/history")


def test_state_lies_in_the_runtime_dir_if_there_is_one(home: Path, here: Path) -> None:
    assert load(home, here).state_dir == home / ".cache/csp"
    assert load(home, here, XDG_RUNTIME_DIR=str(here)).state_dir == here / "csp"
    assert load(home, here, XDG_RUNTIME_DIR=str(here / "gone")).state_dir == home / ".cache/csp"
    assert load(home, here, XDG_CACHE_HOME="relative").state_dir == home / ".cache/csp"


def test_a_secret_is_never_shown(home: Path, here: Path) -> None:
    settings = load(home, here, CSP_AUTH_TOKEN="s3cret")
    texts = [shown(settings, row) for row in ROWS] + [repr(settings)]

    assert not any("s3cret" in text for text in texts)
    assert "********" in texts


def test_groups_stand_for_agents_and_the_nearest_file_counts(home: Path, here: Path) -> None:
    (home / ".config/csp/config.toml").write_text('[groups]\nall-mine = ["ada"]\nreviewers = ["cy"]\n')
    (here / "csp.toml").write_text('[groups]\nreviewers = ["ada", "bob"]\n')

    assert load(home, here).groups == {"reviewers": ("ada", "bob"), "all-mine": ("ada",)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('groups = ["ada"]', "groups: expected a table"),
        ('[groups]\nreviewers = "ada"', "groups.reviewers: expected a list of agents"),
        ("[groups]\nreviewers = []", "groups.reviewers: expected a list of agents"),
        ('[groups]\nreviewers = ["a b"]', "groups.reviewers"),
        ('[groups]\n"a b" = ["ada"]', "groups.a b"),
    ],
)
def test_a_wrong_group_is_refused(home: Path, here: Path, text: str, problem: str) -> None:
    (here / "csp.toml").write_text(text)

    with pytest.raises(BadInput, match=problem):
        load(home, here)


def test_the_table_has_a_row_for_every_setting() -> None:
    named = [f.name for f in fields(Settings) if f.name not in DERIVED]

    assert [row.name for row in ROWS if row.name not in CLI_DEFAULTS] == named
    assert CLI_DEFAULTS.keys() <= {row.name for row in ROWS}
    assert all(row.env.startswith("CSP_") and row.help for row in ROWS)


def test_every_default_passes_its_own_check(home: Path, here: Path) -> None:
    defaults = load(home, here)
    given = {row.env: shown(defaults, row) for row in ROWS if shown(defaults, row) != "none"}
    again = load(home, here, None, **given)

    assert all(again.value(row.name) == defaults.value(row.name) for row in ROWS)


def test_a_flag_of_the_table_has_no_default_of_its_own() -> None:
    flags = {row.flag: row.name for row in ROWS if row.flag}
    found = {}
    for verb in VERBS:
        for action in verb_parser(verb)._actions:
            for flag in set(action.option_strings) & set(flags):
                found[flag] = action.dest
                assert action.default is None

    assert found == flags


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://GW.example/", "https://gw.example"),
        ("https://gw.example:443", "https://gw.example"),
        ("http://gw.example:443", "http://gw.example:443"),
        ("http://[::1]:8765", "http://[::1]:8765"),
    ],
)
def test_a_public_url_is_what_browsers_call_an_origin(text: str, origin: str, tmp_path: Path) -> None:
    settings = load_settings(env={"HOME": str(tmp_path), "CSP_PUBLIC_URL": text}, cwd=tmp_path)

    assert settings.public_url == origin
