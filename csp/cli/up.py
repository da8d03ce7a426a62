"""Open the group chat in tmux, add agents to it, or end it."""

import argparse
import contextlib
import functools
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from csp.cli.arguments import HISTORY_DIR, JSON, ROLES, TRUST, YES, Arg, switch, takes, value
from csp.cli.gateway import REACH, reach_of
from csp.cli.output import Progress, confirm, is_terminal, put, put_json, talk
from csp.cli.parser import setting_flags
from csp.cli.sidecar import COMMAND, PROFILE
from csp.cli.trust import may_use
from csp.cli.verb_call import VerbCall
from csp.config import AgentSpec, Settings, earlier_rooms, load_settings, process_environment, settings_for
from csp.errors import BadInput, CspError, Refused
from csp.fast_start import failure_report
from csp.fast_start.child_environment import USER, child_environment
from csp.http_client import objects
from csp.model_providers import variables_of, well_known
from csp.panes.members import MemberRequest, PaneMember, member_for, model_for, need
from csp.panes.room_processes import RoomProcesses, locked
from csp.project import claims_folder, drop_claim, read_claims
from csp.room_registry import claim, listed, rooms_of_project, running_rooms

if TYPE_CHECKING:
    from csp.panes.tmux_session import TmuxSession
    from csp.panes.up import OpenRoom
    from csp.panes.wait_ready import StartOutcome

#: Options that apply only to API models, by argument name.
_OF_MODELS: Final = ("model", "base_url", "key_env", "role")
#: The maximum number of earlier rooms to list when a directory gets its first room.
_MOST_EARLIER: Final = 3


@takes(
    switch("--demo", "start the scripted demo agents instead of real ones"),
    value("--agents", "A,B", "only these agents, by name; default: all"),
    value("--lineup", "NAME", "only the agents in a line-up from csp.toml", nargs="?", const=""),
    switch("--orchestrator", "also start an orchestrator"),
    value("--dir", "DIR", "directory of the room, where its agents work; default: the current one"),
    HISTORY_DIR,
    value("--layout", "FORM", "window layout: top, left or focus; default: depends on the width"),
    Arg("--worktrees", "give every CLI its own git worktree", {"action": "store_const", "const": "1"}),
    Arg(
        "--no-worktrees",
        "let all CLIs work in the directory itself, even those that had a worktree",
        {"action": "store_const", "const": "0", "dest": "worktrees"},
    ),
    *REACH,
    switch("--detach", "start everything, but stay in this terminal"),
    switch("--dry-run", "print the planned actions without executing them"),
    TRUST,
    JSON,
    examples=("csp up --demo",),
)
def up(call: VerbCall) -> int:
    """Open the room or join the running one; show it immediately, or return when all agents have joined."""
    from csp.panes.start_gateway import running_room
    from csp.panes.tmux_session import check_tmux
    from csp.panes.up import OpenRoom, plan

    check_place(call)
    env = process_environment()
    settings, dir, cwd = room_to_open(call, env)
    wish = wish_of(call, settings, dir)
    reach = reach_of(call)
    check_tmux(env)
    terminal = terminal_size()
    if call.args.dry_run:
        return show_plan(call, plan(settings, wish, env, terminal))
    attaches = will_attach(call, settings, env)
    if running_room(settings.state_dir, settings.room) is None:
        if cwd != call.cwd:
            talk(f"csp: room {settings.room!r} belongs to {dir}; opening it there")
        report_other_rooms(settings, dir, env)
        settings = claim(settings, env)
    with at_work(settings.state_dir, settings.room) as progress:
        tell = functools.partial(say, progress)
        opening = OpenRoom(settings, wish, cwd, env, progress.show, tell, reach)
        opening.start(terminal if attaches else None)
        if attaches:
            finish_unseen(opening)
        else:
            outcomes = opening.finish()
    if attaches:
        attach(opening, env)
    return report_outcomes(call, opening.summary(), [outcome._asdict() for outcome in outcomes])


def terminal_size() -> tuple[int, int] | None:
    """Return the columns and lines of the terminal; None without one."""
    try:
        size = os.get_terminal_size()
    except OSError:
        return None
    return (size.columns, size.lines) if size.columns and size.lines else None


def will_attach(call: VerbCall, settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether the room is to be shown in this terminal; raise Refused if the terminal cannot do so."""
    from csp.panes.tmux_session import check_terminal, is_unwatched

    if call.args.detach or call.is_json or not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        return False
    if is_unwatched(env, panes_of(settings.state_dir, settings.room)):
        return False
    check_terminal(env)
    return True


def attach(opening: "OpenRoom", env: Mapping[str, str]) -> NoReturn:
    """Replace this process by one that shows the room."""
    argv = opening.panes.attach_argv(env)
    sys.stderr.flush()
    os.execvpe(argv[0], argv, child_environment(USER, env))


@takes(switch("--purge", "remove the room's history too"), YES, JSON, examples=("csp down",))
def down(call: VerbCall) -> int:
    """End the room's panes and gateway; keep the history unless --purge is given."""
    from csp.panes.down import check_ended, end_room, purge
    from csp.panes.start_gateway import running_room

    settings, env = call.settings, process_environment()
    refuse_agents(call)
    room = call.room_name(is_sure=True)
    running = running_room(settings.state_dir, room)
    history = running.history if running else settings.history_dir / room
    question = f"permanently remove the history of room {room} in {history}?"
    if call.args.purge and not call.args.yes and not confirm(question):
        talk("nothing was ended")
        return 1
    with at_work(settings.state_dir, room) as progress:
        panes = panes_of(settings.state_dir, room)
        report = end_room(settings.state_dir, room, history, progress.show, panes)
        kept = purge(history, env) if call.args.purge else []
        if call.args.purge and (claims := claims_folder(env)):
            drop_claim(claims, room)
    if call.is_json:
        found = {"room": room, "ended": report.ended, "left": report.left, "purged": bool(call.args.purge)}
        put_json({**found, "kept": [str(path) for path in kept]})
    else:
        for line in report.left:
            talk(f"csp: {line}")
        talk(f"ended {', '.join(report.ended)}" if report.ended else f"room {room} was not running")
        for path in kept:
            talk(f"csp: work in {path} is not committed, so it was kept")
        if call.args.purge:
            talk(f"removed the history of room {room}")
    check_ended(report)
    return 0


@takes(
    value("name", "NAME", "name of the agent in the room"),
    PROFILE,
    value("--dir", "DIR", "directory the agent works in; default: the room's"),
    switch("--number", "if the name is taken, add a number to it instead of refusing"),
    value("--provider", "P", f"an API model instead of a command: {', '.join(well_known())}, ..."),
    value("--model", "M", "with --provider: the model's name there"),
    value("--base-url", "URL", "with --provider: address of the API; default: the provider's own"),
    value("--key-env", "NAME", "with --provider: variable with the key; default: the provider's own"),
    value("--role", "R", "with --provider: agent or orchestrator", choices=ROLES),
    COMMAND,
    TRUST,
    JSON,
    examples=(
        "csp add helper -- ./my-agent --fast",
        "csp add claude-api --provider anthropic --model claude-sonnet-5",
    ),
)
def add(call: VerbCall) -> int:
    """Start another agent in the room; return when it has joined."""
    args, env = call.args, process_environment()
    check_place(call)
    if not call.address.room:
        raise BadInput("csp add needs a room of this machine", "unset CSP_GATEWAY_URL")
    if args.provider and args.command:
        raise BadInput("an API model has no command", "omit the words after --")
    if args.provider and not args.model:
        raise BadInput("--provider needs a model", "add --model NAME")
    for name in _OF_MODELS:
        if getattr(args, name) and not args.provider:
            flag = name.replace("_", "-")
            raise BadInput(f"--{flag} needs a provider", "add --provider NAME")
    wanted, outcome = (add_model if args.provider else add_cli)(call, env)
    taken = "" if outcome.agent == wanted else f"; the name {wanted!r} was taken"
    here = f"{outcome.agent} is here ({outcome.state}){taken}"
    call.tell(outcome._asdict(), f"csp: {outcome.problem}" if outcome.problem else here)
    if outcome.problem:
        failure_report.report(outcome.problem)
    return 1 if outcome.problem else 0


def add_cli(call: VerbCall, env: Mapping[str, str]) -> "tuple[str, StartOutcome]":
    """Start a CLI in a pane."""
    from csp.panes.tmux_session import check_tmux
    from csp.panes.up import AddAgents

    check_tmux(env)
    args, settings = call.args, call.settings
    with at_work(settings.state_dir, call.address.room) as progress:
        joining = AddAgents(settings, call.address, progress.show)
        dir = call.directory(args.dir) if args.dir else joining.dir
        member = member_for(args.name, args.command, settings, dir, args.profile or "")
        return member.agent, joining.add(need(member, env), may_number=args.number)


def add_model(call: VerbCall, env: Mapping[str, str]) -> "tuple[str, StartOutcome]":
    """Start a model in a pane, or without one if the room has no panes."""
    from csp.agents.api.requirements import wanted
    from csp.panes.up import AddAgents, sidecar_argv, with_free_id
    from csp.panes.wait_ready import start_in_background

    args, settings, room = call.args, call.settings, call.address.room
    found = wanted(args.provider, args.base_url, args.key_env, env)
    variable = args.key_env or found.provider.key_env
    keys = variables_of(args.provider, args.key_env)
    with at_work(settings.state_dir, room) as progress:
        dir = call.directory(args.dir) if args.dir else None
        panes = panes_of(settings.state_dir, room)
        if panes is not None and panes.id:
            joining = AddAgents(settings, call.address, progress.show)
            member = model_of(args, dir or joining.dir)
            # The room was opened in another environment, which may not contain the key.
            keys_env = {variable: found.key} if found.key else {}
            return member.agent, joining.add(member, keys_env, may_number=args.number)
        gateway, asked = call.gateway, model_of(args, dir or call.cwd)
        online = {str(item.get("id")) for item in objects(gateway.get("/agents")) if item.get("online")}
        member = with_free_id(asked, online, (), may_number=args.number)
        argv = sidecar_argv(member, room, member.command)
        processes = RoomProcesses(settings.state_dir, room)
        return asked.agent, start_in_background(
            processes, gateway, member.name, argv, member.cwd, env, progress.show, keys
        )


def model_of(args: argparse.Namespace, dir: Path) -> PaneMember:
    """Return the model that the options describe."""
    spec = AgentSpec(
        name=args.name,
        provider=args.provider,
        model=args.model,
        base_url=args.base_url or "",
        key_env=args.key_env or "",
        role=args.role or "agent",
    )
    return model_for(spec, dir)


# --- options --------------------------------------------------------------------------------------


def room_to_open(call: VerbCall, env: Mapping[str, str]) -> tuple[Settings, Path, Path]:
    """Return the settings of the room to open, its agents' directory, and the source of the settings.

    A named room may belong to another directory; it is opened there, with that directory's settings.
    """
    settings, dir = call.settings, call.directory(call.args.dir)
    if call.args.dir:
        return settings_for(settings, dir, env), dir, call.cwd
    home = home_of(settings, env) if settings.is_set("room") else None
    if not settings.is_set("room"):
        # A running room from an earlier version is joined rather than duplicated.
        own = rooms_of_project(settings, running_rooms(settings.state_dir), call.cwd)
        settings = replace(
            settings, room=next((room.room for room in own if not room.project), settings.room)
        )
    if home is None:
        return settings, dir, call.cwd
    flags = setting_flags(call.args) | {"room": settings.room}
    ask = functools.partial(may_use, args=call.args, env=env)
    return load_settings(flags, cwd=home, ask=ask), home, home


def home_of(settings: Settings, env: Mapping[str, str]) -> Path | None:
    """Return the directory of a room in another project; raise if the directory is gone."""
    name, project = settings.room, settings.project
    running = next((room for room in running_rooms(settings.state_dir) if room.room == name), None)
    claim = next((one for one in read_claims(claims_folder(env)) if one.room == name), None)
    identity = running.identity if running else claim.identity if claim else ""
    if not identity or (project is not None and project.owns(identity)):
        return None
    home = running.dir if running else claim.home if claim else None
    if home is None or not home.is_dir():
        gone = running.dir if running else claim.dir if claim else ""
        raise Refused(
            f"room {name!r} belongs to {str(gone)!r}, which is gone",
            f"open it in another directory: csp up --room {name} --dir DIR",
        )
    return home


def report_other_rooms(settings: Settings, dir: Path, env: Mapping[str, str]) -> None:
    """Report rooms that run elsewhere and, when a directory gets its first room, earlier ones."""
    if others := running_rooms(settings.state_dir):
        talk(f"csp: opening room {settings.room!r} in {dir}; also running: {listed(others)}")
    is_old = any(claim.room == settings.room for claim in read_claims(claims_folder(env)))
    if is_old or settings.is_set("room") or settings.is_set("history_dir"):
        return
    earlier = earlier_rooms(env)
    for room, history in earlier[:_MOST_EARLIER]:
        if room == settings.room:
            talk(f"csp: continuing the earlier room {room!r} from {history}")
        else:
            talk(f"csp: an earlier room {room!r} is in {history}; continue it with: csp up --room {room}")
    if len(earlier) > _MOST_EARLIER:
        talk(f"csp: {len(earlier) - _MOST_EARLIER} more earlier rooms; list them with: csp rooms")


def wish_of(call: VerbCall, settings: Settings, dir: Path) -> MemberRequest:
    """Return the requested members."""
    args = call.args
    if args.lineup is not None:
        if args.agents is not None:
            raise BadInput("expected --agents or --lineup, got both")
        only = lineup_of(settings, args.lineup)
        return MemberRequest(dir=dir, demo=args.demo, orchestrator=args.orchestrator, only=only)
    only = tuple(dict.fromkeys(name.strip() for name in (args.agents or "").split(",") if name.strip()))
    if args.agents is not None and not only:
        raise BadInput("--agents: expected names separated by commas, got nothing")
    return MemberRequest(dir=dir, demo=args.demo, orchestrator=args.orchestrator, only=only)


def lineup_of(settings: Settings, name: str) -> tuple[str, ...]:
    """Return the agents' names in a saved line-up; if it is unknown, raise with the known ones."""
    if name in settings.lineups:
        return settings.lineups[name]
    known = ", ".join(settings.lineups)
    hint = (
        f"there are: {known}"
        if known
        else 'save one in csp.toml: [lineups.review] agents = ["claude", "codex"]'
    )
    raise BadInput(f"--lineup: {f'unknown line-up {name!r}' if name else 'expected a name'}", hint)


def check_place(call: VerbCall) -> None:
    """Raise in an agent's pane or if the gateway is elsewhere, because nothing may be started then."""
    refuse_agents(call)
    if call.settings.gateway_url:
        raise BadInput("csp up starts its own gateway", "unset CSP_GATEWAY_URL first")


def refuse_agents(call: VerbCall) -> None:
    """Raise in an agent's pane, because only people may open and end rooms."""
    if call.settings.agent:
        raise Refused(f"this pane is agent {call.settings.agent!r}", "use another terminal for this")


# --- output ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def at_work(state_dir: Path, room: str) -> Iterator[Progress]:
    """Hold the room's lock and show progress."""
    with Progress() as progress:
        try:
            with locked(state_dir, room, progress.show):
                yield progress
        except KeyboardInterrupt:
            from csp.panes.start_gateway import running_room

            # Report what is still running, and how to resume or end it.
            running, panes = running_room(state_dir, room), panes_of(state_dir, room)
            left = [f"the gateway at {running.url}"] if running else []
            left += [f"tmux session {panes.name}"] if panes and panes.id else []
            todo = f"resume: csp up --room {room} · stop: csp down --room {room}"
            nothing = f"nothing of room {room} is running"
            still = f"still running: {', '.join(left)} ({todo})" if left else nothing
            say(progress, f"interrupted; {still}")
            raise


def panes_of(state_dir: Path, room: str) -> "TmuxSession | None":
    """Return a room's panes, or None on a machine without tmux."""
    from libtmux.exc import TmuxCommandNotFound

    from csp.panes.tmux_session import TmuxSession

    try:
        return TmuxSession(room, state_dir)
    except (CspError, TmuxCommandNotFound):
        return None


def say(progress: Progress, line: str) -> None:
    """Print a line in place of the progress."""
    progress.clear()
    talk(f"csp: {line}")


def show_plan(call: VerbCall, found: dict[str, Any]) -> int:
    """Print the actions that `up` would take."""
    if call.is_json:
        put_json(found)
        return 0
    for note in found["notes"]:
        talk(f"csp: {note}")
    put(f"room {found['room']}, history in {found['history']}")
    put(f"tmux session {found['session']}")
    for number, window in enumerate(found["windows"], 1):
        put(f"  window {number}: {', '.join(window)}")
    for row in found["agents"]:
        where = f"in {'a git worktree of its own' if row['worktree'] else row['cwd']}"
        if row["provider"]:
            where = "an API model"
        role = "".join(f", {word}" for word in (row["duty"], row["role"]) if word not in (None, "agent"))
        put(f"  {row['id']}{role}: {row['command']} ({where})")
    put("nothing was started")
    return 0


def finish_unseen(opening: "OpenRoom") -> None:
    """Wait for the agents in a separate process, so that this one can show the room immediately.

    That process holds the room's lock until all agents have joined.
    """
    if os.fork():
        return
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        for outcome in opening.finish():
            if outcome.problem:
                opening.panes.announce(outcome.problem)
    finally:
        os._exit(0)


def report_outcomes(call: VerbCall, summary: dict[str, Any], outcomes: list[dict[str, Any]]) -> int:
    """Print the outcomes; return the exit code."""
    up_count = sum(not outcome["problem"] for outcome in outcomes)
    if call.is_json:
        put_json({**summary, "agents": outcomes})
        return 0 if up_count == len(outcomes) else 1
    for outcome in outcomes:
        if outcome["problem"]:
            talk(f"csp: {outcome['problem']}")
            failure_report.report(outcome["problem"])
    names = ", ".join(outcome["agent"] for outcome in outcomes if not outcome["problem"])
    talk(f"room {summary['room']} is up with {names or 'nobody'}")
    talk(f"open it with: {summary['attach']}")
    return 0 if up_count or not outcomes else 1
