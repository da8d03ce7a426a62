"""Choose the members: the agents in csp.toml, else the installed CLIs, else the demo agents."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from csp.agents.api import requirements
from csp.clis.registry import profile_names
from csp.config import CLIS, AgentSpec, Settings, command_setting, nearest
from csp.errors import BadInput, NotFound
from csp.panes.find_program import find
from csp.panes.worktrees import has_worktree
from csp.protocol.enums import AgentId, JoinRole
from csp.room.agent_names import ORCHESTRATOR, to_id

if TYPE_CHECKING:
    from csp.model_providers import Provider

#: The command that runs this program, independent of directory and PATH.
CSP: Final = (sys.executable, "-P", "-m", "csp.cli")
DEMO: Final = ("ada", "bob", "cy")
CONDUCTOR: Final = "conductor"
DEMO_PROFILE: Final = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneMember:
    """An agent that gets a pane; an empty profile means its command's default profile.

    `source` is the variable or file that sets the command of a known CLI.
    """

    name: str
    agent: str
    command: tuple[str, ...]
    cwd: Path
    profile: str = ""
    role: str = "agent"
    #: A one-word role that is shown to the others, and the instructions that it gets when it starts.
    duty: str = ""
    prompt: str = ""
    worktree: bool = False
    source: str = ""
    #: The provider, for an API model without a CLI.
    provider: str = ""

    @property
    def shown_command(self) -> str:
        """The command line as a user would type it."""
        is_ours = self.command[: len(CSP)] == CSP
        return shlex.join(("csp", *self.command[len(CSP) :]) if is_ours else self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRequest:
    """The options on the command line; an empty `only` means all agents."""

    dir: Path
    demo: bool = False
    orchestrator: bool = False
    only: tuple[str, ...] = ()

    @property
    def is_special(self) -> bool:
        """Return whether the user chose the members."""
        return self.demo or self.orchestrator or bool(self.only)

    @property
    def is_plain(self) -> bool:
        """Return whether agents were chosen only by name."""
        return bool(self.only) and not self.demo and not self.orchestrator


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineup:
    """The chosen members, orchestrator first, and notices about the choice."""

    members: tuple[PaneMember, ...]
    notes: tuple[str, ...] = ()


def choose(settings: Settings, wish: MemberRequest, env: Mapping[str, str]) -> Lineup:
    """Return the members; raise if a name is unknown or a needed command is missing."""
    lineup = _chosen(settings, wish, env)
    specs = {to_id(spec.name, JoinRole(spec.role)): spec.worktree for spec in settings.agents}
    members = tuple(
        replace(member, worktree=wants_worktree(member, specs.get(AgentId(member.agent)), settings))
        for member in lineup.members
    )
    lineup = replace(lineup, members=members)
    kept = [one.agent for one in members if one.worktree and not specs.get(AgentId(one.agent))]
    if not kept or settings.is_set("worktrees"):
        return lineup
    others = f"to work in {wish.dir}: csp up --no-worktrees"
    note = f"in a git worktree as before: {', '.join(kept)} ({others})"
    return replace(lineup, notes=(*lineup.notes, note))


def wants_worktree(member: PaneMember, own: bool | None, settings: Settings) -> bool:
    """Return whether an agent uses a git worktree, by its own setting, the room's, or its previous state."""
    if member.provider:
        return False
    if own is not None:
        return own
    if settings.is_set("worktrees"):
        return settings.worktrees
    return has_worktree(settings.history_dir / settings.room, member.agent)


def _chosen(settings: Settings, wish: MemberRequest, env: Mapping[str, str]) -> Lineup:
    if wish.demo:
        return _demo(settings, wish)
    if settings.agents:
        known = [_of_spec(spec, settings, wish.dir) for spec in settings.agents]
    else:
        known = [member_for(name, (), settings, wish.dir) for name in CLIS]
    wanted = _only(known, wish)
    found = [(member, startable(member, env)) for member in wanted]
    there = [member for _, member in found if member is not None]
    missing = [member for member, one in found if one is None]
    # An explicit choice takes precedence over the CLIs that happen to be installed.
    missing.sort(key=lambda member: not member.source)
    if missing and (settings.strict_cli_check or wish.only):
        raise _not_installed(missing[0])
    if not there and not settings.agents:
        return _demo_instead(settings, wish, env, missing)
    if not there:
        raise _not_installed(missing[0])
    first = [member for member in there if member.role == "orchestrator"]
    others = [member for member in there if member.role != "orchestrator"]
    if not first and (wish.orchestrator or settings.orchestrator):
        first = [need(member_for(ORCHESTRATOR, (), settings, wish.dir, role="orchestrator"), env)]
    seen: dict[str, str] = {}
    for member in (*first, *others):
        # Otherwise, the room would rename one of them.
        if member.agent in seen:
            problem = f"agents {seen[member.agent]!r} and {member.name!r} would both be {member.agent!r}"
            raise BadInput(problem, "give one of them another name")
        seen[member.agent] = member.name
    return Lineup(members=(*first, *others), notes=tuple(map(_going_on, missing)))


def member_for(
    name: str, command: Sequence[str], settings: Settings, dir: Path, profile: str = "", role: str = "agent"
) -> PaneMember:
    """Return one agent; known CLIs need no command."""
    setting = ""
    if not command and role == ORCHESTRATOR:
        setting = "orch_cmd"
    elif not command and (cli := profile or to_id(name, JoinRole.AGENT)) in CLIS:
        setting = command_setting(cli)
    words = tuple(command) or (settings.value(setting) if setting else ())
    if not words:
        raise BadInput(f"agent {name!r} has no command", f"give it one: csp add {name} -- COMMAND")
    known = profile_names()
    if profile and profile not in known:
        hint = nearest(profile, known) or f"there are: {', '.join(known)}"
        raise BadInput(f"agent {name!r}: unknown profile {profile!r}", hint)
    agent = to_id(name, JoinRole(role))
    source = settings.sources[setting] if setting and settings.is_set(setting) else ""
    return PaneMember(
        name=name, agent=agent, command=words, cwd=dir, profile=profile, role=role, source=source
    )


def startable(member: PaneMember, env: Mapping[str, str]) -> PaneMember | None:
    """Return an agent with its resolved command; None if it is not installed."""
    if member.provider:
        return member if requirements.is_installed(_provider(member.provider)) else None
    found = find(member.command, member.cwd, env)
    if found is None:
        return None
    return replace(member, command=found.command, profile=member.profile or found.profile)


def need(member: PaneMember, env: Mapping[str, str]) -> PaneMember:
    """Return an agent with its resolved command; raise if it is not installed."""
    found = startable(member, env)
    if found is None:
        raise _not_installed(member)
    return found


# --- possible members -----------------------------------------------------------------------------


def _of_spec(spec: AgentSpec, settings: Settings, dir: Path) -> PaneMember:
    place = dir / spec.cwd if spec.cwd else dir
    if not place.is_dir():
        raise BadInput(f"csp.toml: agent {spec.name!r}: expected a directory, got cwd {str(spec.cwd)!r}")
    about = f"csp.toml: agent {spec.name!r}"
    if spec.provider:
        try:
            provider, member = _provider(spec.provider), model_for(spec, place)
        except BadInput as exc:
            raise BadInput(f"{about}: {exc.message}", exc.hint) from exc
        if provider.needs_url and not spec.base_url:
            raise BadInput(f"{about}: {spec.provider} needs an address", "set base_url = ...")
        return member
    try:
        member = member_for(spec.name, spec.command, settings, place, spec.profile, spec.role)
    except BadInput as exc:
        hint = "set command = ..." if exc.message.endswith("has no command") else exc.hint
        raise BadInput(f"csp.toml: {exc.message}", hint) from exc
    return replace(member, duty=spec.duty, prompt=spec.prompt)


def model_for(spec: AgentSpec, place: Path) -> PaneMember:
    """Return an API model as a member."""
    agent = to_id(spec.name, JoinRole(spec.role))
    words = ["agent", "--name", spec.name, "--provider", spec.provider, "--model", spec.model]
    words += ["--base-url", spec.base_url] if spec.base_url else []
    words += ["--key-env", spec.key_env] if spec.key_env else []
    words += ["--role", spec.role] if spec.role != "agent" else []
    command = (*CSP, *words)
    return PaneMember(
        name=spec.name,
        agent=agent,
        command=command,
        cwd=place,
        role=spec.role,
        duty=spec.duty,
        prompt=spec.prompt,
        provider=spec.provider,
    )


def renamed(member: PaneMember, agent: str) -> PaneMember:
    """Return an agent with another id; the command of an API model contains its name."""
    command = member.command
    if member.provider:
        at = command.index("--name") + 1
        command = (*command[:at], agent, *command[at + 1 :])
    return replace(member, agent=agent, name=agent, command=command)


def _only(members: list[PaneMember], wish: MemberRequest) -> list[PaneMember]:
    """Return the requested members in the given order."""
    if not wish.only:
        return members
    names = {member.name for member in members} | {member.agent for member in members}
    for name in wish.only:
        if name not in names:
            known = [member.name for member in members]
            hint = nearest(name, known) or f"known are: {', '.join(known)}"
            raise BadInput(f"--agents: unknown agent {name!r}", hint)
    return [
        member
        for member in members
        if {member.name, member.agent} & set(wish.only)
        or (wish.orchestrator and member.role == "orchestrator")
    ]


def _demo(settings: Settings, wish: MemberRequest) -> Lineup:
    members = _only([_demo_member(name, name, wish.dir) for name in DEMO], wish)
    if wish.orchestrator or settings.orchestrator:
        members.insert(0, _demo_member(ORCHESTRATOR, CONDUCTOR, wish.dir, "orchestrator"))
    return Lineup(members=tuple(members))


def _demo_instead(
    settings: Settings, wish: MemberRequest, env: Mapping[str, str], missing: Sequence[PaneMember]
) -> Lineup:
    """Return the demo agents if no CLI is installed; raise if a setting chose one."""
    lineup = _demo(settings, wish)
    chosen = [member for member in missing if member.source]
    if lineup.members[0].role == ORCHESTRATOR and settings.is_set("orch_cmd"):
        first = member_for(ORCHESTRATOR, (), settings, wish.dir, role=ORCHESTRATOR)
        chosen += [] if startable(first, env) else [first]
    why = f"none of {', '.join(CLIS)} is installed; starting demo agents instead"
    return replace(lineup, notes=(*map(_going_on, chosen), why))


def _demo_member(name: str, persona: str, dir: Path, role: str = "agent") -> PaneMember:
    command = (*CSP, "demo", persona)
    return PaneMember(name=name, agent=name, command=command, cwd=dir, profile=DEMO_PROFILE, role=role)


# --- missing programs -----------------------------------------------------------------------------


def _not_installed(member: PaneMember) -> NotFound:
    return NotFound(_problem(member), _advice(member))


def _going_on(member: PaneMember) -> str:
    return f"{_problem(member)}; continuing without it ({_advice(member)})"


def _problem(member: PaneMember) -> str:
    if member.provider:
        extra = _provider(member.provider).extra
        return f"agent {member.name!r} needs the package {extra!r}, which is not installed"
    by = f"{member.source}: " if member.source else ""
    return f"{by}the command {member.command[0]!r} of agent {member.name!r} was not found"


def _advice(member: PaneMember) -> str:
    if member.provider:
        return f"install it: {requirements.how_to_install(_provider(member.provider))}"
    program = member.command[0]
    if program in CLIS:
        variable = f"CSP_{command_setting(program).upper()}"
        return f"install it: {CLIS[program].install}; or say where it is: {variable}=PATH"
    return "check its spelling" if "/" in member.command[0] else "check its spelling, or give its path"


def _provider(name: str) -> "Provider":
    """Return a model provider; imported late, because most rooms have no API models."""
    from csp.model_providers import provider_named

    return provider_named(name)
