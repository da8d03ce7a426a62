"""The target of `csp join`: a room on a host that ssh reaches, or the URLs of its gateways."""

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from csp.errors import BadInput
from csp.fast_start.fast_http import split_urls
from csp.fast_start.room_files import is_name
from csp.setting_types import GATEWAYS, read_text

_MAX_NAME: Final = 32
#: Without a leading dash, which ssh would read as an option.
_DESTINATION: Final = re.compile(
    r"(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?(?:[A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Za-z:.%]+\])"
)
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_EXAMPLE: Final = "csp join me@server:app, or csp join https://server:8765 --token-file F"


class SshTarget(NamedTuple):
    """A host as ssh names it, and the room there; an empty name means the only one."""

    destination: str
    room: str

    @property
    def host(self) -> str:
        return self.destination.rpartition("@")[2].strip("[]")


class UrlTarget(NamedTuple):
    """The gateways of a room, separated by commas."""

    urls: str

    @property
    def host(self) -> str:
        return urlsplit(split_urls(self.urls)[0]).hostname or ""


Target = SshTarget | UrlTarget


def read_target(text: str) -> Target:
    """Return the target, or raise BadInput."""
    if "://" in text:
        return UrlTarget(read_text(GATEWAYS, text, "csp join"))
    destination, sign, room = text.rpartition(":")
    if not sign or text.endswith("]"):
        destination, room = text, ""
    if not _DESTINATION.fullmatch(destination) or (sign and room and not is_name(room)):
        raise BadInput(f"expected USER@HOST:ROOM or a URL, got {text!r}", f"for example: {_EXAMPLE}")
    return SshTarget(destination, room)


def local_name(room: str, host: str) -> str:
    """Return the name that a room on another host gets here: app-server."""
    suffix = f"-{machine_label(host)}"
    return room[: _MAX_NAME - len(suffix)].rstrip("-") + suffix


def machine_label(host: str) -> str:
    """Return a host's name as part of a name in a room: laptop for laptop.example, 10-0-0-1 for 10.0.0.1."""
    is_address = ":" in host or host.replace(".", "").isdecimal()
    label = _OTHER.sub("-", (host if is_address else host.partition(".")[0]).lower()).strip("-")
    return label[: _MAX_NAME // 2].strip("-") or "host"


def suffixed(agent: str, machine: str) -> str:
    """Return an agent's name with its machine: claude-laptop."""
    suffix = f"-{machine_label(machine)}"
    return agent[: _MAX_NAME - len(suffix)].rstrip("-") + suffix
