"""Show a long text where it can be read through: in a popup over the whole terminal, else over the pane."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from csp.fast_start.child_environment import HELPER, USER, child_environment

_KEYS: Final = "q closes, space scrolls, / searches"
#: A user's own `less` options could end it immediately, and it must not start programs.
_OWN: Final = {"LESS": "", "LESSSECURE": "1", "LESSCHARSET": "utf-8"}
_CLIENTS: Final = "#{client_control_mode} #{client_activity} #{client_name}"


def pager_command(file: Path, *, is_mouse: bool) -> list[str] | None:
    """Return the command that shows a file until q is pressed; None if there is no pager."""
    less = shutil.which("less")
    if less is None:
        return None
    mouse = ["--mouse", "--wheel-lines=3"] if is_mouse else []
    return [less, "-R", "-~", "-c", *mouse, f"-P{_KEYS}", str(file)]


@contextmanager
def text_file(text: str) -> Iterator[Path]:
    """Write a text to a file that only this user can read, and delete the file afterwards."""
    handle, name = tempfile.mkstemp(prefix="csp-", suffix=".txt")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def read_through(command: list[str], env: Mapping[str, str]) -> None:
    """Run a pager on this terminal until it ends."""
    subprocess.run(command, env=child_environment(USER, env, _OWN), check=False)


async def show_in_popup(env: Mapping[str, str], text: str) -> bool:
    """Show a text in a popup on the terminal that was last typed in; return whether that was possible."""
    pane = env.get("TMUX_PANE", "")
    if not env.get("TMUX") or not pane:
        return False
    code, listed = await _tmux(env, "list-clients", "-t", pane, "-F", _CLIENTS)
    # A terminal emulator that draws the panes itself shows no popups.
    clients = sorted(row.split(" ", 2)[1:] for row in listed.splitlines() if row.startswith("0 "))
    with text_file(text) as file:
        command = pager_command(file, is_mouse=True)
        if code or not clients or command is None:
            return False
        own = [f"{name}={value}" for name, value in _OWN.items()]
        popup = ("display-popup", "-c", clients[-1][1], "-E", "-w", "100%", "-h", "100%")
        # A border would take two columns from a text that was laid out for the width of the pane.
        # tmux 3.2 has no popup without one.
        for border in (("-B",), ()):
            code, _ = await _tmux(env, *popup, *border, "env", *own, *command)
            if code == 0:
                return True
    return False


async def _tmux(env: Mapping[str, str], *words: str) -> tuple[int, str]:
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # It names the server that this pane is on, which need not be the default one.
            env=child_environment(HELPER, env),
        )
    except OSError:
        return 1, ""
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode("utf-8", "replace")
