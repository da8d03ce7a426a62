"""Match the text in a CLI's own record with the prompt that asked for it.

Readers of transcripts or hooks turn each CLI's record into items; the tracker turns items into outcomes. A
reply belongs to the prompt before it. A prompt that starts with our header has the id in that header as its
tag. Any other prompt was typed by a person in the pane, and its reply has no tag.
"""

from typing import Final, assert_never

import msgspec

from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.prompt_builder import tag_in, tags_in

#: Number of line ids and prompt tags that are remembered, to ignore repeated ones.
REMEMBERED: Final = 1024

_BLANK_LINE: Final = "\n\n"


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI has a session, so it is past its start-up screens."""


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI is working on either a prompt or a compaction; it is not known which."""


class Reopened(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI is working on its last prompt again, because one of the user's hooks rejected its end."""


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI has accepted a prompt from its composer, which will soon be in its record."""

    text: str


class Prompted(msgspec.Struct, frozen=True, kw_only=True):
    """The record contains a prompt."""

    id: str
    text: str


class Attached(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI has attached a file, or something else that a text can name, to the last prompt."""

    id: str
    path: str


class Bypassed(msgspec.Struct, frozen=True, kw_only=True):
    """The model wrote to another session of its CLI, bypassing the room."""

    id: str
    to: str


class Wrote(msgspec.Struct, frozen=True, kw_only=True):
    """One complete block of the model's text."""

    id: str
    text: str


class ToolCalled(msgspec.Struct, frozen=True, kw_only=True):
    """The model called a tool, which may not be permitted to run.

    `command` is the whole command line, if the tool runs one and nothing else in the call changes its effect.
    """

    id: str
    tool: str
    arguments: str
    command: str = ""


class Using(msgspec.Struct, frozen=True, kw_only=True):
    """A tool is about to run; the record will mention it only after it has run."""

    id: str


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """A tool has run or was refused, so its permission request is answered.

    `ending` says how it ended, such as `exit 1`, where the CLI tells.
    """

    id: str
    is_refused: bool = False
    ending: str = ""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI asks a person for permission to run a tool; `command` is the whole command line, if any."""

    tool: str
    arguments: str
    command: str = ""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """The token usage of one of the model's answers.

    A repeated id replaces the earlier count, unless it was counted in an earlier turn.
    """

    id: str
    usage: Usage


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI is idle again; `text` is the reason and `until` the end of a limit, both in the CLI's words."""

    how: Ending = Ending.DONE
    text: str = ""
    until: str | None = None


class Switched(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI continues in another record: a cleared, resumed or new session."""

    session: str
    path: str


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """The CLI itself reports that it has accepted our prompt; emitted once for each tag."""

    tag: str


class CapturedActivity(msgspec.Struct, frozen=True, kw_only=True):
    """Text from the middle of a turn, possibly empty, with the tool call that followed it."""

    id: str
    text: str
    tag: str | None
    tool: str = ""
    arguments: str = ""


class CapturedReply(msgspec.Struct, frozen=True, kw_only=True):
    """All text of a turn after its last tool call; `also` has the tags of other prompts answered with it."""

    id: str
    text: str
    tag: str | None
    how: Ending = Ending.DONE
    usage: Usage | None = None
    also: tuple[str, ...] = ()
    reason: str = ""
    until: str | None = None


class TurnState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the CLI is working; emitted at each change."""

    is_open: bool


Item = (
    Started
    | Opened
    | Reopened
    | Submitted
    | Prompted
    | Attached
    | Bypassed
    | Wrote
    | ToolCalled
    | Using
    | Returned
    | Asked
    | Counted
    | Ended
    | Switched
)
#: Some items pass through the tracker unchanged, so they are also outcomes.
Outcome = (
    Confirmed
    | CapturedActivity
    | CapturedReply
    | TurnState
    | Started
    | Returned
    | Asked
    | Switched
    | Attached
    | Bypassed
)


class _Prompt(msgspec.Struct, array_like=True):
    id: str
    tag: str | None


class _Block(msgspec.Struct, array_like=True):
    id: str
    text: str


class _State(msgspec.Struct, omit_defaults=True):
    is_open: bool = False
    is_running: bool = False
    #: Prompts of the running turn, or else of the last one: a hook may send the CLI back to work on it.
    prompts: list[_Prompt] = []
    #: Tags (None for a person's prompt) that the CLI has accepted but not yet recorded.
    awaited: list[str | None] = []
    blocks: list[_Block] = []
    counted: dict[str, Usage] = {}
    #: Tool calls that have not returned, and the command lines of those that run one.
    calls: list[str] = []
    commands: dict[str, str] = {}
    replies: int = 0
    confirmed: dict[str, None] = {}
    seen: dict[str, None] = {}
    #: Answers whose tokens were counted in earlier turns.
    told: dict[str, None] = {}


class Tracker:
    """A converter of one CLI's items, in order, into outcomes; the same items produce the same ids."""

    def __init__(self) -> None:
        self._state = _State()

    @classmethod
    def load(cls, dumped: bytes) -> "Tracker":
        """Return the tracker from a dump, or an empty one if the dump cannot be read."""
        tracker = cls()
        try:
            tracker._state = msgspec.json.decode(dumped, type=_State)
        except (msgspec.DecodeError, UnicodeDecodeError):
            tracker._state = _State()
        return tracker

    def dump(self) -> bytes:
        """Return the whole state as JSON, for a tracker that takes over."""
        return msgspec.json.encode(self._state)

    @property
    def is_open(self) -> bool:
        return self._state.is_open

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Return the tags of our last prompts that the CLI has accepted."""
        return tuple(self._state.confirmed)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags of our prompts that the CLI is working on or about to work on."""
        prompts = self._state.prompts if self._state.is_running else []
        known = [prompt.tag for prompt in prompts] + self._state.awaited
        return tuple(tag for tag in known if tag is not None)

    @property
    def usage(self) -> Usage | None:
        """Return the usage of the running turn so far, or None if it is unknown."""
        return _sum(list(self._state.counted.values())) if self._state.is_running else None

    @property
    def runs_tool(self) -> bool:
        """Return whether a tool call of the turn has not returned yet."""
        return bool(self._state.calls)

    @property
    def open_command(self) -> str:
        """Return the command line of the only tool call that has not returned; empty if it runs none."""
        calls = self._state.calls
        return self._state.commands.get(calls[0], "") if len(calls) == 1 else ""

    def feed(self, item: Item) -> list[Outcome]:  # noqa: C901  # one case for each kind of item
        """Process one item and return the outcomes."""
        match item:
            case Started() | Asked():
                return [item]
            case Opened():
                return self._open()
            case Reopened():
                self._state.is_running = True
                return self._open()
            case Submitted():
                tags = self._ours(item.text) or (None,)
                self._state.awaited += tags
                return [*(outcome for tag in tags for outcome in self._confirm(tag)), *self._open()]
            case Prompted():
                return self._prompted(item)
            case Attached():
                # Our prompts ask for no files; a person's own prompt may.
                prompts = self._state.prompts
                is_ours = any(prompt.tag for prompt in prompts if prompt.id == prompts[-1].id)
                return [item] if is_ours and self._is_new(item.id) else []
            case Bypassed():
                return [item] if self._is_new(item.id) else []
            case Wrote():
                if item.text.strip() and self._is_new(item.id):
                    self._state.blocks.append(_Block(item.id, item.text))
                return []
            case ToolCalled():
                return self._called(item)
            case Using():
                self._begin_call(item.id)
                return []
            case Returned():
                return self._returned(item)
            case Counted():
                if item.id not in self._state.told:
                    self._state.counted[item.id] = item.usage
                return []
            case Ended():
                return self._ended(item)
            case Switched():
                return self._switched(item)
            case _:
                assert_never(item)

    def _ours(self, text: str) -> tuple[str | None, ...]:
        """Return the tags of our prompts contained in a prompt that the CLI has accepted.

        Except at its start, a prompt accepted earlier is a quotation, unless its record is still missing.
        """
        state, first = self._state, tag_in(text)
        return tuple(
            tag for tag in tags_in(text) if tag == first or tag in state.awaited or tag not in state.confirmed
        )

    def _prompted(self, item: Prompted) -> list[Outcome]:
        if not self._is_new(item.id):
            return []
        state, tags = self._state, self._ours(item.text) or (None,)
        for tag in tags:
            if tag in state.awaited:
                state.awaited.remove(tag)
        left: list[Outcome] = []
        if not state.is_running:
            left = self._flush()
            state.prompts, state.replies = [], 0
            state.is_running = True
        state.prompts += [_Prompt(item.id, tag) for tag in tags]
        return [*left, *(outcome for tag in tags for outcome in self._confirm(tag)), *self._open()]

    def _called(self, item: ToolCalled) -> list[Outcome]:
        if not self._is_new(item.id):
            return []
        self._begin_call(item.id)
        if item.command and item.id in self._state.calls:
            self._state.commands[item.id] = item.command
        tag = self._tags()[0]
        earlier, last = self._state.blocks[:-1], self._state.blocks[-1:] or [_Block(item.id, "")]
        self._state.blocks = []
        return [
            *(CapturedActivity(id=block.id, text=block.text, tag=tag) for block in earlier),
            CapturedActivity(
                id=last[0].id, text=last[0].text, tag=tag, tool=item.tool, arguments=item.arguments
            ),
        ]

    def _begin_call(self, name: str) -> None:
        # A hook may report that a tool has run before the record says that it was called.
        if _returned(name) not in self._state.seen:
            self._state.calls.append(name)

    def _returned(self, item: Returned) -> list[Outcome]:
        if item.id in self._state.calls:
            self._state.calls.remove(item.id)
        self._state.commands.pop(item.id, None)
        return [item] if self._is_new(_returned(item.id)) else []

    def _ended(self, item: Ended) -> list[Outcome]:
        state = self._state
        state.calls, state.commands = [], {}
        if not state.is_running and state.awaited:
            # The CLI accepted prompts but recorded none of them: those have ended now.
            state.prompts = [_Prompt(f"#{tag}", tag) for tag in state.awaited if tag is not None]
            state.is_running, state.awaited, state.replies = bool(state.prompts), [], 0
        replies: list[Outcome] = [self._reply(item)] if state.is_running or state.blocks else []
        self._forget_counts()
        state.is_running, state.blocks = False, []
        return [*replies, *([] if state.awaited else self._close())]

    def _reply(self, item: Ended) -> CapturedReply:
        state = self._state
        state.replies += 1
        tag, also = self._tags()
        prompt = state.prompts[-1].id if state.prompts else state.blocks[-1].id if state.blocks else ""
        return CapturedReply(
            id=prompt if state.replies == 1 else f"{prompt}.{state.replies}",
            text=_BLANK_LINE.join(block.text for block in state.blocks),
            tag=tag,
            also=also,
            how=item.how,
            usage=_sum(list(state.counted.values())),
            reason=item.text,
            until=item.until,
        )

    def _switched(self, item: Switched) -> list[Outcome]:
        state = self._state
        ended = self._ended(Ended(how=Ending.INTERRUPTED)) if self.tags else self._flush()
        self._forget_counts()
        state.prompts, state.awaited, state.replies = [], [], 0
        state.is_running, state.calls, state.commands = False, [], {}
        return [*ended, *self._close(), item]

    def _forget_counts(self) -> None:
        """Reset the count: usage of one turn must not count for another."""
        for name in self._state.counted:
            _remember(self._state.told, name)
        self._state.counted = {}

    def _flush(self) -> list[Outcome]:
        """Return text that arrived after the end of its turn."""
        tag, blocks = self._tags()[0], self._state.blocks
        self._state.blocks = []
        return [CapturedActivity(id=block.id, text=block.text, tag=tag) for block in blocks]

    def _tags(self) -> tuple[str | None, tuple[str, ...]]:
        """Return the tag that the turn's text belongs to, which is our last one, and the other tags."""
        tags = [prompt.tag for prompt in self._state.prompts if prompt.tag is not None]
        return (tags[-1], tuple(tags[:-1])) if tags else (None, ())

    def _confirm(self, tag: str | None) -> list[Outcome]:
        if tag is None or tag in self._state.confirmed:
            return []
        _remember(self._state.confirmed, tag)
        return [Confirmed(tag=tag)]

    def _open(self) -> list[Outcome]:
        was_open, self._state.is_open = self._state.is_open, True
        return [] if was_open else [TurnState(is_open=True)]

    def _close(self) -> list[Outcome]:
        was_open, self._state.is_open = self._state.is_open, False
        return [TurnState(is_open=False)] if was_open else []

    def _is_new(self, name: str) -> bool:
        if name in self._state.seen:
            return False
        _remember(self._state.seen, name)
        return True


def _returned(name: str) -> str:
    return f"returned {name}"


def _remember(names: dict[str, None], name: str) -> None:
    names[name] = None
    if len(names) > REMEMBERED:
        del names[next(iter(names))]


def _sum(counted: list[Usage]) -> Usage | None:
    if not counted:
        return None
    # Calls of subagents have a context of their own, so they do not state one.
    last = next((usage for usage in reversed(counted) if usage.context), Usage())
    return Usage(
        input=sum(usage.input for usage in counted),
        output=sum(usage.output for usage in counted),
        cache_read=sum(usage.cache_read for usage in counted),
        cache_write=sum(usage.cache_write for usage in counted),
        reasoning=sum(usage.reasoning for usage in counted),
        model=next((usage.model for usage in reversed(counted) if usage.model), None),
        calls=len(counted),
        context=last.context,
        window=last.window,
    )
