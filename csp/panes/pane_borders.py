"""Show agent states in the pane borders and the mode in the status line.

One tmux client in control mode is kept open as long as states are shown, so that no process is
started to change them. The same client updates the layout when the window is resized.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Final

from csp.fast_start.child_environment import HELPER, child_environment
from csp.fast_start.process_environment import process_environment
from csp.terminal.pane_layout import (
    Cell,
    LayoutForm,
    LayoutName,
    Size,
    capacity,
    default_form,
    human_cell,
    layout,
)

#: Set in the environment of our panes; shows `down` that a sidecar runs in one of them.
MARK: Final = "CSP_PANES"
HUMAN: Final = "human"

#: The word alone is sufficient; colour only helps to spot agents that need attention, work or are away.
_CALLS: Final = "#{m/r:^needs,#{@csp_state}}"
_WORKS: Final = "#{m/r:^(busy|YOUR TURN)$,#{@csp_state}}"
_AWAY: Final = "#{m/r:^(offline|removed|paused|limited|benched)$,#{@csp_state}}"
_WORD_SHOWN: Final = "[#{@csp_state}]"


def _styled(is_so: str, style: str, otherwise: str) -> str:
    # Resetting a style that was not set makes tmux 3.3 draw the next space as border.
    return f"#{{?{is_so},#[{style}]{_WORD_SHOWN}#[default],{otherwise}}}"


_STATE: Final = _styled(
    _CALLS, "fg=red bold", _styled(_WORKS, "fg=yellow bold", _styled(_AWAY, "dim", _WORD_SHOWN))
)
_BORDER: Final = (
    f" #{{?@csp_role,#{{@csp_agent}} (#{{@csp_role}}),#{{@csp_agent}}}}#{{?@csp_state, {_STATE},}} "
)
#: The options set on our windows.
WINDOW_OPTIONS: Final = (
    ("remain-on-exit", "on"),
    ("pane-border-status", "top"),
    ("pane-border-format", _BORDER),
    ("automatic-rename", "off"),
    ("allow-rename", "off"),
    ("window-size", "latest"),
)
#: The time left in the current turn. tmux provides the time of day as %s in its status line.
_LEFT_S: Final = "#{e|-:#{@csp_until},%s}"
_SECONDS: Final = f"#{{e|m:{_LEFT_S},60}}"
_CLOCK: Final = (
    f"#{{?#{{e|>:{_LEFT_S},0}},#{{e|/:{_LEFT_S},60}}:#{{?#{{e|<:{_SECONDS},10}},0,}}{_SECONDS},0:00}}"
)
#: The mode and its turn clock, placed before the rest of the right side of the status line.
MODE_STATUS: Final = f"#{{?@csp_mode,#{{@csp_mode}}#{{?@csp_until, {_CLOCK},}} | ,}}"
#: The options of our windows without the human pane. tmux names them after their agent.
FURTHER: Final = "@csp_further"
FURTHER_OPTIONS: Final = (
    (FURTHER, "1"),
    ("automatic-rename-format", "#{?#{==:#{window_panes},1},#{@csp_agent},agents}"),
    ("automatic-rename", "on"),
)

_FORM: Final = (
    "#{pane_id} #{window_id} #{window_width} #{window_height} #{?@csp_agent,#{@csp_agent},-}"
    f" #{{@csp_layout}}:#{{@csp_share}} #{{?{FURTHER},further,first}}"
)
_LIST: Final = f"list-panes -s -F '{_FORM}'"
#: A window that has lost its active pane must not lose its last one before tmux has notified control clients
#: of the first loss: otherwise tmux 3.3 crashes, with all of the user's sessions.
_LET_TMUX_TELL: Final = "run-shell -d 0.02"
#: Printed by tmux once panes have been moved; earlier notifications about them are outdated.
_MOVED: Final = "csp-panes-moved"
#: Printed by tmux once a window has its new layout.
_LAID_OUT: Final = "csp-laid-out"
_CHANGED: Final = re.compile(r"%layout-change (@\d+) ([0-9a-f]{4},(\d+)x(\d+),\S+) \S+ ?(\S*)")
_PANE: Final = re.compile(r"(%\d+) (@\d+) (\d+) (\d+) (\S+) (\w*:\d*) (further|first)")
_WORD: Final = re.compile(r"[^A-Za-z0-9_ :.-]")
_NO_FORMAT: Final = re.compile(r"['#\x00-\x1f\x7f]")
_REMOVED: Final = "removed"
_CLOSE_S: Final = 1.0
_AGAIN_S: Final = 1.0


def read_form(text: str) -> LayoutForm:
    """Return the layout form from the session's options, with defaults for missing ones."""
    name, _, share = text.replace(":", " ").partition(" ")
    usual = default_form(Size(cols=1, rows=1), LayoutName(name) if name in set(LayoutName) else None)
    return LayoutForm(usual.name, int(share)) if share.isdigit() else usual


def resize_hook(human: str, form: LayoutForm) -> str:
    """Return the tmux command that resizes the human pane with its window, even if no chat runs in it."""
    flag = "-x" if form.name is LayoutName.LEFT else "-y"
    return f"if-shell -F '#{{window_zoomed_flag}}' '' {{ resize-pane -t {human} {flag} {form.share // 10}% }}"


def _as_word(text: str) -> str:
    """Quote a tmux command that itself contains quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'


class PaneBorders:
    """The borders of the panes around us; outside a room's tmux session, nothing is shown.

    `set_state` returns immediately and never fails, because a border is not worth an error.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._pane = env.get("TMUX_PANE", "") if env.get(MARK) else ""
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._states: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._panes: dict[str, tuple[str, str]] = {}
        #: The agents in our windows without the human pane, in window order.
        self._outside: dict[str, None] = {}
        self._mode: tuple[str, float | None] = "", None
        self._shown_mode: tuple[str, float | None] | None = None
        self._sizes: dict[str, Size] = {}
        self._moves = 0
        self._layouts = 0
        #: The layout form of the windows, as reported by tmux or chosen by a user.
        self.form = default_form(Size(cols=1, rows=1))

    async def start(self) -> None:
        """Connect to tmux; do nothing outside it."""
        if not self._pane or self._process is not None:
            return
        self._process = await self._connect()
        self._reading = asyncio.ensure_future(self._read())

    async def _connect(self) -> asyncio.subprocess.Process | None:
        try:
            process = await asyncio.create_subprocess_exec(
                *("tmux", "-C", "attach-session", "-t", self._pane, "-f", "no-output,ignore-size"),
                env=child_environment(HELPER, process_environment()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                # Ctrl-C in the pane must not reach it.
                start_new_session=True,
            )
        except OSError:
            return None
        if process.stdin is not None:
            process.stdin.write(f"{_LIST}\n".encode())
        return process

    def set_state(self, agent: str, word: str) -> None:
        """Show the state of an agent, as soon as it has a pane."""
        self._states[agent] = _WORD.sub("", word).replace("_", " ")
        if agent in self._panes:
            self._show(agent)
        else:
            self._tell(_LIST)

    def set_states(self, words: Mapping[str, str]) -> None:
        """Show the states of all agents in the room; mark removed ones."""
        gone = dict.fromkeys(self._states.keys() - words.keys(), _REMOVED)
        for agent, word in {**words, **gone}.items():
            self.set_state(agent, word)

    def set_mode(self, text: str, until: float | None) -> None:
        """Show the mode and the time left in its turn in the status line; empty text shows nothing."""
        self._mode = _NO_FORMAT.sub("", text), until if text else None
        self._show_mode()

    def _show_mode(self) -> None:
        if self._mode == self._shown_mode:
            return
        self._shown_mode = text, until = self._mode
        self._tell(f"set-option -t {self._pane} @csp_mode '{text}'")
        self._tell(f"set-option -t {self._pane} @csp_until '{'' if until is None else int(until)}'")
        # tmux updates the clock and redraws only the status line.
        unset, every_s = ("-u", "") if until is None else ("", "1")
        self._tell(f"set-option {unset} -t {self._pane} status-interval {every_s}")

    async def close(self) -> None:
        """Disconnect from tmux; keep the borders but remove the mode, because nobody updates it."""
        if self._panes.get(HUMAN, ("", ""))[0] == self._pane:
            self.set_mode("", None)
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
        """Read notifications from tmux until it ends."""
        stream = self._process.stdout if self._process else None
        while stream is not None:
            try:
                line = await stream.readline()
            except (ValueError, OSError):
                continue  # an overlong line is not one of ours
            if not line:
                await self._come_back()
                stream = self._process.stdout if self._process else None
                continue
            self._take(line.decode(errors="replace").rstrip("\n"))

    async def _come_back(self) -> None:
        """Reconnect if all clients of the session were detached; stop if the session is gone."""
        await asyncio.sleep(_AGAIN_S)
        self._shown.clear()
        self._panes.clear()
        self._outside.clear()
        self._moves = self._layouts = 0
        if self._process is not None:
            await self._process.wait()
            self._process = await self._connect()
            self._shown_mode = None
            self._show_mode()

    def _take(self, line: str) -> None:
        if line == _MOVED:
            self._moves -= 1
        elif line == _LAID_OUT:
            self._layouts -= 1
        elif self._moves and not line.startswith("%layout-change"):
            pass
        elif found := _PANE.fullmatch(line):
            self._take_pane(*found.groups())
        elif changed := _CHANGED.match(line):
            window, text, cols, rows, flags = changed.groups()
            self._arrange(window, Size(cols=int(cols), rows=int(rows)), text, is_zoomed="Z" in flags)
        elif line.startswith(("%window-add", "%unlinked-window-add")):
            self._tell(_LIST)
        elif line.startswith("%end"):
            # Windows that became too full before we connected.
            for window, size in self._sizes.items():
                agents, has_human = self._agents_in(window)
                if len(agents) > capacity(size, self.form, has_human=has_human):
                    self._lay_out(window, size)

    def _take_pane(
        self, pane: str, window: str, cols: str, rows: str, agent: str, form: str, place: str
    ) -> None:
        self.form = read_form(form)
        self._sizes.setdefault(window, Size(cols=int(cols), rows=int(rows)))
        if agent != "-":
            is_new = self._panes.get(agent) != (pane, window)
            self._outside.pop(agent, None)
            if place == "further":
                self._outside[agent] = None
            self._panes[agent] = pane, window
            if is_new:
                self._shown.pop(agent, None)
            self._show(agent)

    def _arrange(self, window: str, size: Size, text: str, *, is_zoomed: bool) -> None:
        """Update a window's layout if its size changed; otherwise keep the user's changes."""
        before = self._sizes.get(window)
        if is_zoomed:
            return
        self._sizes[window] = size
        if before == size:
            self._keep_share(window, size, text)
        elif before is not None:
            self._lay_out(window, size)
            # Until then, notifications from tmux are about changes made by tmux and by us.
            self._layouts += 1
            self._tell(f"display-message -p {_LAID_OUT}")

    def _keep_share(self, window: str, size: Size, text: str) -> None:
        """Remember the share of the window that a user has given to the human pane, for later resizes."""
        agents, has_human = self._agents_in(window)
        if not has_human or not agents or self._moves or self._layouts:
            return
        human = human_cell(text)
        if human in (self.form.human(size), Cell(cols=size.cols, rows=size.rows)):
            return
        form = LayoutForm(LayoutName.TOP if human.cols == size.cols else LayoutName.LEFT, 0)
        self._set_form(LayoutForm(form.name, form.share_of(human, size)))

    def _set_form(self, form: LayoutForm) -> None:
        self.form = form
        self._tell(f"set-option -t {self._pane} @csp_layout {form.name}")
        self._tell(f"set-option -t {self._pane} @csp_share {form.share}")
        if HUMAN in self._panes:
            pane, window = self._panes[HUMAN]
            self._tell(f"set-hook -w -t {window} window-resized {_as_word(resize_hook(pane, form))}")

    def choose(self, name: LayoutName) -> None:
        """Change the layout form of the windows, with the default share for the human pane."""
        self._set_form(default_form(Size(cols=1, rows=1), name))
        if HUMAN in self._panes:
            _, window = self._panes[HUMAN]
            self._lay_out(window, self._sizes[window])
            self._layouts += 1
            self._tell(f"display-message -p {_LAID_OUT}")

    def _agents_in(self, window: str) -> tuple[list[str], bool]:
        there = [agent for agent, (_, where) in self._panes.items() if where == window]
        return [agent for agent in there if agent != HUMAN], HUMAN in there

    def _lay_out(self, window: str, size: Size) -> None:
        agents, has_human = self._agents_in(window)
        most = capacity(size, self.form, has_human=has_human)
        for agent in agents[most:]:
            # Into its own window, because there is no usable space left.
            pane, _ = self._panes.pop(agent)
            self._tell(f"break-pane -d -n {agent} -s {pane}")
            for name, value in (*WINDOW_OPTIONS, *FURTHER_OPTIONS):
                self._tell(f"set-option -w -t {pane} {name} '{value}'")
        self._select_layout(window, size)
        missing = list(self._outside)[: max(0, most - len(agents))] if has_human else []
        for agent in missing:
            # Back to the window of the human pane, which has space again.
            pane, _ = self._panes.pop(agent)
            last = [pane for pane, where in self._panes.values() if where == window][-1]
            self._tell(f"join-pane -d -s {pane} -t {last}")
            self._tell(_LET_TMUX_TELL)
            self._outside.pop(agent)
            self._panes[agent] = pane, window
            # Each needs a pane that is large enough to split.
            self._select_layout(window, size)
        if missing or len(agents) > most:
            self._moves += 1
            self._tell(f"display-message -p {_MOVED}")
            self._tell(_LIST)

    def _select_layout(self, window: str, size: Size) -> None:
        agents, has_human = self._agents_in(window)
        if agents:
            # Unquoted, its braces would be parsed as a block of commands.
            text = layout(len(agents), size, self.form, has_human=has_human)
            self._tell(f"select-layout -t {window} '{text}'")

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
