"""Who takes part."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from csp.config import AgentSpec, Settings
from csp.errors import BadInput, NotFound
from csp.panes.members import CSP, MemberRequest, PaneMember, choose, member_for, model_for, need, renamed


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A PATH with nothing but what a test installs."""
    (tmp_path / "bin").mkdir()
    return {"PATH": str(tmp_path / "bin")}


def install(env: Mapping[str, str], *names: str) -> None:
    for name in names:
        path = Path(env["PATH"]) / name
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)


def names(members: tuple[PaneMember, ...]) -> list[str]:
    return [member.agent for member in members]


def test_the_clis_that_are_installed_take_part(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "claude", "gemini")
    lineup = choose(Settings(), MemberRequest(dir=tmp_path), env)

    assert [(member.agent, member.command) for member in lineup.members] == [
        ("claude", ("claude",)),
        ("gemini", ("gemini",)),
    ]
    assert lineup.notes == (
        "the command 'codex' of agent 'codex' was not found; continuing without it"
        " (install it: npm install -g @openai/codex; or say where it is: CSP_CODEX_CMD=PATH)",
    )


def test_a_variable_overrides_the_command_of_a_cli(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "mine")
    lineup = choose(Settings(of_clis={"codex_cmd": ("mine", "--fast")}), MemberRequest(dir=tmp_path), env)

    assert [(member.agent, member.command) for member in lineup.members] == [("codex", ("mine", "--fast"))]


def test_without_any_cli_the_demo_comes(tmp_path: Path, env: dict[str, str]) -> None:
    lineup = choose(Settings(), MemberRequest(dir=tmp_path), env)

    assert names(lineup.members) == ["ada", "bob", "cy"]
    assert lineup.members[0].command == (*CSP, "demo", "ada")
    assert lineup.members[0].shown_command == "csp demo ada"
    assert lineup.notes == ("none of claude, codex, gemini is installed; starting demo agents instead",)


def test_the_demo_can_be_asked_for_with_its_orchestrator(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "claude")
    lineup = choose(Settings(), MemberRequest(dir=tmp_path, demo=True, orchestrator=True, only=("cy",)), env)

    assert names(lineup.members) == ["orchestrator", "cy"]
    assert lineup.members[0].command[-1] == "conductor"
    assert {member.profile for member in lineup.members} == {"demo"}


def with_worktrees(tmp_path: Path, source: str = "", *, wanted: bool = False) -> Settings:
    specs = (
        AgentSpec(name="Ann", command=("mine",)),
        AgentSpec(name="in", command=("mine",), worktree=True),
        AgentSpec(name="out", command=("mine",), worktree=False),
        AgentSpec(name="api", provider="anthropic", model="m"),
    )
    sources = {"worktrees": source} if source else {}
    return Settings(agents=specs, worktrees=wanted, sources=sources, history_dir=tmp_path / "history")


def worktrees_of(
    settings: Settings, tmp_path: Path, env: dict[str, str]
) -> tuple[list[str], tuple[str, ...]]:
    lineup = choose(settings, MemberRequest(dir=tmp_path), env)
    return [member.agent for member in lineup.members if member.worktree], lineup.notes


def test_every_cli_gets_a_worktree_where_the_room_says_so(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "mine")

    assert worktrees_of(with_worktrees(tmp_path), tmp_path, env) == (["in"], ())
    on, off = (with_worktrees(tmp_path, "--worktrees", wanted=wanted) for wanted in (True, False))
    # What an agent's own table says wins.
    assert worktrees_of(on, tmp_path, env) == (["ann", "in"], ())
    assert worktrees_of(off, tmp_path, env) == (["in"], ())
    demo = choose(on, MemberRequest(dir=tmp_path, demo=True), env)
    assert [member.worktree for member in demo.members] == [True, True, True]


def test_an_agent_keeps_its_worktree_until_somebody_says_otherwise(
    tmp_path: Path, env: dict[str, str]
) -> None:
    install(env, "mine")
    for agent in ("ann", "out", "api"):
        (tmp_path / "history" / "default" / "worktrees" / agent / ".git").mkdir(parents=True)

    note = f"in a git worktree as before: ann (to work in {tmp_path}: csp up --no-worktrees)"
    assert worktrees_of(with_worktrees(tmp_path), tmp_path, env) == (["ann", "in"], (note,))
    assert worktrees_of(with_worktrees(tmp_path, "CSP_WORKTREES"), tmp_path, env) == (["in"], ())


def test_strict_checking_names_what_is_missing_and_how_to_get_it(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "claude", "gemini")
    with pytest.raises(NotFound) as error:
        choose(Settings(strict_cli_check=True), MemberRequest(dir=tmp_path), env)

    assert error.value.message == "the command 'codex' of agent 'codex' was not found"
    assert error.value.hint == (
        "install it: npm install -g @openai/codex; or say where it is: CSP_CODEX_CMD=PATH"
    )


def test_an_agent_that_was_asked_for_must_be_there(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "claude")
    with pytest.raises(NotFound, match="'codex'"):
        choose(Settings(), MemberRequest(dir=tmp_path, only=("claude", "codex")), env)


def test_csp_toml_decides_who_takes_part(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "claude", "mine")
    (tmp_path / "sub").mkdir()
    settings = Settings(
        agents=(
            AgentSpec(name="Builder", command=("mine", "-x"), profile="generic", cwd=Path("sub")),
            AgentSpec(name="claude", worktree=True),
            AgentSpec(name="Boss", command=("mine",), role="orchestrator"),
            AgentSpec(name="cat", command=("mine",), duty="reviewer", prompt="Look."),
        )
    )
    members = choose(settings, MemberRequest(dir=tmp_path), env).members

    assert names(members) == ["boss", "builder", "claude", "cat"]
    assert (members[1].cwd, members[1].profile, members[1].command) == (
        tmp_path / "sub",
        "generic",
        ("mine", "-x"),
    )
    assert (members[2].command, members[2].worktree) == (("claude",), True)
    assert (members[3].duty, members[3].prompt) == ("reviewer", "Look.")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (AgentSpec(name="x"), "csp.toml: agent 'x' has no command"),
        (AgentSpec(name="all", command=("mine",)), "csp.toml: name 'all' is reserved"),
        (AgentSpec(name="x", command=("mine",), cwd=Path("no")), "csp.toml: agent 'x': expected a directory"),
    ],
)
def test_mistakes_in_csp_toml_are_named(
    tmp_path: Path, env: dict[str, str], spec: AgentSpec, problem: str
) -> None:
    with pytest.raises(BadInput) as error:
        choose(Settings(agents=(spec,)), MemberRequest(dir=tmp_path), env)

    assert error.value.message.startswith(problem)


def test_two_names_of_one_id_are_refused(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "mine")
    specs = (AgentSpec(name="My Agent", command=("mine",)), AgentSpec(name="my-agent", command=("mine",)))
    with pytest.raises(BadInput, match="would both be 'my-agent'"):
        choose(Settings(agents=specs), MemberRequest(dir=tmp_path), env)


def test_nobody_there_of_csp_toml_is_an_error(tmp_path: Path, env: dict[str, str]) -> None:
    specs = (AgentSpec(name="x", command=("./no/mine",)),)
    with pytest.raises(NotFound, match=r"'\./no/mine' of agent 'x'"):
        choose(Settings(agents=specs), MemberRequest(dir=tmp_path), env)


def test_the_orchestrator_needs_its_command(tmp_path: Path, env: dict[str, str]) -> None:
    install(env, "codex")
    settings = Settings(orchestrator=True)
    with pytest.raises(NotFound, match="'claude' of agent 'orchestrator'"):
        choose(settings, MemberRequest(dir=tmp_path), env)
    install(env, "claude")
    members = choose(replace(settings, orch_cmd=("claude", "-m")), MemberRequest(dir=tmp_path), env).members

    assert [(member.agent, member.role) for member in members] == [
        ("orchestrator", "orchestrator"),
        ("claude", "agent"),
        ("codex", "agent"),
    ]
    assert members[0].command == ("claude", "-m")


def test_a_script_beside_the_agents_directory_is_found(tmp_path: Path, env: dict[str, str]) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    member = member_for("x", ["./run.sh"], Settings(), tmp_path)

    assert names(
        choose(
            Settings(agents=(AgentSpec(name="x", command=("./run.sh",)),)), MemberRequest(dir=tmp_path), env
        ).members
    )
    assert member.agent == "x"


def test_a_command_comes_from_the_setting_of_its_cli_or_of_the_orchestrator(tmp_path: Path) -> None:
    settings = Settings(of_clis={"claude_cmd": ("c", "-1"), "gemini_cmd": ("g",)}, orch_cmd=("o",))

    assert member_for("Claude", (), settings, tmp_path).command == ("c", "-1")
    assert member_for("x", (), settings, tmp_path, profile="gemini").command == ("g",)
    assert member_for("x", (), settings, tmp_path, role="orchestrator").command == ("o",)
    assert member_for("claude", ("mine",), settings, tmp_path).command == ("mine",)


def test_the_variable_that_names_a_missing_command_is_named_first(
    tmp_path: Path, env: dict[str, str]
) -> None:
    settings = Settings(of_clis={"gemini_cmd": ("no-such",)}, sources={"gemini_cmd": "CSP_GEMINI_CMD"})
    with pytest.raises(NotFound, match="CSP_GEMINI_CMD: the command 'no-such' of agent 'gemini'"):
        choose(replace(settings, strict_cli_check=True), MemberRequest(dir=tmp_path), env)
    lineup = choose(settings, MemberRequest(dir=tmp_path), env)

    assert [note.split(";")[0] for note in lineup.notes] == [
        "CSP_GEMINI_CMD: the command 'no-such' of agent 'gemini' was not found",
        "none of claude, codex, gemini is installed",
    ]


def test_a_missing_command_of_the_orchestrator_is_told_beside_the_demo(
    tmp_path: Path, env: dict[str, str]
) -> None:
    settings = Settings(orch_cmd=("no-such",), sources={"orch_cmd": "CSP_ORCH_CMD"})
    lineup = choose(settings, MemberRequest(dir=tmp_path, orchestrator=True), env)

    assert names(lineup.members) == ["orchestrator", "ada", "bob", "cy"]
    assert lineup.notes[0].startswith("CSP_ORCH_CMD: the command 'no-such' of agent 'orchestrator' was not")
    assert len(choose(settings, MemberRequest(dir=tmp_path), env).notes) == 1
    install(env, "no-such")
    assert len(choose(settings, MemberRequest(dir=tmp_path, orchestrator=True), env).notes) == 1


def test_agents_are_chosen_by_name_or_id_in_the_order_of_the_file(
    tmp_path: Path, env: dict[str, str]
) -> None:
    install(env, "mine")
    specs = (
        AgentSpec(name="One", command=("mine",)),
        AgentSpec(name="Two", command=("mine",)),
        AgentSpec(name="Boss", command=("mine",), role="orchestrator"),
    )
    settings = Settings(agents=specs)

    assert names(choose(settings, MemberRequest(dir=tmp_path, only=("two", "One")), env).members) == [
        "one",
        "two",
    ]
    wish = MemberRequest(dir=tmp_path, only=("two",), orchestrator=True)
    assert names(choose(settings, wish, env).members) == ["boss", "two"]
    with pytest.raises(BadInput) as error:
        choose(settings, MemberRequest(dir=tmp_path, only=("zzz",)), env)
    assert (error.value.message, error.value.hint) == (
        "--agents: unknown agent 'zzz'",
        "known are: One, Two, Boss",
    )


def test_a_wish_is_special_or_plain() -> None:
    here = Path()
    rows = [
        (MemberRequest(dir=here), False, False),
        (MemberRequest(dir=here, only=("a",)), True, True),
        (MemberRequest(dir=here, demo=True, only=("a",)), True, False),
        (MemberRequest(dir=here, orchestrator=True), True, False),
        (MemberRequest(dir=here, orchestrator=True, only=("a",)), True, False),
    ]

    assert [(wish.is_special, wish.is_plain) for wish, _, _ in rows] == [row[1:] for row in rows]


MODEL = AgentSpec(
    name="Gpt",
    provider="openai-compatible",
    model="m",
    base_url="http://x/v1",
    key_env="MINE",
    role="orchestrator",
)


def test_a_model_of_csp_toml_has_all_it_needs_in_its_command(tmp_path: Path) -> None:
    full = model_for(MODEL, tmp_path)
    short = model_for(AgentSpec(name="c", provider="anthropic", model="m"), tmp_path)

    assert full.command == (
        *(*CSP, "agent", "--name", "Gpt", "--provider", "openai-compatible", "--model", "m"),
        *("--base-url", "http://x/v1", "--key-env", "MINE", "--role", "orchestrator"),
    )
    assert (full.agent, full.role, full.provider) == ("gpt", "orchestrator", "openai-compatible")
    assert short.command == (*CSP, "agent", "--name", "c", "--provider", "anthropic", "--model", "m")
    assert renamed(short, "c-2").command[5:7] == ("--name", "c-2")
    assert (renamed(short, "c-2").agent, renamed(short, "c-2").name) == ("c-2", "c-2")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (replace(MODEL, base_url=""), "csp.toml: agent 'Gpt': openai-compatible needs an address"),
        (replace(MODEL, provider="opnai"), "csp.toml: agent 'Gpt': unknown provider 'opnai'"),
        (AgentSpec(name="x", command=("cat",), profile="cluade"), "csp.toml: agent 'x': unknown profile"),
    ],
)
def test_mistakes_of_models_and_profiles_are_named(
    tmp_path: Path, env: dict[str, str], spec: AgentSpec, problem: str
) -> None:
    with pytest.raises(BadInput) as error:
        choose(Settings(agents=(spec,)), MemberRequest(dir=tmp_path), env)

    assert error.value.message.startswith(problem)
    assert error.value.hint


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (
            "gemini",
            "install it: npm install -g @google/gemini-cli; or say where it is: CSP_GEMINI_CMD=PATH",
        ),
        (
            "claude",
            "install it: npm install -g @anthropic-ai/claude-code; or say where it is: CSP_CLAUDE_CMD=PATH",
        ),
        ("mine", "check its spelling, or give its path"),
        ("./mine", "check its spelling"),
    ],
)
def test_advice_fits_the_command(tmp_path: Path, env: dict[str, str], command: str, advice: str) -> None:
    member = PaneMember(name="x", agent="x", command=(command,), cwd=tmp_path)
    with pytest.raises(NotFound) as error:
        need(member, env)

    assert error.value.hint == advice


def test_a_missing_package_of_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.agents.api.requirements.is_installed", lambda provider: False)
    with pytest.raises(NotFound) as error:
        need(model_for(MODEL, tmp_path), {})

    assert error.value.message == "agent 'Gpt' needs the package 'openai', which is not installed"
    assert error.value.hint.startswith("install it: ")
