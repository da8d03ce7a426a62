"""Show what each agent does in the border of its pane.

One tmux client in control mode is held for as long as somebody wants to show states, so that no process is
started for a change of them. The same client lays the panes out anew when the window changes its size.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Final

from csp.core.layout import Size, capacity, layout

#: In the environment of our panes; says to `down` that a sidecar sits in one of them.
MARK: Final = "CSP_PANES"
HUMAN: Final = "human"

_BORDER: Final = " #{?@csp_role,#{@csp_agent} (#{@csp_role}),#{@csp_agent}}#{?@csp_state, [#{@csp_state}],} "
#: What each window of ours is set to.
WINDOW_OPTIONS: Final = (
    ("remain-on-exit", "on"),
    ("pane-border-status", "top"),
    ("pane-border-format", _BORDER),
    ("automatic-rename", "off"),
    ("allow-rename", "off"),
    ("window-size", "latest"),
)
_FORM: Final = "#{pane_id} #{window_id} #{window_width} #{window_height} #{?@csp_agent,#{@csp_agent},-}"
_LIST: Final = f"list-panes -s -F '{_FORM}'"
_CHANGED: Final = re.compile(r"%layout-change (@\d+) [0-9a-f]{4},(\d+)x(\d+),\S+ \S+ ?(\S*)")
_PANE: Final = re.compile(r"(%\d+) (@\d+) (\d+) (\d+) (\S+)")
_WORD: Final = re.compile(r"[^a-z0-9_ :.-]")
_CLOSE_S: Final = 1.0
_AGAIN_S: Final = 1.0


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
        self._process = await self._connect()
        self._reading = asyncio.ensure_future(self._read())

    async def _connect(self) -> asyncio.subprocess.Process | None:
        try:
            process = await asyncio.create_subprocess_exec(
                *("tmux", "-C", "attach-session", "-t", self._pane, "-f", "no-output,ignore-size"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                # Ctrl-C in the pane is not meant for it.
                start_new_session=True,
            )
        except OSError:
            return None
        if process.stdin is not None:
            process.stdin.write(f"{_LIST}\n".encode())
        return process

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
                await self._come_back()
                stream = self._process.stdout if self._process else None
                continue
            self._take(line.decode(errors="replace").rstrip("\n"))

    async def _come_back(self) -> None:
        """Connect again: somebody has detached every client of the session, or the session is gone."""
        await asyncio.sleep(_AGAIN_S)
        self._shown.clear()
        self._panes.clear()
        if self._process is not None:
            await self._process.wait()
            self._process = await self._connect()

    def _take(self, line: str) -> None:
        if found := _PANE.fullmatch(line):
            pane, window, cols, rows, agent = found.groups()
            self._sizes.setdefault(window, Size(cols=int(cols), rows=int(rows)))
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
        elif line.startswith("%end"):
            self._relieve()

    def _arrange(self, window: str, size: Size, *, is_zoomed: bool) -> None:
        """Lay a window out anew if its size is another one; what a person has dragged stays otherwise."""
        before = self._sizes.get(window)
        if is_zoomed:
            return
        self._sizes[window] = size
        if before not in (None, size):
            self._lay_out(window, size)

    def _relieve(self) -> None:
        """Lay out anew what had become too full before anybody looked."""
        for window, size in self._sizes.items():
            agents, has_human = self._agents_in(window)
            if len(agents) > capacity(size, has_human=has_human):
                self._lay_out(window, size)

    def _agents_in(self, window: str) -> tuple[list[str], bool]:
        there = [agent for agent, (_, where) in self._panes.items() if where == window]
        return [agent for agent in there if agent != HUMAN], HUMAN in there

    def _lay_out(self, window: str, size: Size) -> None:
        agents, has_human = self._agents_in(window)
        count = min(len(agents), capacity(size, has_human=has_human))
        for agent in agents[count:]:
            self._move_out(agent)
        if count > 0:
            # Unquoted, its braces would be taken for a block of commands.
            self._tell(f"select-layout -t {window} '{layout(count, size, has_human=has_human)}'")

    def _move_out(self, agent: str) -> None:
        """Give an agent a window of its own, where there is no place left that it could be used in."""
        pane, _ = self._panes.pop(agent)
        self._tell(f"break-pane -d -n agents -s {pane}")
        for name, value in WINDOW_OPTIONS:
            self._tell(f"set-option -w -t {pane} {name} '{value}'")
        self._tell(_LIST)

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
