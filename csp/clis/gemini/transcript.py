"""Read the chat file and hook events of Gemini CLI.

Gemini writes a line before it runs the hook that reports it, so their times show the order. It records old
messages again under new ids. Prompts are therefore read from the hook, and only those of the model's messages
that have plain text are new.

If two prompts are sent at nearly the same time, Gemini accepts both, and BeforeAgent runs for both before
either is answered; AfterAgent may then run only for the last one. They are answered one after the other, each
after its own line in the chat file. So that line shows which prompt is answered next, whether it is read
before the hook or after it.

Gemini gives two such prompts the same number if the second one is sent before the first one is drawn. It then
runs BeforeAgent and AfterAgent only for the first. The line of a prompt of ours is proof enough. Any other
line without a hook may also be an old one that is recorded again, or a note for the model; it was a prompt if
an answer follows it directly.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from csp.clis.hook_spool import HookEvent
from csp.clis.transcript_reader import Line, TranscriptReader, decoded, failed, seconds
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal import reply_tracker as tracker
from csp.terminal.prompt_builder import tags_in

#: How long the end of a failed turn waits for the hook that reports it.
FAILURE_WAIT_S: Final = 1.0
_CANCELLED: Final = "Request cancelled."
#: The type of a confirmation for a command line.
_COMMAND: Final = "exec"
_CONTEXT: Final = "<session_context>"
#: The separator between a prompt and the files named in its text.
_FILES: Final = "\n--- Content from referenced files ---"
_FILE: Final = "Content from @"
#: The starts of requests with which Gemini itself continues a turn.
_CONTINUATIONS: Final = ("Please continue.", "System: ")
#: How long after the line of a prompt its hook may be stamped.
_HOOK_DELAY_S: Final = 2.0
_REMEMBERED: Final = 512
_LIMITS: Final = ("RESOURCE_EXHAUSTED", "quota", "rate limit", "usage limit", '"code":429')
#: The size of the context that Gemini CLI itself assumes for every model with such a name.
_WINDOW: Final = 1_048_576
_GEMINI: Final = "gemini-"
_NOTHING: Final = msgspec.Raw(b"{}")
_SESSION: Final = re.compile(rb'"sessionId"\s*:\s*"([0-9a-f-]{36})"')
_HEAD_BYTES: Final = 4096


def find_chat(tmp: Path, session: str) -> Path | None:
    """Return the chat file of a session from any project folder below `tmp`."""
    found = tmp.glob(f"*/chats/session-*-{session[:8]}.jsonl") if session else []
    return max(found, key=lambda path: path.stat().st_mtime_ns, default=None)


def session_in(chat: Path) -> str:
    """Return the session id from the head of a chat file."""
    with chat.open("rb") as file:
        found = _SESSION.search(file.read(_HEAD_BYTES))
    return found[1].decode("ascii") if found else ""


class _Tokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    cached: int = 0
    thoughts: int = 0
    tool: int = 0


class _Call(msgspec.Struct):
    id: str = ""
    name: str = ""
    args: msgspec.Raw = _NOTHING
    status: str = ""


class _Details(msgspec.Struct):
    """A notification's data about the tool that requests permission."""

    type: str = ""
    title: str = ""
    toolName: str = ""
    command: str = ""


class _Part(msgspec.Struct):
    text: str = ""


class _Record(msgspec.Struct):
    id: str = ""
    timestamp: str = ""
    type: str = ""
    content: str | list[_Part] = ""
    tokens: _Tokens | None = None
    model: str | None = None
    toolCalls: list[_Call] = []


class _Prompt(msgspec.Struct, array_like=True):
    id: str
    text: str
    has_answer: bool = False


class _State(msgspec.Struct):
    since: float
    session: str = ""
    path: str = ""
    has_hooks: bool = False
    #: The prompt that is being answered, and the other prompts that Gemini has accepted.
    prompt: _Prompt | None = None
    waiting: list[_Prompt] = []
    #: The last user line, if no hook has reported it yet and nothing was answered since.
    written: str = ""
    #: The id, text and time of a user line without a hook, if nothing has followed it yet.
    unhooked: tuple[str, str, float] | None = None
    #: The tags of our prompts that Gemini has accepted.
    accepted: dict[str, None] = {}
    #: The last prompt that was accepted by its line, and until when its hook may still be stamped.
    lined: tuple[str, float] = ("", 0.0)
    #: The id of that line and the files attached to it, until their prompt has begun.
    files: tuple[str, str] | None = None
    fault: str = ""
    fault_due: float | None = None
    #: The name and id of each running tool.
    tools: list[tuple[str, str]] = []

    @property
    def is_open(self) -> bool:
        return self.prompt is not None or bool(self.waiting)


class GeminiReader(TranscriptReader):
    """A reader of one run of Gemini CLI with all its sessions."""

    _state: _State

    def __init__(self, since: float, session: str = "", path: str = "") -> None:
        self._state = _State(since=since, session=session, path=path)

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[tracker.Item]:
        items: list[tracker.Item] = []
        happened: list[tuple[float, int, HookEvent | _Record]] = []
        for line in lines:
            record = decoded(line.data, _Record)
            if record is None or not record.type:
                continue
            at = seconds(record.timestamp)
            if not line.is_side:
                happened.append((at, 0, record))
            elif record.tokens and at >= self._state.since:
                # The text of a subagent is only for Gemini.
                usage = replace(_usage(record.tokens, record.model), context=0, window=0)
                items.append(tracker.Counted(id=record.id, usage=usage))
        happened += [(seconds(event.hook.timestamp) or event.at, 1, event) for event in events]
        # The sort is stable: lines precede hooks with the same time.
        for at, _, what in sorted(happened, key=lambda one: one[:2]):
            items += self._event(what, at) if isinstance(what, HookEvent) else self._message(what, at, now)
        if self._state.fault_due is not None and now >= self._state.fault_due:
            items += self._end(_failed(self._state.fault))
        return items

    def end(self) -> None:
        self._forget_turns()

    @property
    def lacks_ends(self) -> bool:
        # In a folder that its user does not trust, Gemini runs no hooks.
        return not self._state.has_hooks

    def due(self) -> float | None:
        return self._state.fault_due

    def _event(self, event: HookEvent, at: float) -> Iterator[tracker.Item]:
        hook, state = event.hook, self._state
        state.has_hooks = True
        if hook.transcript_path and hook.transcript_path != state.path:
            # A resumed chat begins with the earlier conversation.
            state.since = at if state.path else state.since
            state.session, state.path = hook.session_id, hook.transcript_path
            self._forget_turns()
            yield tracker.Switched(session=state.session, path=state.path)
        match hook.hook_event_name:
            case "SessionStart":
                yield tracker.Started()
            case "BeforeAgent" if not (_is_same(hook.prompt, state.lined[0]) and at < state.lined[1]):
                yield from self._accept(f"{hook.session_id}@{hook.timestamp or at}", hook.prompt)
            case "AfterAgent":
                yield from self._begin(hook.prompt)
                yield from self._end(_failed(state.fault) if state.fault else tracker.Ended())
            case "Notification" if hook.notification_type == "ToolPermission":
                details = decoded(hook.details, _Details) or _Details()
                tool = details.toolName or details.title
                command = details.command if details.type == _COMMAND else ""
                yield tracker.Asked(tool=tool, arguments=bytes(hook.details).decode(), command=command)
            case "BeforeTool":
                # The hooks do not identify the call; the chat file does so after its end.
                tool = f"{hook.tool_name}@{hook.timestamp or at}"
                state.tools.append((hook.tool_name, tool))
                yield tracker.Using(id=tool)
            case "AfterTool":
                # Assume the first running tool of that name.
                begun = next((one for one in state.tools if one[0] == hook.tool_name), None)
                if begun:
                    state.tools.remove(begun)
                yield tracker.Returned(id=begun[1] if begun else f"{hook.tool_name}@{hook.timestamp or at}")

    def _accept(self, name: str, text: str) -> Iterator[tracker.Item]:
        # BeforeAgent may run several times for one prompt, once for each model that was tried.
        state = self._state
        known = [*state.waiting, *([state.prompt] if state.prompt else [])]
        if not any(_is_same(text, prompt.text) for prompt in known):
            for tag in tags_in(text):
                state.accepted[tag] = None
                if len(state.accepted) > _REMEMBERED:
                    del state.accepted[next(iter(state.accepted))]
            state.waiting.append(_Prompt(name, text))
            yield tracker.Submitted(text=text)
            if state.prompt and _is_same(text, state.written):
                yield from self._begin(text)

    def _begin(self, text: str | None = None) -> Iterator[tracker.Item]:
        """Begin the waiting prompt with that text; without a text, the first one if none is in progress."""
        state = self._state
        if text is None and state.prompt:
            return
        following = next((one for one in state.waiting if text is None or _is_same(one.text, text)), None)
        if following:
            answered = state.prompt and state.prompt.has_answer
            if state.prompt:
                yield from self._end(tracker.Ended(how=Ending.DONE if answered else Ending.INTERRUPTED))
            state.waiting.remove(following)
            state.prompt, state.fault, state.fault_due = following, "", None
            yield tracker.Prompted(id=following.id, text=following.text)
        # The line of the prompt that is being answered may have arrived before its hook.
        if state.files and state.prompt and _is_same(state.prompt.text, state.written):
            name, path = state.files
            state.files = None
            yield tracker.Attached(id=f"{name} files", path=path)

    def _end(self, ended: tracker.Ended) -> Iterator[tracker.Item]:
        state = self._state
        yield from self._begin()
        if state.prompt:
            state.prompt, state.fault, state.fault_due, state.tools = None, "", None, []
            yield ended

    def _begin_unhooked(self) -> Iterator[tracker.Item]:
        """Begin the prompt of the last line that has no hook, because Gemini has reacted to it."""
        state = self._state
        if state.unhooked and state.is_open:
            name, text, when = state.unhooked
            yield from self._accept_line(name, text, when)
            yield from self._begin(text)
        state.unhooked = None

    def _forget_turns(self) -> None:
        state = self._state
        state.unhooked = None
        state.prompt, state.waiting, state.fault, state.fault_due = None, [], "", None
        state.written, state.files, state.tools = "", None, []

    def _message(self, record: _Record, when: float, now: float) -> Iterator[tracker.Item]:
        state = self._state
        if when < state.since:
            return
        match record.type:
            case "user":
                parts = [part.text for part in record.content if isinstance(part, _Part)]
                at = parts.index(_FILES) if _FILES in parts else len(parts)
                text = "".join(parts[:at])
                yield from self._begin_line(record.id, text, when, is_whole=all(parts))
                state.written = text or state.written
                named = [part.strip() for part in parts[at:] if _FILE in part[:20]]
                files = ", ".join(name.removesuffix(":").removeprefix(_FILE) for name in named) or "a file"
                state.files = (record.id, files) if at < len(parts) else None
                yield from self._begin(text)
            case "gemini" if state.is_open and isinstance(record.content, str):
                yield from self._begin_unhooked()
                yield from self._begin()
                yield from self._answer(record, record.content)
            case "info" if record.content == _CANCELLED:
                yield from self._begin_unhooked()
                yield from self._end(tracker.Ended(how=Ending.INTERRUPTED))
            case "error" if state.is_open and isinstance(record.content, str):
                yield from self._begin_unhooked()
                state.fault, state.fault_due = record.content, now + FAILURE_WAIT_S

    def _begin_line(self, name: str, text: str, when: float, *, is_whole: bool) -> Iterator[tracker.Item]:
        """Accept the prompt of a user line if no hook reports it."""
        state = self._state
        state.unhooked = None
        if not text or text.startswith(_CONTEXT):
            return
        tags = tags_in(text)
        known = [*state.waiting, *([state.prompt] if state.prompt else [])]
        if not state.has_hooks:
            yield from self._accept(name, text)
        elif any(_is_same(text, prompt.text) for prompt in known):
            return
        elif any(tag not in state.accepted for tag in tags):
            yield from self._accept_line(name, text, when)
        elif is_whole and not text.startswith(_CONTINUATIONS):
            state.unhooked = (name, text, when)

    def _accept_line(self, name: str, text: str, when: float) -> Iterator[tracker.Item]:
        self._state.lined = (text, when + _HOOK_DELAY_S)
        yield from self._accept(name, text)

    def _answer(self, record: _Record, text: str) -> Iterator[tracker.Item]:
        state = self._state
        state.fault, state.fault_due, state.written = "", None, ""
        if state.prompt and text and not record.toolCalls:
            state.prompt.has_answer = True
        if record.tokens:
            yield tracker.Counted(id=record.id, usage=_usage(record.tokens, record.model))
        yield tracker.Wrote(id=record.id, text=text)
        for call in record.toolCalls:
            yield tracker.ToolCalled(id=call.id, tool=call.name, arguments=bytes(call.args).decode())
            ending = "failed" if call.status == "error" else ""
            yield tracker.Returned(id=call.id, is_refused=call.status == "cancelled", ending=ending)


def _is_same(one: str, other: str) -> bool:
    """Return whether two texts are the same prompt; Gemini records paths that differ from those typed."""
    return one == other or (bool(tags := tags_in(one)) and tags == tags_in(other))


def _usage(tokens: _Tokens, model: str | None) -> Usage:
    read, written = tokens.input + tokens.tool, tokens.output + tokens.thoughts
    return Usage(
        input=read,
        output=written,
        cache_read=tokens.cached,
        reasoning=tokens.thoughts,
        model=model[:128] if model else None,
        context=read + written,
        window=_WINDOW if (model or "").startswith(_GEMINI) else 0,
    )


def _failed(fault: str) -> tracker.Ended:
    return failed(fault, is_limit=any(word.lower() in fault.lower() for word in _LIMITS))
