"""Read and change the command lines of CLIs."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

_UUID_PARTS = [8, 4, 4, 4, 12]
_HEX = frozenset("0123456789abcdefABCDEF")


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
    """Return a command line without these options and their values."""
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
    """Return the session that the user has chosen ("" if it has no id yet), or None if there is none."""
    chosen = option_names(argv) & set(flags)
    if not chosen:
        return None
    _, values = without_options(argv, ("--session-id", "-r", "--resume"))
    is_forked = "--fork-session" in chosen and "--session-id" not in chosen
    found = [value for value in values if is_uuid(value)]
    return found[-1] if found and not is_forked else ""


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID."""
    parts = text.split("-")
    return list(map(len, parts)) == _UUID_PARTS and _HEX.issuperset("".join(parts))
