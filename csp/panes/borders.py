"""Show what each agent does in the border of its pane.

One tmux client in control mode is held for as long as somebody wants to show states, so that no process is
started for a change of them. The same client lays the panes out anew when the window changes its size.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Final

from csp.core.layout import Size, layout

#: In the environment of our panes; says to `down` that a sidecar sits in one of them.
MARK: Final = "CSP_PANES"
HUMAN: Final = "human"

_LIST: Final = "list-panes -s -F '#{pane_id} #{window_id} #{?@csp_agent,#{@csp_agent},-}'"
_CHANGED: Final = re.compile(r"%layout-change (@\d+) [0-9a-f]{4},(\d+)x(\d+),\S+ \S+ ?(\S*)")
_PANE: Final = re.compile(r"(%\d+) (@\d+) (\S+)")
_WORD: Final = re.compile(r"[^a-z0-9_ :.-]")
_CLOSE_S: Final = 1.0


class PaneBorders:
    """The borders of the panes around us; outside of a room's tmux session nothing is shown.

    `set_state` returns at once and never fails: a border is not worth an error.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._pane = env.get("TMUX_PANE", "") if env.get(MARK) else ""
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._states: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._panes: dict[str, tuple[str, str]] = {}
        self._sizes: dict[str, Size] = {}

    async def start(self) -> None:
        """Connect to tmux; outside of it do nothing."""
        if not self._pane or self._process is not None:
            return
        with contextlib.suppress(OSError):
            self._process = await asyncio.create_subprocess_exec(
                *("tmux", "-C", "attach-session", "-t", self._pane, "-f", "no-output,ignore-size"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                # Ctrl-C in the pane is not meant for it.
                start_new_session=True,
            )
            self._reading = asyncio.ensure_future(self._read())
            self._tell(_LIST)

    def set_state(self, agent: str, word: str) -> None:
        """Show a state, as soon as there is a pane to show it at."""
        self._states[agent] = _WORD.sub("", word.lower())
        if agent in self._panes:
            self._show(agent)
        else:
            self._tell(_LIST)

    async def close(self) -> None:
        """Leave tmux; the borders stay as they are."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _CLOSE_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    # --- from tmux -------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Take what tmux tells, until it is gone."""
        stream = self._process.stdout if self._process else None
        while stream is not None:
            try:
                line = await stream.readline()
            except (ValueError, OSError):
                continue  # a line that is too long is none of ours
            if not line:
                return
            self._take(line.decode(errors="replace").rstrip("\n"))

    def _take(self, line: str) -> None:
        if found := _PANE.fullmatch(line):
            pane, window, agent = found.groups()
            if agent != "-":
                is_new = self._panes.get(agent) != (pane, window)
                self._panes[agent] = pane, window
                if is_new:
                    self._shown.pop(agent, None)
                self._show(agent)
        elif changed := _CHANGED.match(line):
            window, cols, rows, flags = changed.groups()
            self._arrange(window, Size(cols=int(cols), rows=int(rows)), is_zoomed="Z" in flags)
        elif line.startswith(("%window-add", "%unlinked-window-add")):
            self._tell(_LIST)

    def _arrange(self, window: str, size: Size, *, is_zoomed: bool) -> None:
        """Lay a window out anew if its size is another one; what a person has dragged stays otherwise."""
        before = self._sizes.get(window)
        if is_zoomed:
            return
        self._sizes[window] = size
        if before is None or before == size:
            return
        agents = [agent for agent, (_, where) in self._panes.items() if where == window]
        count = len(agents) - (HUMAN in agents)
        if count > 0:
            self._tell(f"select-layout -t {window} {layout(count, size, has_human=HUMAN in agents)}")

    # --- to tmux ---------------------------------------------------------------------------------

    def _show(self, agent: str) -> None:
        word = self._states.get(agent)
        if word is None or self._shown.get(agent) == word:
            return
        self._shown[agent] = word
        self._tell(f"set-option -p -t {self._panes[agent][0]} @csp_state '{word}'")

    def _tell(self, command: str) -> None:
        stream = self._process.stdin if self._process else None
        if stream is not None and not stream.is_closing():
            stream.write(f"{command}\n".encode())
