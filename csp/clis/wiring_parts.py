"""Shared parts of the wirings of several CLIs: hooks and files."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A hook only writes a file, but on a busy machine even its shell may take seconds to start. A hook that is
#: killed is a turn whose beginning or end nobody learns of.
HOOK_TIMEOUT_S = 60


def hook_command(spool: "str | os.PathLike[str]") -> str:
    """Return the command of a hook: it writes its input to the spool, prints nothing and always succeeds."""
    folder = "'" + os.fspath(spool).replace("'", "'\"'\"'") + "'"
    return f'exec 2>/dev/null;umask 077;t={folder}/.$$;cat >"$t"&&mv "$t" {folder}/$$.json||rm -f "$t";exit 0'


def with_hooks(settings: "dict[str, Any]", ours: "dict[str, Any]") -> "dict[str, Any]":
    """Return settings with our hooks added to the user's hooks."""
    hooks = dict(settings.get("hooks") or {})
    for event, entries in ours.items():
        hooks[event] = [*(hooks.get(event) or []), *entries]
    return {**settings, "hooks": hooks}


def read_text(path: str) -> str:
    """Return the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_private(path: str, text: str) -> None:
    """Write a file that only its user can read."""
    with open(path, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
