"""Join a room on another machine with agents of this one."""

import functools
import os
import shlex
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from csp.cli.arguments import JSON, TRUST, switch, takes, value
from csp.cli.output import is_terminal, talk
from csp.cli.up import at_work, finish_unseen, refuse_agents, report_outcomes, say, wish_of
from csp.cli.verb_call import VerbCall
from csp.config import Settings, process_environment, settings_for
from csp.errors import BadInput
from csp.fast_start.child_environment import USER, child_environment
from csp.join.target import SshTarget, Target, local_name, read_target
from csp.setting_types import COMMAND, ROOM, read_text

if TYPE_CHECKING:
    from csp.join.ssh import Ssh

_SSH: Final = value("--ssh", "CMD", "command to use instead of ssh, with its options")


@takes(
    value("target", "TARGET", "USER@HOST or USER@HOST:ROOM"),
    value("--agents", "A,B", "only these agents, by name; default: all"),
    value("--lineup", "NAME", "only the agents in a line-up from csp.toml", nargs="?", const=""),
    switch("--demo", "start the scripted demo agents instead of real ones"),
    switch("--orchestrator", "also start an orchestrator"),
    value("--dir", "DIR", "directory in which the agents work; default: the current one"),
    value("--as", "NAME", "name of the room on this machine; default: ROOM-HOST", dest="local"),
    value("--machine", "NAME", "name of this machine in agents' names; default: its host name"),
    _SSH,
    value("--remote-csp", "CMD", "the csp command on the host; default: csp"),
    switch("--link-only", "start no panes; keep the link in this terminal until it is stopped"),
    switch("--detach", "start everything, but stay in this terminal"),
    TRUST,
    JSON,
    examples=("csp join me@server", "csp join me@server:app --agents claude"),
)
def join(call: VerbCall) -> int:
    """Join a room on a host that ssh reaches; return or show the room when the agents are in it."""
    refuse_agents(call)
    if call.settings.gateway_url:
        raise BadInput("csp join finds the gateway by itself", "unset CSP_GATEWAY_URL first")
    target, env = read_target(call.args.target), process_environment()
    if not isinstance(target, SshTarget):
        raise BadInput(f"expected USER@HOST:ROOM, got {call.args.target!r}")
    ssh = ssh_of(call, target, env)
    room = target.room or found_room(ssh, target)
    settings = joined_settings(call, room, target, env)
    if call.args.link_only:
        return keep_link(call, settings, room, target, ssh)
    return open_panes(call, settings, room, target, ssh, env)


def ssh_of(call: VerbCall, target: SshTarget, env: Mapping[str, str]) -> "Ssh":
    """Return how to reach the host."""
    from csp.join.ssh import Ssh

    command = read_text(COMMAND, call.args.ssh, "--ssh") if call.args.ssh else ("ssh",)
    return Ssh(command, target.destination, call.args.remote_csp or "csp", env)


def found_room(ssh: "Ssh", target: SshTarget) -> str:
    """Return the only room on the host; ssh may ask the person at this terminal."""
    from csp.join.ssh import choose

    return choose(ssh.rooms(is_attended=True), "", target.destination).room


def joined_settings(call: VerbCall, room: str, target: Target, env: Mapping[str, str]) -> Settings:
    """Return the settings of the room here."""
    from csp.panes.join import settings_of

    name = read_text(ROOM, call.args.local, "--as") if call.args.local else local_name(room, target.host)
    dir = call.directory(call.args.dir)
    own = settings_for(call.settings, dir, env) if call.args.dir else call.settings
    return settings_of(own, name, env)


def whole_target(target: SshTarget, room: str) -> str:
    """Return the target with its room."""
    return f"{target.destination}:{room}"


def keep_link(call: VerbCall, settings: Settings, room: str, target: SshTarget, ssh: "Ssh") -> int:
    """Be the link until it is stopped."""
    from csp.cli.logging_setup import configure
    from csp.join.link import LinkOrder, run_link

    configure(is_verbose=call.args.verbose)
    dir = call.directory(call.args.dir)
    order = LinkOrder(
        name=settings.room,
        room=room,
        target=whole_target(target, room),
        ssh=ssh,
        state_dir=settings.state_dir,
        dir=dir,
        history=settings.history_dir / settings.room,
        project=settings.project.identity if settings.project else "",
    )
    return run_link(order)


def open_panes(
    call: VerbCall, settings: Settings, room: str, target: SshTarget, ssh: "Ssh", env: Mapping[str, str]
) -> int:
    """Start the link if it is not up, and the agents in panes."""
    from csp.panes.join import JoinedRoom, find_link, start_link
    from csp.panes.tmux_session import check_terminal, check_tmux

    check_tmux(env)
    dir, args = call.directory(call.args.dir), call.args
    size = _terminal_size()
    is_shown = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    attaches = is_shown and not args.detach and not call.is_json
    if attaches:
        check_terminal(env)
    words = [whole_target(target, room), "--as", settings.room, "--dir", str(dir)]
    words += ["--ssh", args.ssh] if args.ssh else []
    words += ["--remote-csp", args.remote_csp] if args.remote_csp else []
    with at_work(settings.state_dir, settings.room) as progress:
        if find_link(settings, whole_target(target, room)) is None:
            progress.show(f"connecting to {target.destination}…")
            start_link(settings, words, dir, env, progress.show)
        tell = functools.partial(say, progress)
        opening = JoinedRoom(settings, wish_of(call, settings, dir), dir, env, progress.show, tell)
        opening.machine = args.machine or socket.gethostname()
        opening.start(size if attaches else None)
        if attaches:
            finish_unseen(opening)
        else:
            outcomes = opening.finish()
    if attaches:
        argv = opening.panes.attach_argv(env)
        sys.stderr.flush()
        os.execvpe(argv[0], argv, child_environment(USER, env))
    summary = {**opening.summary(), "joined": whole_target(target, room)}
    code = report_outcomes(call, summary, [outcome._asdict() for outcome in outcomes])
    if not call.is_json:
        talk(f"leave it with: csp down --room {shlex.quote(settings.room)}")
    return code


def _terminal_size() -> tuple[int, int] | None:
    try:
        size = os.get_terminal_size()
    except OSError:
        return None
    return (size.columns, size.lines) if size.columns and size.lines else None
