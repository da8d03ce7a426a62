"""Run ssh: ask a host for its rooms, and forward connections to a gateway there."""

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from csp.errors import Broken, NotFound, Refused, Unreachable
from csp.fast_start.child_environment import USER, child_environment
from csp.fast_start.fast_http import Url

#: A connection without an answer is given up after six to eight seconds.
_ALIVE: Final = ("-o", "ServerAliveInterval=2", "-o", "ServerAliveCountMax=3", "-o", "ConnectTimeout=10")
#: Whatever a Host entry of the user says, this is neither a terminal nor a shared connection.
_PLAIN: Final = (
    *("-T", "-o", "ControlMaster=no", "-o", "ControlPath=none", "-o", "RemoteCommand=none"),
    *("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "PermitLocalCommand=no"),
)
_FORWARDS: Final = (
    *("-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindUnlink=yes", "-o", "StreamLocalBindMask=0177"),
)
#: Without a person at the terminal, ssh must not wait for a password.
_UNATTENDED: Final = ("-o", "BatchMode=yes")
#: A person may have to type a passphrase.
_ASK_S: Final = 120.0
_UNATTENDED_S: Final = 30.0
_SSH_FAILED: Final = 255
_NO_COMMAND: Final = (126, 127)
READY: Final = b"csp: forwarding"
#: Folders in which installers put csp, but which the shell of an ssh command may not search.
_MORE_PATH: Final = "$HOME/.local/bin:/usr/local/bin:/opt/homebrew/bin"


class RemoteRoom(NamedTuple):
    """A running room on the host, with its address there."""

    room: str
    url: str
    token: str


class Ssh(NamedTuple):
    """How to reach a host: the command, its destination, and the csp there."""

    command: tuple[str, ...]
    destination: str
    csp: str
    env: Mapping[str, str]

    def rooms(self, *, is_attended: bool) -> list[RemoteRoom]:
        """Return the rooms that run on the host for this user; raise if ssh or csp fails there."""
        search = f'PATH="$PATH:{_MORE_PATH}" exec {self.csp} token --all'
        words = [*self.command, *_PLAIN, *_ALIVE, *(() if is_attended else _UNATTENDED)]
        try:
            done = subprocess.run(
                [*words, "--", self.destination, f"sh -c {shlex.quote(search)}"],
                env=child_environment(USER, self.env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ASK_S if is_attended else _UNATTENDED_S,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise Unreachable(f"ssh {self.destination} did not answer within {exc.timeout:g} s") from exc
        except OSError as exc:
            raise NotFound(f"cannot run {self.command[0]!r}: {(exc.strerror or '').lower()}") from exc
        problem = last_line(done.stderr)
        if done.returncode == _SSH_FAILED:
            raise refusal(self.destination, problem)
        if done.returncode in _NO_COMMAND:
            hint = "install it there, or name it with --remote-csp PATH"
            raise NotFound(f"{self.destination} has no command {self.csp!r}", hint)
        if done.returncode:
            raise Broken(f"csp failed on {self.destination}: {problem}")
        return _read_rooms(done.stdout, self.destination)

    def forwarding(self, url: str, socket: str) -> list[str]:
        """Return the command that forwards a Unix socket to a gateway at the host's `url`.

        It ends with its standard input, so that it never outlives its caller.
        """
        parts = Url(url)
        host = f"[{parts.host}]" if ":" in parts.host else parts.host
        words = [*self.command, *_PLAIN, *_ALIVE, *_UNATTENDED, *_FORWARDS]
        words += ["-L", f"{socket}:{host}:{parts.port}", "--", self.destination]
        return [*words, f"sh -c {shlex.quote(f'echo {READY.decode()}; exec cat >/dev/null')}"]


def choose(rooms: Sequence[RemoteRoom], name: str, destination: str) -> RemoteRoom:
    """Return the room with this name, or the only one if the name is empty."""
    names = ", ".join(room.room for room in rooms)
    found = [room for room in rooms if room.room == name] if name else list(rooms)
    if len(found) == 1:
        return found[0]
    if name or not rooms:
        what = f"room {name!r}" if name else "no room"
        hint = f"running there: {names}" if names else "open one there with: csp up"
        raise Unreachable(f"{what} is{' not' if name else ''} running on {destination}", hint)
    raise Refused(f"several rooms are running on {destination}: {names}", f"choose one: {destination}:ROOM")


def refusal(destination: str, problem: str) -> Unreachable:
    """Return the error for an ssh that failed by itself."""
    is_login = "denied" in problem.lower() or "host key verification" in problem.lower()
    hint = f"it must work without a question: ssh -o BatchMode=yes {destination} true" if is_login else ""
    return Unreachable(f"ssh {destination} failed: {problem or 'it said nothing'}", hint)


def last_line(data: bytes) -> str:
    """Return the last line of an output that is not empty."""
    lines = [line.strip() for line in data.decode(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _read_rooms(data: bytes, destination: str) -> list[RemoteRoom]:
    # A shell's own start-up files may print something first.
    try:
        rows: Any = json.loads(last_line(data))
        return [RemoteRoom(str(row["room"]), str(row["url"]), str(row["token"])) for row in rows]
    except (ValueError, TypeError, KeyError) as exc:
        hint = "the versions of csp may differ"
        raise Broken(f"csp on {destination} gave an answer that cannot be read", hint) from exc
