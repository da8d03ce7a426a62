"""What the wirings of several CLIs share: reading a command line, hooks, files."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet
    from typing import Any

HOOK_TIMEOUT_S = 10
_UUID_PARTS = [8, 4, 4, 4, 12]
_HEX = frozenset("0123456789abcdefABCDEF")


def hook_command(spool: "str | os.PathLike[str]") -> str:
    """Return the shell line of a hook: it writes its input to the spool, succeeds always, prints nothing."""
    folder = "'" + os.fspath(spool).replace("'", "'\"'\"'") + "'"
    return f'exec 2>/dev/null;umask 077;t={folder}/.$$;cat >"$t"&&mv "$t" {folder}/$$.json||rm -f "$t";exit 0'


def with_hooks(settings: "dict[str, Any]", ours: "dict[str, Any]") -> "dict[str, Any]":
    """Return settings with our hooks added to those of the user."""
    hooks = dict(settings.get("hooks") or {})
    for event, entries in ours.items():
        hooks[event] = [*(hooks.get(event) or []), *entries]
    return {**settings, "hooks": hooks}


# --- command lines --------------------------------------------------------------------------------


def option_names(argv: "Sequence[str]") -> set[str]:
    """Return the names of the options before `--`."""
    args = list(argv[1:])
    args = args[: args.index("--") if "--" in args else len(args)]
    return {arg.partition("=")[0] for arg in args if arg.startswith("-")}


def plain_words(argv: "Sequence[str]", with_value: "AbstractSet[str]") -> list[str]:
    """Return the arguments before `--` that are neither options nor the values of options."""
    words, args = [], iter(argv[1:])
    for arg in args:
        if arg == "--":
            break
        if arg in with_value:
            next(args, None)
        elif not arg.startswith("-"):
            words.append(arg)
    return words


def without_options(argv: "Sequence[str]", names: "Sequence[str]") -> tuple[list[str], list[str]]:
    """Return a command line without these options, and their values."""
    values: list[str] = []
    kept, at = list(argv[:1]), 1
    while at < len(argv):
        arg = argv[at]
        name, sign, value = arg.partition("=")
        if arg == "--":
            return [*kept, *argv[at:]], values
        if name not in names:
            kept.append(arg)
        elif sign:
            values.append(value)
        elif at + 1 < len(argv) and not argv[at + 1].startswith("-"):
            values.append(argv[at + 1])
            at += 1
        at += 1
    return kept, values


def chosen_session(argv: "Sequence[str]", flags: "Sequence[str]") -> str | None:
    """Return the session that the user has chosen, "" if it has no id yet; None if they have not."""
    chosen = option_names(argv) & set(flags)
    if not chosen:
        return None
    _, values = without_options(argv, ("--session-id", "-r", "--resume"))
    is_forked = "--fork-session" in chosen and "--session-id" not in chosen
    found = [value for value in values if is_uuid(value)]
    return found[-1] if found and not is_forked else ""


def with_resume(argv: "Sequence[str]", flags: "Sequence[str]", session_id: str) -> list[str]:
    """Return a command line that continues a session, without the user's own choice of one."""
    kept, _ = without_options(argv, flags)
    return [kept[0], "--resume", session_id, *kept[1:]]


def is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID."""
    parts = text.split("-")
    return list(map(len, parts)) == _UUID_PARTS and _HEX.issuperset("".join(parts))


def uuid_in_name(stem: str) -> str:
    """Return the UUID at the end of a file's name; empty where there is none."""
    return stem[-36:] if is_uuid(stem[-36:]) else ""


# --- files ----------------------------------------------------------------------------------------


def read_text(path: str) -> str:
    """Return the text of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_private(path: str, text: str) -> None:
    """Write a file that only its user can read."""
    with open(path, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
