"""Read the transcript and hook events of Claude Code.

The transcript is authoritative, but hooks are faster. Claude writes the transcript 0.1 s late, so a Stop hook
may arrive before the last lines of its turn; the end of the turn then waits for them. The first lines of a
session may even be in the wrong order; each names its predecessor and waits for it.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.transcript_reader import Line, TranscriptReader, decoded, failed, seconds
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal import reply_tracker as tracker

#: How long the end of a turn waits for its lines, and a line for its predecessor.
WAIT_S: Final = 3.0
_INTERRUPTED: Final = "[Request interrupted by user"
_REJECTED: Final = b'"User rejected tool use"'
_BLOCKED: Final = b'"UserPromptSubmit operation blocked'
_ORIGINAL: Final = "Original prompt: "
_FEEDBACK: Final = "Stop hook feedback"
_RATE_LIMIT: Final = "rate_limit"
_SHELL_TOOL: Final = "Bash"
#: The number of characters of a failed tool's output that are searched for its exit code.
_TOLD: Final = 200
_EXIT_CODE: Final = re.compile(r"\bExit code (\d+)")
_SYNTHETIC: Final = "<synthetic>"
_UNSAID: Final = "No response requested."
_NOTHING: Final = msgspec.Raw(b"{}")
#: Prefixes of lines from the harness itself that appear as user messages.
_HARNESS: Final = ("<local-command", "<bash-stdout", "<bash-stderr", "<system-reminder")
#: Prefixes of lines that are not prompts, although the model may answer them.
_COMMANDS: Final = ("<command-", "<bash-input", "<task-notification")
_REMEMBERED: Final = 512
#: The attachments that Claude adds to a prompt because its text names them after an `@`.
_MENTIONS: Final = frozenset(
    (
        *("file", "already_read_file", "at_mention_reference", "pdf_reference", "directory"),
        *("mcp_resource", "agent_mention", "peer_mention", "skill_mention"),
    )
)
#: The tool that writes to another agent: one in this session or another session on the machine.
_SEND: Final = "SendMessage"
_DELEGATE: Final = ("Agent", "Task")
#: The name that this tool uses for the agent that started the current one.
_MAIN: Final = "main"


class _ShellInput(msgspec.Struct, forbid_unknown_fields=True):
    """The input of the shell tool; any additional field may change the effect of its command."""

    command: str = ""
    description: str = ""
    timeout: float | None = None
    run_in_background: bool = False


class _Tokens(msgspec.Struct):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class _Part(msgspec.Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = _NOTHING
    tool_use_id: str = ""
    content: msgspec.Raw = _NOTHING
    is_error: bool = False


class _Message(msgspec.Struct):
    id: str = ""
    model: str = ""
    content: str | list[_Part] = ""
    stop_reason: str | None = None
    usage: _Tokens | None = None

    @property
    def parts(self) -> list[_Part]:
        return [_Part(type="text", text=self.content)] if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if part.type == "text")


class _Attachment(msgspec.Struct):
    type: str = ""
    prompt: str | list[_Part] = ""
    commandMode: str = "prompt"
    filename: str = ""
    path: str = ""
    uri: str = ""
    agentType: str = ""

    @property
    def name(self) -> str:
        return self.filename or self.path or self.uri or self.agentType or self.type


class _OtherAgent(msgspec.Struct):
    """A tool's data about another agent: its given name, its id or the recipient of a text."""

    name: str = ""
    agentId: str = ""
    to: str = ""


class _Record(msgspec.Struct):
    type: str = ""
    subtype: str = ""
    uuid: str = ""
    parentUuid: str | None = None
    promptId: str = ""
    promptSource: str | None = None
    timestamp: str = ""
    isSidechain: bool = False
    isMeta: bool = False
    isCompactSummary: bool = False
    isApiErrorMessage: bool = False
    error: str | None = None
    toolUseResult: msgspec.Raw = _NOTHING
    content: msgspec.Raw = _NOTHING
    message: _Message | None = None
    attachment: _Attachment | None = None


class _Stop(msgspec.Struct):
    """An end reported by a hook that waits for the transcript."""

    prompt_id: str
    text: str
    how: Ending
    due: float


class _State(msgspec.Struct):
    since: float
    session: str = ""
    path: str = ""
    prompt_id: str = ""
    is_ended: bool = True
    #: Ids of the lines of this turn; an end whose parent is not among them belongs to another turn.
    uuids: list[str] = []
    last_text: str | None = None
    last_stop: str | None = None
    #: A slash command, which counts as a prompt only if the model answers it.
    command: tuple[str, str, str] | None = None
    stop: _Stop | None = None
    ended: dict[str, None] = {}
    seen: dict[str, None] = {}
    #: Lines that arrived before their predecessor, each with the time until which it waits.
    parked: list[tuple[float, _Record]] = []
    #: The prompt whose end one of the user's hooks rejected; its first Stop hook is ignored.
    reopened: str = ""
    #: Text that was posted from a hook because its line did not arrive, and the prompt that it answers.
    forestalled: str | None = None
    forestalled_of: str = ""
    #: The prompt whose end only its hook reported, because not even its own line had arrived.
    told: str = ""
    #: Whether the last line was a prompt, so that attachments belong to it.
    is_prompted: bool = False
    #: The names and ids of the agents in this session.
    agents: dict[str, None] = {}


class ClaudeReader(TranscriptReader):
    """A reader of one run of Claude Code with all its sessions."""

    _state: _State

    def __init__(self, since: float, session: str = "", path: str = "") -> None:
        self._state = _State(since=since, session=session, path=path)

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[tracker.Item]:
        items: list[tracker.Item] = []
        left = list(lines)
        for group in self._by_session(events):
            for event in group:
                items += self._before(event)
            for line in left:
                items += self._line(line, now)
            for event in group:
                items += self._after(event.hook, now)
            left = []
        return [*items, *self._unpark(now), *self._expire(now)]

    def _by_session(self, events: Sequence[HookEvent]) -> Iterator[list[HookEvent]]:
        """Split events where the session changes; the lines of the batch belong to the first part."""
        group: list[HookEvent] = []
        path = self._state.path
        for event in events:
            if event.hook.transcript_path and event.hook.transcript_path != path:
                if path:
                    yield group
                    group = []
                path = event.hook.transcript_path
            group.append(event)
        yield group

    def end(self) -> None:
        list(self._end(tracker.Ended()))

    def due(self) -> float | None:
        waiting = [due for due, _ in self._state.parked]
        return min([*waiting, self._state.stop.due] if self._state.stop else waiting, default=None)

    def _before(self, event: HookEvent) -> Iterator[tracker.Item]:
        """Process the part of a hook event that precedes the lines of its batch."""
        hook, state = event.hook, self._state
        if hook.agent_id or not hook.transcript_path:
            return
        if hook.transcript_path != state.path:
            is_first = not state.path
            yield from self._unpark(math.inf)
            yield from self._expire(math.inf)
            state.session, state.path = hook.session_id, hook.transcript_path
            # A resumed transcript begins with the earlier conversation.
            state.since = state.since if is_first else event.at - 0.2
            state.is_ended, state.stop, state.command = True, None, None
            yield tracker.Switched(session=state.session, path=state.path)
        if hook.hook_event_name == "SessionStart" and hook.source != "compact":
            yield tracker.Started()
        is_known = hook.prompt_id and (hook.prompt_id in state.ended or hook.prompt_id == state.prompt_id)
        if hook.hook_event_name == "UserPromptSubmit" and not is_known:
            yield tracker.Submitted(text=hook.prompt)

    def _after(self, hook: Hook, now: float) -> Iterator[tracker.Item]:
        match hook.hook_event_name:
            case "PermissionRequest":
                shell = decoded(hook.tool_input, _ShellInput) if hook.tool_name == _SHELL_TOOL else None
                yield tracker.Asked(
                    tool=hook.tool_name,
                    arguments=bytes(hook.tool_input).decode(),
                    command=shell.command if shell else "",
                )
            case "PostToolUse":
                ending = "exit 0" if hook.tool_name == _SHELL_TOOL else ""
                yield tracker.Returned(id=hook.tool_use_id, ending=ending)
            case "PostToolUseFailure":
                yield tracker.Returned(id=hook.tool_use_id, ending=_failure(hook.error or ""))
            case "Stop" if not hook.agent_id:
                yield from self._stop(hook, Ending.DONE, now)
            case "StopFailure" if not hook.agent_id:
                how = Ending.LIMITED if hook.error == _RATE_LIMIT else Ending.FAILED
                yield from self._stop(hook, how, now)

    def _stop(self, hook: Hook, how: Ending, now: float) -> Iterator[tracker.Item]:
        state = self._state
        is_old = hook.prompt_id == state.reopened and not hook.stop_hook_active
        if hook.prompt_id in state.ended or is_old:
            return
        if state.stop and state.stop.prompt_id != hook.prompt_id:
            yield from self._expire(math.inf)
        text = (hook.last_assistant_message or "").strip()
        state.stop = _Stop(hook.prompt_id, text, how, now + WAIT_S)
        yield from self._match()

    def _match(self) -> Iterator[tracker.Item]:
        """End the turn if its Stop hook has arrived and its last text is in the transcript."""
        state = self._state
        stop = state.stop
        if stop is None or stop.prompt_id != state.prompt_id or stop.how is not Ending.DONE:
            return
        if (state.last_text or "").strip() == stop.text:
            yield from self._end(tracker.Ended(how=stop.how))

    def _expire(self, now: float) -> Iterator[tracker.Item]:
        state = self._state
        stop = state.stop
        if stop is None or now < stop.due:
            return
        state.stop = None
        is_failed = stop.how is not Ending.DONE
        is_missing = stop.prompt_id != state.prompt_id or (state.last_text or "").strip() != stop.text
        if is_missing and stop.text and not is_failed:
            state.forestalled, state.forestalled_of = stop.text, stop.prompt_id
            yield tracker.Wrote(id=f"{stop.prompt_id}:last", text=stop.text)
        if stop.prompt_id != state.prompt_id:
            state.told = stop.prompt_id
        _remember(state.ended, stop.prompt_id)
        is_limit = stop.how is Ending.LIMITED
        yield from self._end(failed(stop.text, is_limit=is_limit) if is_failed else tracker.Ended())

    def _end(self, ended: tracker.Ended) -> Iterator[tracker.Item]:
        state = self._state
        _remember(state.ended, state.prompt_id)
        if state.stop and state.stop.prompt_id == state.prompt_id:
            state.stop = None
        state.is_ended = True
        yield ended

    def _line(self, line: Line, now: float) -> Iterator[tracker.Item]:
        record = decoded(line.data, _Record)
        if record is None:
            return
        message, is_old = record.message, seconds(record.timestamp) < self._state.since
        if line.is_side or (record.isSidechain and line.path == self._state.path):
            # Count the usage of a subagent, but not its text, which is only for Claude.
            if message and not is_old:
                yield from _counted(record, message, is_side=True)
            return
        if line.path != self._state.path or record.uuid in self._state.seen:
            return
        if is_old:
            _remember(self._state.seen, record.uuid)
        elif record.parentUuid is None or record.parentUuid in self._state.seen:
            yield from self._record(record)
            yield from self._unpark(now)
        else:
            self._state.parked.append((now + WAIT_S, record))

    def _unpark(self, now: float) -> Iterator[tracker.Item]:
        """Process the parked lines whose predecessor has arrived or whose wait is over, in order."""
        state = self._state
        while True:
            ready = [
                (record.timestamp, at)
                for at, (due, record) in enumerate(state.parked)
                if record.parentUuid in state.seen or due <= now
            ]
            if not ready:
                return
            yield from self._record(state.parked.pop(min(ready)[1])[1])

    def _record(self, record: _Record) -> Iterator[tracker.Item]:
        state = self._state
        _remember(state.seen, record.uuid)
        if record.parentUuid in state.uuids:
            state.uuids = [*state.uuids[-_REMEMBERED:], record.uuid]
        if record.type == "user" and record.message:
            yield from self._user(record, record.message)
        elif record.type == "assistant" and record.message:
            yield from self._assistant(record, record.message)
        elif record.type == "attachment" and record.attachment:
            yield from self._attachment(record, record.attachment)
        elif record.subtype == "turn_duration" and record.parentUuid in state.uuids:
            yield from [] if state.is_ended else self._end(tracker.Ended())
        elif record.type == "system" and bytes(record.content).startswith(_BLOCKED) and state.is_ended:
            # Our hook reported the prompt before one of the user's hooks rejected it.
            reason, _, text = msgspec.json.decode(record.content, type=str).partition(_ORIGINAL)
            yield tracker.Prompted(id=record.uuid, text=text)
            yield tracker.Ended(how=Ending.FAILED, text=reason.strip())
        yield from self._match()

    def _user(self, record: _Record, message: _Message) -> Iterator[tracker.Item]:
        state = self._state
        is_list = not isinstance(message.content, str)
        results = [part for part in message.parts if part.type == "tool_result"]
        if results:
            is_refused = bytes(record.toolUseResult) == _REJECTED
            _remember(state.agents, (decoded(record.toolUseResult, _OtherAgent) or _OtherAgent()).agentId)
            for part in results:
                ending = _failure(bytes(part.content).decode()) if part.is_error and not is_refused else ""
                yield tracker.Returned(id=part.tool_use_id, is_refused=is_refused, ending=ending)
        elif is_list and not record.promptSource and message.text.startswith(_INTERRUPTED):
            yield from [] if state.is_ended else self._end(tracker.Ended(how=Ending.INTERRUPTED))
        elif record.isMeta:
            if record.promptId == state.prompt_id and message.text.startswith(_FEEDBACK):
                # Continue after an end that one of the user's hooks has rejected.
                yield from [] if state.is_ended else self._end(tracker.Ended())
                state.is_ended, state.last_text, state.last_stop = False, None, None
                state.uuids.append(record.uuid)
                state.ended.pop(state.prompt_id, None)
                state.reopened = state.prompt_id
                yield tracker.Reopened()
        elif record.isCompactSummary:
            # After a compaction, Claude attaches files again that it has read before.
            state.is_prompted = False
        elif message.text.startswith(_COMMANDS) and not record.promptSource:
            state.command = (record.uuid, record.promptId, message.text)
        elif not message.text.startswith(_HARNESS):
            yield from self._begin(record.uuid, record.promptId, message.text)

    def _begin(self, uuid: str, prompt_id: str, text: str) -> Iterator[tracker.Item]:
        state = self._state
        is_joining = not state.is_ended and prompt_id == state.prompt_id
        is_told = bool(state.told) and prompt_id == state.told and not text.startswith(_COMMANDS)
        state.told = ""
        if is_told:
            # On a busy machine Claude writes its transcript seconds late. This turn has been answered.
            state.prompt_id, state.uuids, state.is_prompted = prompt_id, [uuid], True
            state.last_text, state.last_stop = None, None
            return
        if not is_joining:
            if not state.is_ended:
                is_done = state.last_stop == "end_turn"
                yield from self._end(tracker.Ended(how=Ending.DONE if is_done else Ending.INTERRUPTED))
            state.prompt_id, state.uuids = prompt_id, []
            # Claude's answer to a `!` command has the id of the prompt before it.
            state.ended.pop(prompt_id, None)
            state.is_ended, state.last_text, state.last_stop = False, None, None
        if prompt_id != state.forestalled_of:
            # The missing line will not arrive any more, and another answer may have the same text.
            state.forestalled = None
        state.command, state.is_prompted = None, True
        state.uuids.append(uuid)
        yield tracker.Prompted(id=uuid, text=text)

    def _attachment(self, record: _Record, attachment: _Attachment) -> Iterator[tracker.Item]:
        """Process an attached file, or a prompt that was queued and then sent between two tool calls."""
        if attachment.type in _MENTIONS and self._state.is_prompted:
            yield tracker.Attached(id=record.uuid, path=attachment.name)
        if attachment.type == "queued_command" and attachment.commandMode == "prompt":
            text = _Message(content=attachment.prompt).text
            if not text.startswith((*_HARNESS, *_COMMANDS)):
                self._state.is_prompted = True
                yield tracker.Prompted(id=record.uuid, text=text)

    def _assistant(self, record: _Record, message: _Message) -> Iterator[tracker.Item]:
        state = self._state
        if state.command:
            yield from self._begin(*state.command)
        state.uuids.append(record.uuid)
        state.is_prompted = False
        if record.isApiErrorMessage:
            text = message.text.lower()
            is_limit = record.error == _RATE_LIMIT or ("limit" in text and "reset" in text)
            yield from [] if state.is_ended else self._end(failed(message.text, is_limit=is_limit))
            return
        yield from _counted(record, message)
        state.last_stop = message.stop_reason
        for index, part in enumerate(message.parts):
            yield from self._part(f"{record.uuid}:{index}" if index else record.uuid, part, message.model)

    def _part(self, name: str, part: _Part, model: str) -> Iterator[tracker.Item]:
        state = self._state
        if part.type == "text" and not (model == _SYNTHETIC and part.text == _UNSAID):
            is_forestalled, state.forestalled = part.text.strip() == state.forestalled, None
            state.last_text = part.text
            if not is_forestalled:
                yield tracker.Wrote(id=name, text=part.text)
        elif part.type.endswith("tool_use"):
            state.last_text = None
            other = decoded(part.input, _OtherAgent) or _OtherAgent()
            if part.name in _DELEGATE:
                _remember(state.agents, other.name)
            yield tracker.ToolCalled(id=part.id, tool=part.name, arguments=bytes(part.input).decode())
            if part.name == _SEND and other.to not in (_MAIN, *state.agents):
                yield tracker.Bypassed(id=f"{part.id} past", to=other.to or "another session")


def _failure(text: str) -> str:
    """Return how a tool failed, with the exit code of a command."""
    found = _EXIT_CODE.search(text[:_TOLD])
    return f"exit {found[1]}" if found else "failed"


def _remember(names: dict[str, None], name: str) -> None:
    if name:
        names[name] = None
    if len(names) > _REMEMBERED:
        del names[next(iter(names))]


def _counted(record: _Record, message: _Message, *, is_side: bool = False) -> Iterator[tracker.Item]:
    tokens = message.usage
    if tokens and message.model != _SYNTHETIC:
        written, read = tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens
        total = tokens.input_tokens + written + read
        # Claude does not record the size of the window, which depends on the plan and on settings.
        usage = Usage(
            input=total,
            output=tokens.output_tokens,
            context=0 if is_side else total + tokens.output_tokens,
            cache_read=read,
            cache_write=written,
            model=message.model[:128] or None,
        )
        yield tracker.Counted(id=message.id or record.uuid, usage=usage)
