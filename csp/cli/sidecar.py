"""Run a CLI as an agent of the room."""

import shlex
from pathlib import Path

from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.errors import BadInput, Refused


def sidecar(call: VerbCall) -> int:
    """Start the CLI behind a sidecar; this process becomes its relay."""
    from csp.clis.profile import load_profile, load_profile_file, profile_for
    from csp.sidecar.launch import ChosenProfile, LaunchOrder, RoomAddress, launch

    args = call.args
    command = _command(call)
    if args.profile_file:
        profile = load_profile_file(call.cwd / args.profile_file)
    else:
        profile = load_profile(args.profile) if args.profile else profile_for(*command)
    order = LaunchOrder(
        name=args.name,
        role=args.role,
        command=command,
        profile=ChosenProfile(name=profile.name, capture=profile.capture, source=profile.source),
        cwd=str(call.cwd),
        env=process_environment(),
        initial_prompt=_prompt(call, args.initial_prompt_file),
        allow_shell=args.allow_shell,
        injection_timeout_s=call.settings.injection_timeout_s,
        has_peers=call.settings.has_peers(profile.capture),
    )
    address, state_dir = call.address, str(call.settings.state_dir)
    _check_room_token(call)
    launch(order, RoomAddress(url=address.url, token=address.token, name=address.room, state_dir=state_dir))
    return 1


def _check_room_token(call: VerbCall) -> None:
    """Refuse to start a sidecar inside another's pane: the new one would join as that agent."""
    agent = call.settings.agent
    if agent:
        raise Refused(f"this pane is already agent {agent!r}", "start the sidecar in another pane")
    if not call.address.token:
        raise BadInput("no token for the room", "set CSP_AUTH_TOKEN")


def _command(call: VerbCall) -> tuple[str, ...]:
    words = list(call.args.command)
    if call.args.cmd and words:
        raise BadInput("expected a command by --cmd or behind --, got both")
    if call.args.cmd:
        try:
            words = shlex.split(call.args.cmd)
        except ValueError as exc:
            raise BadInput(f"--cmd: {str(exc).lower()}", "check its quotes") from exc
    if not words:
        raise BadInput("expected the command to run", "csp sidecar --name claude -- claude")
    return tuple(words)


def _prompt(call: VerbCall, path: str | None) -> str:
    if path is None:
        return ""
    file = call.cwd / Path(path)
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeError) as exc:
        raise BadInput(f"--initial-prompt-file: cannot read {path!r}: {exc}") from exc
