"""Join a room on another machine with agents of this one."""

import functools
import shlex
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from csp.cli.arguments import JSON, TRUST, switch, takes, value
from csp.cli.output import talk
from csp.cli.up import (
    at_work,
    attach,
    finish_unseen,
    refuse_agents,
    report_outcomes,
    say,
    terminal_size,
    will_attach,
    wish_of,
)
from csp.cli.verb_call import VerbCall
from csp.config import Settings, process_environment, settings_for
from csp.errors import BadInput
from csp.join.target import SshTarget, Target, UrlTarget, local_name, read_target
from csp.setting_types import COMMAND, ROOM, read_text

if TYPE_CHECKING:
    from csp.join.ssh import Ssh

#: The options for each kind of target, by argument name.
_OF_SSH: Final = ("ssh", "remote_csp")
_OF_URLS: Final = ("token_file", "ca")


class _Joining(NamedTuple):
    """A room to join: `whole` is the target with its room; `ssh` is None for gateways with URLs."""

    target: Target
    room: str
    whole: str
    ssh: "Ssh | None"


@takes(
    value("target", "TARGET", "USER@HOST, USER@HOST:ROOM, or URLs of gateways separated by commas"),
    value("--agents", "A,B", "only these agents, by name; default: all"),
    value("--lineup", "NAME", "only the agents in a line-up from csp.toml", nargs="?", const=""),
    switch("--demo", "start the scripted demo agents instead of real ones"),
    switch("--orchestrator", "also start an orchestrator"),
    value("--dir", "DIR", "directory in which the agents work; default: the current one"),
    value("--as", "NAME", "name of the room on this machine; default: ROOM-HOST", dest="local"),
    value("--machine", "NAME", "name of this machine in agents' names; default: its host name"),
    value("--ssh", "CMD", "command to use instead of ssh, with its options"),
    value("--remote-csp", "CMD", "the csp command on the host; default: csp"),
    value("--token-file", "F", "with URLs: file with the room's token"),
    value("--ca", "FILE", "with URLs: certificates to trust in addition to those of the system"),
    switch("--link-only", "start no panes; keep the link in this terminal until it is stopped"),
    switch("--detach", "start everything, but stay in this terminal"),
    TRUST,
    JSON,
    examples=(
        "csp join me@server:app --agents claude",
        "csp join https://gw1.example:8765,https://gw2.example:8765 --token-file token",
    ),
)
def join(call: VerbCall) -> int:
    """Join a room; return when the agents are in it, or show it."""
    refuse_agents(call)
    if call.settings.gateway_url:
        raise BadInput("csp join finds the gateway by itself", "unset CSP_GATEWAY_URL first")
    env = process_environment()
    joining = joining_of(call, read_target(call.args.target), env)
    settings = joined_settings(call, joining, env)
    if call.args.link_only:
        return keep_link(call, settings, joining)
    return open_panes(call, settings, joining, env)


def joining_of(call: VerbCall, target: Target, env: Mapping[str, str]) -> _Joining:
    """Return what to join, with the name of the room there."""
    args = call.args
    others = _OF_URLS if isinstance(target, SshTarget) else _OF_SSH
    for name in others:
        if getattr(args, name):
            flag = name.replace("_", "-")
            raise BadInput(f"--{flag} is not for the target {args.target!r}", "see: csp join --help")
    if isinstance(target, SshTarget):
        from csp.join.ssh import Ssh, choose

        command = read_text(COMMAND, args.ssh, "--ssh") if args.ssh else ("ssh",)
        ssh = Ssh(command, target.destination, args.remote_csp or "csp", env)
        # Here ssh may ask the person at this terminal.
        room = target.room or choose(ssh.rooms(is_attended=True), "", target.destination).room
        return _Joining(target, room, f"{target.destination}:{room}", ssh)
    from csp.join.url_link import check, read_token

    if not args.token_file:
        raise BadInput("a room with a URL needs --token-file", "print its token there with: csp token")
    room = check(target.urls, read_token(call.cwd / args.token_file), ca_file(call))
    return _Joining(target, room, target.urls, None)


def ca_file(call: VerbCall) -> str:
    """Return the file of --ca, or else of CSP_CA_FILE."""
    text = call.args.ca or str(call.settings.ca_file or "")
    path = call.cwd / Path(text)
    if text and not path.is_file():
        raise BadInput(f"--ca: expected a file, got {text!r}")
    return str(path) if text else ""


def joined_settings(call: VerbCall, joining: _Joining, env: Mapping[str, str]) -> Settings:
    """Return the settings of the room here."""
    from csp.panes.joined_room import settings_of

    local = call.args.local
    name = read_text(ROOM, local, "--as") if local else local_name(joining.room, joining.target.host)
    own = settings_for(call.settings, call.directory(call.args.dir), env) if call.args.dir else call.settings
    return settings_of(own, name, env)


def keep_link(call: VerbCall, settings: Settings, joining: _Joining) -> int:
    """Be the link until it is stopped."""
    from csp.cli.logging_setup import configure
    from csp.join.announcement import LinkOrder
    from csp.join.link import keep_ssh_link, keep_url_link

    configure(is_verbose=call.args.verbose)
    order = LinkOrder(
        name=settings.room,
        target=joining.whole,
        state_dir=settings.state_dir,
        dir=call.directory(call.args.dir),
        history=settings.history_dir / settings.room,
        project=settings.project.identity if settings.project else "",
    )
    if joining.ssh is not None:
        return keep_ssh_link(order, joining.ssh, joining.room)
    assert isinstance(joining.target, UrlTarget)
    return keep_url_link(order, joining.target.urls, call.cwd / call.args.token_file, ca_file(call))


def link_words(call: VerbCall, settings: Settings, joining: _Joining) -> list[str]:
    """Return the arguments of `csp join` for the link in the background; none of them is a secret."""
    args = call.args
    words = [joining.whole, "--as", settings.room, "--dir", str(call.directory(args.dir))]
    words += ["--ssh", args.ssh] if args.ssh else []
    words += ["--remote-csp", args.remote_csp] if args.remote_csp else []
    words += ["--token-file", str((call.cwd / args.token_file).resolve())] if args.token_file else []
    if isinstance(joining.target, UrlTarget) and (ca := ca_file(call)):
        words += ["--ca", str(Path(ca).resolve())]
    return words


def open_panes(call: VerbCall, settings: Settings, joining: _Joining, env: Mapping[str, str]) -> int:
    """Start the link if it is not up, and the agents in panes."""
    from csp.panes.joined_room import JoinedRoom, find_link, start_link
    from csp.panes.tmux_session import check_tmux

    check_tmux(env)
    dir, args = call.directory(call.args.dir), call.args
    attaches = will_attach(call, settings, env)
    with at_work(settings.state_dir, settings.room) as progress:
        if find_link(settings, joining.whole) is None:
            progress.show(f"connecting to {joining.target.host}…")
            start_link(settings, link_words(call, settings, joining), dir, env, progress.show)
        tell = functools.partial(say, progress)
        opening = JoinedRoom(settings, wish_of(call, settings, dir), dir, env, progress.show, tell)
        opening.machine = args.machine or socket.gethostname()
        opening.start(terminal_size() if attaches else None)
        if attaches:
            finish_unseen(opening)
        else:
            outcomes = opening.finish()
    if attaches:
        attach(opening, env)
    summary = {**opening.summary(), "joined": joining.whole}
    code = report_outcomes(call, summary, [outcome._asdict() for outcome in outcomes])
    if not call.is_json:
        talk(f"leave it with: csp down --room {shlex.quote(settings.room)}")
    return code
