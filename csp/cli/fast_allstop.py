"""Stop a room's work from a simple command line with as little delay as possible."""

import sys

from csp.cli.fast_command_line import is_plain, plain_folder, plain_room
from csp.fast_start import process_environment
from csp.fast_start.room_files import is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stop_plainly(words: list[str]) -> bool:
    """Stop a room's work and print the outcome; return False if the arguments are not simple."""
    env = process_environment.process_environment()
    options = read_words(words)
    if options is None or not is_plain(env) or not plain_folder(env):
        return False
    is_all, chosen = options
    room = plain_room(chosen, env)
    if room is None:
        return False
    from csp.http_client import GatewayClient

    line = stopped_line(GatewayClient(room[0], room[1]).post_once("/stop", {"all": True} if is_all else {}))
    if line.isascii() and line.isprintable():
        print(line, file=sys.stderr)
    else:
        from csp.cli.output import talk

        talk(line)
    return True


def read_words(words: list[str]) -> tuple[bool, str] | None:
    """Return whether --all is given, and the room; None if the full parser is needed."""
    rest = [word for word in words if word != "--all"]
    if not rest:
        return len(words) > 0, ""
    is_room = len(rest) == 2 and rest[0] == "--room" and is_name(rest[1]) and not rest[1].startswith("-")
    # The name must follow its option directly.
    return (len(words) > 2, rest[1]) if is_room and words[words.index("--room") + 1] == rest[1] else None


def stopped_line(answer: "Any") -> str:
    """Return the response to a stop as one human-readable line."""
    from csp.http_client import field

    stopped = field(answer, "stopped", list)
    if stopped:
        return f"stopped {', '.join(map(str, stopped))}"
    return "No mode is running. To stop an agent: csp interrupt AGENT"
