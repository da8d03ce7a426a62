"""Support for simple command lines without loading the parser or the table of settings.

These commands must start fast. Anything that is not simple (a rare option, a settings file, a choice among
rooms, a mistake) is left to the full parser, which has the same result for a simple command line.
"""

import os

from csp.fast_start import process_environment
from csp.fast_start.room_files import is_name, read_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: Our variables that are handled here or are not settings.
_VARIABLES = ("CSP_ROOM", "CSP_AUTH_TOKEN", "CSP_PANES")


def is_plain(env: "Mapping[str, str]") -> bool:
    """Return whether the environment contains no setting that the table of settings must check."""
    ours = {name for name, value in env.items() if name.startswith("CSP_") and value}
    return ours.issubset(_VARIABLES) and env.get("CSP_AUTH_TOKEN", "").isprintable()


def plain_folder(env: "Mapping[str, str]") -> str:
    """Return the current folder; an empty string if it is gone or a settings file may apply."""
    user = process_environment.xdg(env, "XDG_CONFIG_HOME", ".config")
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        return ""
    if not user or _may_be(f"{user}/csp/config.toml"):
        return ""
    # Finding the project's root is left to the full parser: a file in any parent folder may be the project's.
    above = os.path.realpath(cwd)
    while not _may_be(f"{above}/csp.toml"):
        if above == os.path.dirname(above):
            return cwd
        above = os.path.dirname(above)
    return ""


def _may_be(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _is_here(room: "Mapping[str, object]") -> bool:
    """Return whether a room belongs to the project whose root is exactly this folder.

    A subfolder, a worktree and a folder that became a repository are left to the full parser.
    """
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        return False
    return room.get("project") in ((f"{cwd}/.git",) if _may_be(f"{cwd}/.git") else (cwd,))


def plain_room(chosen: str, env: "Mapping[str, str]") -> tuple[str, str, str] | None:
    """Return the URL, the token and the name of the named room, or of the only one in this folder."""
    state_dir = process_environment.state_dir(env)
    name = chosen or env.get("CSP_ROOM", "")
    try:
        files = [f"{name}.json"] if name else os.listdir(state_dir)
    except OSError:
        return None
    names = [file.removesuffix(".json") for file in files if file.endswith(".json")]
    if not all(map(is_name, names)):
        return None
    paths = [os.path.join(state_dir, f"{name}.json") for name in names]
    running = [found for path in paths if (found := read_running(path))]
    if not name:
        running = [found for found in running if _is_here(found)]
    if len(running) != 1:
        return None
    url, token, room = (running[0].get(key) for key in ("url", "token", "room"))
    if not isinstance(url, str) or not isinstance(token, str) or not isinstance(room, str):
        return None
    return url, env.get("CSP_AUTH_TOKEN") or token, room
