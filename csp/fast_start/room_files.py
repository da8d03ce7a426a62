"""Read the announcements of rooms, and write the token files of their agents."""

import fcntl
import os

from csp.errors import BadInput, Broken
from csp.fast_start.atomic_files import remove, replace_file
from csp.fast_start.fast_http import trust
from csp.fast_start.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_BYTES = 1 << 16
_MAX_NAME = 32
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


def is_name(text: str) -> bool:
    """Return whether a name is valid for a room or an agent; valid names are safe to use in paths."""
    return 0 < len(text) <= _MAX_NAME and _NAME_CHARS.issuperset(text)


def checked(name: str, what: str) -> str:
    """Return the name, or raise BadInput if it is not safe to use in a path."""
    if not is_name(name):
        raise BadInput(f"{what}: expected a name of a-z, 0-9 or -, got {name!r}")
    return name


def read_running(path: str) -> "dict[str, Any] | None":
    """Return the announcement of a running room; remove its file if the room has ended."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        try:
            found = loads(os.pread(fd, _MAX_BYTES, 0))
        except (OSError, ValueError):
            # The path is a folder or something else that is not a file.
            found = None
        room = found if isinstance(found, dict) else None
        if room and room.get("ca_file"):
            trust(str(room.get("url")), str(room["ca_file"]))
        if not lock(fd, fcntl.LOCK_SH) or (room and room.get("supervisor") and _is_alive(room["supervisor"])):
            return room
        if lock(fd, fcntl.LOCK_EX) and is_at(fd, path):
            remove(path)
        return None
    finally:
        os.close(fd)


def lock(fd: int, kind: int) -> bool:
    """Lock a file; return whether that succeeded."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_at(fd: int, path: str) -> bool:
    """Return whether the path still refers to the open file, which another process may have removed."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def make_private_dir(path: "str | os.PathLike[str]") -> None:
    """Create a private folder, or make an existing one private."""
    os.makedirs(path, 0o700, exist_ok=True)
    if os.stat(path).st_mode & 0o077:
        os.chmod(path, 0o700)


def agents_dir(state_dir: str, room: str) -> str:
    """Return the folder of a room's sidecars and of their agents' tokens."""
    return os.path.join(state_dir, f"{room}.agents")


def token_path(state_dir: str, room: str, agent: str, kind: str = "token") -> str:
    """Return the path of an agent's token, either the one for commands in its pane or one of another kind."""
    name = f"{checked(agent, 'CSP_AGENT')}.{kind}"
    return os.path.join(agents_dir(state_dir, checked(room, "room")), name)


def save_token(state_dir: str, room: str, agent: str, token: str, kind: str = "token") -> str:
    """Write an agent's token to a file that only its user can read; return the file's path."""
    path = token_path(state_dir, room, agent, kind)
    try:
        make_private_dir(state_dir)
        make_private_dir(os.path.dirname(path))
        replace_file(path, token.encode("ascii"), is_durable=False)
    except OSError as exc:
        raise Broken(f"cannot write {path!r}: {(exc.strerror or '').lower()}") from exc
    return path
