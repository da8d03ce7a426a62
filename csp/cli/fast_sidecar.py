"""Start a sidecar from a simple command line without loading the full parser."""

import os

from csp.cli.fast_command_line import is_plain, plain_folder, plain_room
from csp.clis.registry import cli_names, profile_paths
from csp.fast_start import process_environment
from csp.fast_start.room_files import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from csp.sidecar.launch import ChosenProfile

ROLES = ("agent", "orchestrator")
_OPTIONS = ("--name", "--profile", "--role", "--room")


def start_plain_sidecar(words: list[str]) -> None:
    """Become the sidecar described by the arguments; return if they are not simple."""
    env = process_environment.process_environment()
    given = read_words(words)
    if given is None or not is_plain(env):
        return
    options, command = given
    profile = _profile(options.get("--profile") or os.path.basename(command[0]))
    found = plain_room(options.get("--room", ""), env)
    cwd = plain_folder(env)
    if profile is None or found is None or not cwd:
        return
    from csp.sidecar.launch import LaunchOrder, RoomAddress, launch

    url, token, name = found
    room = RoomAddress(url=url, token=token, name=name, state_dir=process_environment.state_dir(env))
    order = LaunchOrder(
        name=options["--name"],
        role=options.get("--role", ROLES[0]),
        command=command,
        profile=profile,
        cwd=cwd,
        env=env,
    )
    launch(order, room, is_light=True)


def read_words(words: list[str]) -> tuple[dict[str, str], list[str]] | None:
    """Return the options and the command; None if the full parser is needed."""
    is_text = not any("\ud800" <= char <= "\udfff" for word in words for char in word)
    if "--" not in words or not is_text:
        return None
    at = words.index("--")
    names, values, command = words[:at:2], words[1:at:2], words[at + 1 :]
    options = dict(zip(names, values, strict=False))
    is_plain = (
        len(names) == len(values) == len(options)
        and all(name in _OPTIONS for name in names)
        and not any(value.startswith("-") for value in values)
        and bool(options.get("--name") and command)
        and options.get("--role", ROLES[0]) in ROLES
        and is_name(options.get("--room", "x"))
    )
    return (options, command) if is_plain else None


def _profile(name: str) -> "ChosenProfile | None":
    """Return the profile of a CLI that is identified by its name and has an adapter of the same name."""
    if name not in cli_names():
        return None
    from csp.sidecar.launch import ChosenProfile

    return ChosenProfile(name=name, capture=name, source=profile_paths()[name])
