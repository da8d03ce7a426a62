"""Start a sidecar from a plain command line, before what reads any other has been loaded.

A person waits for the CLI behind it. Whatever is not plain (an option of the rarer kind, a settings file, a
choice among rooms, a mistake) is left to the long way, which comes to the same where both can go.
"""

import os

from csp.clis.registry import cli_names, profile_paths
from csp.fast_start import process_environment
from csp.fast_start.room_files import is_name, read_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from csp.sidecar.launch import ChosenProfile, RoomAddress

ROLES = ("agent", "orchestrator")
_OPTIONS = ("--name", "--profile", "--role", "--room")
#: The variables of ours that are understood here, or are no settings.
_VARIABLES = ("CSP_ROOM", "CSP_AUTH_TOKEN", "CSP_PANES")
_ROOM_KEYS = ("url", "token", "room")


def start_plain_sidecar(words: list[str]) -> None:
    """Become the sidecar that the words behind the verb ask for; return if they are not plain."""
    env = process_environment.process_environment()
    given = read_words(words)
    if given is None or not is_plain(env):
        return
    options, command = given
    profile = _profile(options.get("--profile") or os.path.basename(command[0]))
    room = _room(options.get("--room", ""), env)
    cwd = _cwd()
    if profile is None or room is None or not cwd or _has_settings(env, cwd):
        return
    from csp.sidecar.launch import LaunchOrder, launch

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
    """Return the options with the command behind them; None where a parser has to look at the words."""
    if "--" not in words or not all(_is_text(word) for word in words):
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


def _is_text(word: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in word)


def is_plain(env: "Mapping[str, str]") -> bool:
    """Tell whether the environment has nothing to say that a table of settings would have to check."""
    ours = {name for name, value in env.items() if name.startswith("CSP_") and value}
    return ours.issubset(_VARIABLES) and env.get("CSP_AUTH_TOKEN", "").isprintable()


def _profile(name: str) -> "ChosenProfile | None":
    """Return the profile of a CLI that is known by its name alone and has an adapter of the same name."""
    if name not in cli_names():
        return None
    from csp.sidecar.launch import ChosenProfile

    return ChosenProfile(name=name, capture=name, source=profile_paths()[name])


def _room(chosen: str, env: "Mapping[str, str]") -> "RoomAddress | None":
    """Return the room that is named, or the only one that runs."""
    state_dir = process_environment.state_dir(env)
    name = chosen or env.get("CSP_ROOM", "")
    try:
        names = [name] if name else _announced(state_dir)
    except OSError:
        return None
    if not all(map(is_name, names)):
        return None
    paths = [os.path.join(state_dir, f"{name}.json") for name in names]
    running = [room for path in paths if (room := read_running(path))]
    if len(running) != 1 or not all(isinstance(running[0].get(key), str) for key in _ROOM_KEYS):
        return None
    from csp.sidecar.launch import RoomAddress

    url, token, name = (running[0][key] for key in _ROOM_KEYS)
    return RoomAddress(url=url, token=env.get("CSP_AUTH_TOKEN") or token, name=name, state_dir=state_dir)


def _announced(state_dir: str) -> list[str]:
    return [name.removesuffix(".json") for name in os.listdir(state_dir) if name.endswith(".json")]


def _cwd() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _has_settings(env: "Mapping[str, str]", cwd: str) -> bool:
    user = process_environment.xdg(env, "XDG_CONFIG_HOME", ".config")
    return not user or any(map(_may_be, (f"{cwd}/csp.toml", f"{user}/csp/config.toml")))


def _may_be(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
