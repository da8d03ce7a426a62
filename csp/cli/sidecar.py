"""Run a CLI as an agent in the room."""

import shlex
from typing import Final

from csp.cli.arguments import ROLES, read_as, switch, takes, value
from csp.cli.verb_call import VerbCall
from csp.clis.registry import profile_names
from csp.config import WORD, process_environment
from csp.errors import BadInput

_PROFILES: Final = profile_names()
PROFILE: Final = value(
    "--profile", "P", f"{', '.join(_PROFILES[:-1])} or {_PROFILES[-1]}; default: by the command's name"
)
COMMAND: Final = value("command", "CMD", "the command to run, after --", nargs="*")
DUTY: Final = value(
    "--duty",
    "WORD",
    "what the agent does, such as reviewer; shown to the others",
    type=read_as(WORD),
)
PROMPT_FILE: Final = value("--prompt-file", "F", "text to give the agent with the room's rules")


@takes(
    value("--name", "N", "name of the agent in the room", required=True),
    PROFILE,
    value("--profile-file", "F", "your own profile as a TOML file"),
    value("--role", "R", "agent or orchestrator", choices=ROLES, default="agent"),
    DUTY,
    PROMPT_FILE,
    value("--initial-prompt-file", "F", "text to type in once the CLI is ready"),
    switch("--allow-shell", "type messages into a plain shell, which runs them"),
    value("--cmd", "CMD", "the command as one string, instead of after --"),
    COMMAND,
    examples=("csp sidecar --name claude -- claude --model sonnet",),
)
def sidecar(call: VerbCall) -> int:
    """Start the CLI behind a sidecar; this process becomes its relay."""
    from csp.clis.profile import load_profile, load_profile_file, profile_for
    from csp.sidecar.launch import ChosenProfile, LaunchOrder, RoomAddress, launch

    args, command = call.args, tuple(call.args.command)
    if args.cmd and command:
        raise BadInput("expected a command by --cmd or after --, got both")
    if args.cmd:
        try:
            command = tuple(shlex.split(args.cmd))
        except ValueError as exc:
            raise BadInput(f"--cmd: {str(exc).lower()}", "check its quotes") from exc
    if not command:
        raise BadInput("expected the command to run", "csp sidecar --name claude -- claude")
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
        initial_prompt=text_of(call, "--initial-prompt-file", args.initial_prompt_file),
        duty=args.duty or "",
        prompt=text_of(call, "--prompt-file", args.prompt_file),
        allow_shell=args.allow_shell,
        injection_timeout_s=call.settings.injection_timeout_s,
        has_peers=call.settings.has_peers(profile.capture),
    )
    address, state_dir = call.address, str(call.settings.state_dir)
    call.check_free_pane("the sidecar")
    launch(order, RoomAddress(url=address.url, token=address.token, name=address.room, state_dir=state_dir))
    return 1


def text_of(call: VerbCall, flag: str, path: str | None) -> str:
    """Return the text of the file given by an option, or an empty string without one."""
    if path is None:
        return ""
    try:
        return (call.cwd / path).read_text("utf-8")
    except (OSError, UnicodeError) as exc:
        raise BadInput(f"{flag}: cannot read {path!r}: {exc}") from exc
