"""Build a room's tmux session on the user's own server.

All options are set on this session, its windows or its panes; nothing is changed on the server.
"""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import libtmux
from libtmux.common import tmux_cmd

from csp.errors import Broken, NotFound, Refused
from csp.fast_start.atomic_files import replace_file
from csp.fast_start.child_environment import IDENTITY, TOOL, USER, child_environment
from csp.fast_start.process_environment import process_environment
from csp.fast_start.room_files import make_private_dir
from csp.panes.pane_borders import (
    FURTHER_OPTIONS,
    HUMAN,
    MARK,
    MODE_STATUS,
    WINDOW_OPTIONS,
    read_form,
    resize_hook,
)
from csp.terminal.pane_layout import LayoutForm, Size, capacity, default_form, layout

OLDEST_TMUX: Final = (3, 2)
DEFAULT_SIZE: Final = Size(cols=200, rows=49)
_VERSION: Final = re.compile(r"(?<!\d)(\d++)\.(\d+)")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: Variables that belong to the caller's terminal or shell.
_NOT_PASSED: Final = frozenset(
    {"PWD", "OLDPWD", "SHLVL", "_", "TERM", "TERMCAP", "COLUMNS", "LINES", "TERM_PROGRAM", MARK}
)
#: A placeholder until the layout is complete, so that each CLI starts at its final size.
_PLACEHOLDER: Final = "cat"
#: A message that is short enough for a narrow pane.
_ENDED: Final = "#{@csp_agent} ended#{?pane_dead_status, (#{pane_dead_status}),}; start it: csp up"
_ENDED_LINE: Final = re.compile(r"\S* ended(?: \(\d+\))?; start it|Pane is dead")
#: The space next to the session's name, for brackets, a space and a little of the user's own text.
_STATUS_LEFT: Final = 20
_STATUS_RIGHT: Final = 100
#: The keys of a room's session: go to the human pane, and toggle the zoom of the current pane.
KEY_TABLE: Final = "csp"
KEYS: Final = (
    ("F10", 'run-shell -C "select-window -t #{@csp_human} ; select-pane -t #{@csp_human}"'),
    ("F11", "resize-pane -Z"),
)
#: Capabilities without which tmux does not attach.
_ABILITIES: Final = ("clear", "cup")
_OTHER_TERMINAL: Final = "set TERM to one such as xterm-256color, or stay out of it with --detach"
_BUSY_SERVER: Final = ("server exited", "lost server")
_TRIES: Final = 5
_ANNOUNCED_MS: Final = 15_000
_SERVER_END_S: Final = 2.0
_POLL_S: Final = 0.02
_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPane:
    """One of our panes."""

    pane: str
    window: str
    agent: str
    pid: int
    is_dead: bool


def check_tmux(env: Mapping[str, str]) -> str:
    """Return tmux's version; raise if it is missing or too old."""
    path = shutil.which("tmux", path=env.get("PATH"))
    if path is None:
        hint = "install it: apt install tmux, dnf install tmux or brew install tmux"
        raise NotFound("tmux was not found", hint)
    command, clean = [path, "-V"], child_environment(TOOL, env)
    said = subprocess.run(command, env=clean, capture_output=True, text=True, check=False).stdout.strip()
    found = _VERSION.search(said)
    if found and (int(found[1]), int(found[2])) < OLDEST_TMUX:
        raise Refused(f"{said} is too old, expected tmux 3.2 or newer", "install a newer tmux")
    return said


def check_terminal(env: Mapping[str, str]) -> None:
    """Raise if tmux cannot draw on this terminal; do nothing inside tmux."""
    import curses

    if env.get("TMUX"):
        return
    name = env.get("TERM", "")
    try:
        curses.setupterm(name or "unknown")
        is_enough = all(curses.tigetstr(ability) for ability in _ABILITIES)
    except curses.error as exc:
        raise Refused(f"terminal {name!r} is not known on this machine", _OTHER_TERMINAL) from exc
    if not is_enough:
        raise Refused(f"terminal {name!r} cannot show a tmux session", _OTHER_TERMINAL)


def is_unwatched(env: Mapping[str, str], session: "TmuxSession | None") -> bool:
    """Return whether the caller is in a tmux session that no terminal shows, so that none can be switched.

    A session on another server is not switched to, but shown within the caller's pane.
    """
    if not env.get("TMUX") or (session is not None and session.elsewhere):
        return False
    server = libtmux.Server()
    rows = server.cmd("list-clients", "-F", "#{client_control_mode}").stdout
    return "0" not in rows


def session_name(room: str) -> str:
    """Return the name of a room's tmux session."""
    return "csp" if room == "default" else f"csp-{room}"


def room_key(state_dir: Path, room: str) -> str:
    """Return the mark that distinguishes our session from another one of the same name."""
    return f"{room}@{hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:12]}"


class TmuxSession:
    """One room's tmux session; `id` is empty if it does not exist."""

    def __init__(self, room: str, state_dir: Path) -> None:
        self._form: LayoutForm | None = None
        self.name = session_name(room)
        self._key = room_key(state_dir, room)
        # Identifies the tmux server that has the session, because the caller may use another one.
        self._socket_file = state_dir / f"{room}.tmux"
        self._server = libtmux.Server()
        try:
            self.id = self._find()
        except Refused:
            self.id = self._find_elsewhere()
            if not self.id:
                raise
        self.id = self.id or self._find_elsewhere()

    def _find_elsewhere(self) -> str:
        """Return the session on the server where it was opened; stay on the caller's if it is not there."""
        try:
            path = self._socket_file.read_text("utf-8")
        except (OSError, UnicodeError):
            return ""
        here, self._server = self._server, libtmux.Server(socket_path=path)
        with contextlib.suppress(Refused):
            if found := self._find():
                return found
        self._server = here
        return ""

    @property
    def elsewhere(self) -> str:
        """The socket of the session's server if it is not the caller's server, else an empty string."""
        return str(self._server.socket_path or "")

    def _find(self) -> str:
        rows = self._try("list-sessions", "-F", "#{session_id} #{?@csp_room,#{@csp_room},-} #{session_name}")
        for row in rows.stdout:
            session, key, name = row.split(" ", 2)
            if key == self._key:
                return session
            if name == self.name:
                hint = f"rename it: tmux rename-session -t {name} other; or choose another room with --room"
                raise Refused(f"there is a tmux session {name!r} that is not the room's", hint)
        return ""

    # --- building --------------------------------------------------------------------------------

    def open(self, size: Size, dir: Path, env: Mapping[str, str], form: LayoutForm | None = None) -> None:
        """Create the session with a pane for the human, by default in the layout form that suits its size."""
        words = ["new-session", "-d", "-s", self.name, "-n", "chat"]
        words += ["-x", str(size.cols), "-y", str(size.rows), "-c", _plain(str(dir))]
        for name, value in {**passed_on(env), MARK: self._key}.items():
            words += ["-e", f"{name}={value}"]
        lines = [
            [*words, _PLACEHOLDER],
            ["set-option", "-t", f"{self.name}:", "@csp_room", self._key],
            ["set-option", "-t", f"{self.name}:", "destroy-unattached", "off"],
            *(["set-environment", "-t", f"{self.name}:", "-r", name] for name in IDENTITY),
        ]
        self._source(lines)
        self._bind_keys()
        self.id = self._find()
        if not self.id:
            raise Broken("tmux did not create the session", "see: tmux list-sessions")
        self.save_socket()
        (seat,) = self._rows()
        self._form = form or default_form(size)
        own = "\n".join(self._try("show-options", "-gv", "status-right").stdout)
        # The status line must have space for the session's name and the mode.
        for name, value in (
            ("status-left-length", str(len(self.name) + _STATUS_LEFT)),
            ("status-right-length", str(_STATUS_RIGHT)),
            ("status-right", MODE_STATUS + own),
            ("mouse", "on"),
            ("@csp_layout", self.form.name),
            ("@csp_share", str(self.form.share)),
        ):
            self._try("set-option", "-t", f"{self.name}:", name, value)
        self._dress_window(seat.window, human=seat.pane)
        self._name_pane(seat.pane, HUMAN, "")

    def _bind_keys(self) -> None:
        """Give this session its own key bindings; those of the user's other sessions are unchanged.

        A session uses one key table, so ours starts as a copy of the user's.
        """
        known = self._try("list-keys", "-T", "root").stdout
        copied = [line.replace("-T root", f"-T {KEY_TABLE}", 1) for line in known]
        own = [f"bind-key -T {KEY_TABLE} {key} {what}" for key, what in KEYS]
        self._run_script("\n".join([*copied, *own, f"set-option -t {self.name}: key-table {KEY_TABLE}", ""]))

    def _source(self, lines: Sequence[Sequence[str]]) -> None:
        """Send commands to tmux over standard input, because other users could read arguments."""
        self._run_script("".join(" ".join(map(_quoted, words)) + "\n" for words in lines))

    def _run_script(self, script: str) -> None:
        for _ in range(_TRIES):
            done = subprocess.run(
                [*self._command, "start-server", ";", "source-file", "-"],
                # A server passes the environment in which it was started to all its panes.
                env=child_environment(USER, process_environment()),
                input=script.encode("utf-8", "surrogateescape"),
                capture_output=True,
                check=False,
            )
            problem = (done.stderr + done.stdout).decode(errors="replace").strip()
            # A server that is ending rejects a new client.
            if not any(words in problem for words in _BUSY_SERVER):
                break
        if done.returncode or problem:
            raise Broken(f"tmux failed: {problem or done.returncode}")

    def _dress_window(self, window: str, human: str = "") -> None:
        for name, value in WINDOW_OPTIONS:
            self._do("set-option", "-w", "-t", window, name, value)
        # Versions before 3.3 have no such option.
        self._try("set-option", "-w", "-t", window, "remain-on-exit-format", _ENDED)
        if human:
            self._try("set-option", "-t", f"{self.name}:", "@csp_human", human)
            self._try("set-hook", "-w", "-t", window, "window-resized", resize_hook(human, self.form))

    @property
    def form(self) -> LayoutForm:
        """The layout form of the windows, chosen by a user or to suit the first terminal."""
        if self._form is None:
            said = self._try("display-message", "-p", "-t", self.id, "#{@csp_layout} #{@csp_share}").stdout
            self._form = read_form("".join(said[:1]))
        return self._form

    def place(self, agent: str, role: str) -> str:
        """Create an agent's pane, which waits for its command."""
        pane = self._split()
        if not pane:
            words = ("new-window", "-d", "-P", "-F", "#{window_id} #{pane_id}", "-t", f"{self.id}:")
            window, pane = self._do(*words, "-n", agent, _PLACEHOLDER)[0].split()
            self._dress_window(window)
            for name, value in FURTHER_OPTIONS:
                self._do("set-option", "-w", "-t", window, name, value)
        self._name_pane(pane, agent, "" if role == "agent" else role)
        return pane

    def place_human(self) -> str:
        """Recreate the human pane after it was closed."""
        first = self._rows()[0]
        words = ("split-window", "-d", "-b", "-f", "-P", "-F", "#{pane_id}", "-t", first.pane)
        pane = self._do(*words, _PLACEHOLDER)[0]
        self._name_pane(pane, HUMAN, "")
        self._dress_window(first.window, human=pane)
        self.arrange(first.window)
        return pane

    def _split(self) -> str:
        """Return a new pane in the first window with space for it, or an empty string if there is none."""
        windows: dict[str, list[AgentPane]] = {}
        for seat in self._rows():
            windows.setdefault(seat.window, []).append(seat)
        for window, seats in windows.items():
            has_human = seats[0].agent == HUMAN
            agents = len(seats) - has_human
            if agents >= capacity(self._size(window), self.form, has_human=has_human):
                continue
            made = self._try(
                "split-window", "-d", "-P", "-F", "#{pane_id}", "-t", seats[-1].pane, _PLACEHOLDER
            )
            if made.stdout:
                self.arrange(window)
                return made.stdout[0]
        return ""

    def arrange(self, window: str) -> None:
        """Lay out the panes of a window to suit its size."""
        seats = [seat for seat in self._rows() if seat.window == window]
        has_human = bool(seats) and seats[0].agent == HUMAN
        text = layout(len(seats) - has_human, self._size(window), self.form, has_human=has_human)
        self._try("select-layout", "-t", window, text)

    def run(self, pane: str, argv: Sequence[str], dir: Path, env: Mapping[str, str] = _NOTHING) -> None:
        """Run a command in a pane without a shell, ending the old process.

        `env` contains variables to add to the session's own environment.
        """
        words = ("respawn-pane", "-k", "-t", pane, "-c", _plain(str(dir)))
        if env:
            more = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
            self._source([[*words, *more, "--", *argv]])
        else:
            self._do(*words, "--", *argv)

    def close(self, seat: AgentPane) -> None:
        """Close a pane; the other panes in its window share its space."""
        self._do("kill-pane", "-t", seat.pane)
        if any(other.window == seat.window for other in self._rows()):
            self.arrange(seat.window)

    def _name_pane(self, pane: str, agent: str, role: str) -> None:
        self._do("set-option", "-p", "-t", pane, "@csp_agent", agent)
        if role and role != agent:
            self._do("set-option", "-p", "-t", pane, "@csp_role", role)

    def set_state(self, pane: str, word: str) -> None:
        """Show a state in a pane's border, unless the human pane has already shown a newer one.

        The human pane keeps states current; an older state from here would remain until the next change.
        """
        is_old = "#{||:#{==:#{@csp_state},},#{==:#{@csp_state},starting}}"
        self._try(
            "if-shell",
            "-F",
            "-t",
            pane,
            is_old,
            f"set-option -p -t {pane} @csp_state '{word.replace('_', ' ')}'",
        )

    # --- queries ---------------------------------------------------------------------------------

    def seats(self) -> dict[str, AgentPane]:
        """Return our panes by agent; the human pane has the key `human`."""
        return {seat.agent: seat for seat in self._rows() if seat.agent != "-"} if self.id else {}

    def pids(self) -> list[int]:
        """Return the processes that run in the panes."""
        return [seat.pid for seat in self._rows() if not seat.is_dead] if self.id else []

    def _rows(self) -> list[AgentPane]:
        form = "#{pane_id} #{window_id} #{pane_pid} #{pane_dead} #{?@csp_agent,#{@csp_agent},-}"
        rows = [row.split(" ") for row in self._try("list-panes", "-s", "-t", self.id, "-F", form).stdout]
        return [
            AgentPane(pane=pane, window=window, pid=int(pid or 0), is_dead=dead == "1", agent=agent)
            for pane, window, pid, dead, agent in rows
        ]

    def _size(self, window: str) -> Size:
        form = "#{window_width} #{window_height}"
        cols, rows = self._do("display-message", "-p", "-t", window, form)[0].split()
        return Size(cols=int(cols), rows=int(rows))

    def last_line(self, pane: str) -> str:
        """Return the last non-empty line of a pane, without tmux's own message."""
        lines = [
            line.strip() for line in self._try("capture-pane", "-p", "-J", "-S", "-100", "-t", pane).stdout
        ]
        said = [line for line in lines if line and not _ENDED_LINE.match(line)]
        return said[-1] if said else ""

    def client_size(self, env: Mapping[str, str]) -> Size | None:
        """Return the size of the terminal that shows this tmux, for a caller inside tmux."""
        form = "#{client_width} #{client_height}"
        rows = self._try("display-message", "-p", form).stdout if env.get("TMUX") else []
        cols, _, lines = (rows[0] if rows else "").partition(" ")
        return Size(cols=int(cols), rows=int(lines) - 1) if cols and lines else None

    # --- ending and attaching --------------------------------------------------------------------

    @property
    def socket(self) -> str:
        """The path of the socket of the session's server; empty if the server is not running."""
        return "".join(self._try("display-message", "-p", "#{socket_path}").stdout[:1])

    def announce(self, text: str) -> None:
        """Show a line in all clients of the session for a few seconds."""
        form = "#{client_control_mode} #{client_name}"
        for line in self._try("list-clients", "-t", self.id, "-F", form).stdout:
            is_control, _, client = line.partition(" ")
            if is_control == "0":
                self._try("display-message", "-d", str(_ANNOUNCED_MS), "-c", client, _plain(text))

    def save_socket(self) -> None:
        """Record the server that has the session, so that it can be found from another one."""
        make_private_dir(self._socket_file.parent)
        replace_file(str(self._socket_file), self.socket.encode(), is_durable=False)

    def kill(self) -> None:
        """End the session, but not the server or its other sessions."""
        path = self.socket
        form = "#{client_name} #{client_last_session}"
        for line in self._try("list-clients", "-t", self.id, "-F", form).stdout:
            client, _, session = line.partition(" ")
            # tmux would detach the clients; return them to their previous sessions instead.
            if session and session != self.name:
                self._try("switch-client", "-c", client, "-t", f"={session}")
        others = len(self._try("list-sessions").stdout) - 1
        self._try("kill-session", "-t", self.id)
        if not any(self._try("list-sessions", "-F", "#{@csp_room}").stdout):
            self._try("unbind-key", "-a", "-q", "-T", KEY_TABLE)
        self.id = ""
        self._socket_file.unlink(missing_ok=True)
        if path and not others:
            remove_dead_socket(path)

    def attach_argv(self, env: Mapping[str, str]) -> list[str]:
        """Return the command that attaches to the session."""
        self._try("select-window", "-t", f"{self.id}:^")
        if env.get("TMUX") and not self.elsewhere:
            return ["tmux", "switch-client", "-t", self.id]
        # Inside another tmux server, the session can only be shown within the current pane.
        outside = ["env", "-u", "TMUX"] if env.get("TMUX") else []
        return [*outside, *self._command, "attach-session", "-t", self.id]

    @property
    def attach_line(self) -> str:
        """The command with which a user attaches from a terminal."""
        return shlex.join([*self._command, "attach", "-t", self.name])

    @property
    def _command(self) -> list[str]:
        return ["tmux", "-S", self.elsewhere] if self.elsewhere else ["tmux"]

    def _try(self, *words: str) -> tmux_cmd:
        return self._server.cmd(*words)

    def _do(self, *words: str) -> list[str]:
        done = self._server.cmd(*words)
        if done.stderr:
            raise Broken(f"tmux {words[0]} failed: {' '.join(done.stderr)}")
        return done.stdout


def passed_on(env: Mapping[str, str]) -> dict[str, str]:
    """Return the part of the caller's environment that is passed to the panes."""
    return {
        name: value
        for name, value in child_environment(USER, env).items()
        if name not in _NOT_PASSED and not name.startswith("TMUX") and _VARIABLE.fullmatch(name)
    }


def _plain(text: str) -> str:
    """Escape text so that tmux does not interpret it as a format."""
    return text.replace("#", "##")


def _quoted(word: str) -> str:
    """Quote a word for the tmux command language."""
    return '"' + "".join(_ESCAPED.get(char, char) for char in word) + '"'


_CONTROL: Final = {chr(code): f"\\{code:03o}" for code in (*range(32), 127)}
_ESCAPED: Final = _CONTROL | {"\\": "\\\\", '"': '\\"', "$": "\\$", "\n": "\\n", "\t": "\\t"}


def remove_dead_socket(path: str) -> None:
    """Remove the socket that remains when a tmux server ends with its last session."""
    deadline = time.monotonic() + _SERVER_END_S
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
            except ConnectionRefusedError:
                Path(path).unlink(missing_ok=True)
                return
            except OSError:
                return
        time.sleep(_POLL_S)
