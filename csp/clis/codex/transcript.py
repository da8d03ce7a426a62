"""Read the rollouts of Codex.

Codex records each fact several times; only one source is used for each. A run may have several rollouts open,
one for each of its sessions; the one in which a turn starts is the current one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from csp.clis.hook_spool import HookEvent
from csp.clis.transcript_reader import Line, TranscriptReader, decoded, failed, seconds
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal import reply_tracker as tracker

_SEARCH: Final = "web_search_call"
_SHELL_TOOL: Final = "exec_command"
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call", _SEARCH)
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")
#: The number of characters of a result that are searched for the exit code, which precedes the output.
_TOLD: Final = 300
_EXIT_CODE: Final = re.compile(r"(?:exited with code|Exit code:) (\d+)")
_LIMIT: Final = "usage_limit"
_NOTHING: Final = msgspec.Raw(b"")


class _ShellInput(msgspec.Struct, forbid_unknown_fields=True):
    """The input of the shell tool; another field, such as a directory, would change what its command does."""

    cmd: str
    justification: str = ""
    sandbox_permissions: Literal["use_default", "require_escalated"] = "use_default"
    #: The beginning of commands that the dialog offers to allow from now on.
    prefix_rule: list[str] = []
    login: Literal[True] = True
    tty: bool = False
    yield_time_ms: float | None = None
    max_output_tokens: float | None = None


class _Part(msgspec.Struct):
    text: str = ""


class _Content(msgspec.Struct):
    """An item of a turn."""

    type: str = ""
    id: str = ""
    content: list[_Part] = []


class _Tokens(msgspec.Struct, frozen=True):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0


_NO_TOKENS: Final = _Tokens()


class _Fault(msgspec.Struct):
    message: str = ""
    codex_error_info: msgspec.Raw = _NOTHING


class _Info(msgspec.Struct):
    """Codex's token counts: those of the whole session and those of its last call."""

    total_token_usage: _Tokens = _NO_TOKENS
    last_token_usage: _Tokens = _NO_TOKENS
    model_context_window: int | None = None


class _Payload(msgspec.Struct):
    type: str = ""
    session_id: str = ""
    id: str | None = None
    call_id: str | None = None
    model: str | None = None
    name: str | None = None
    arguments: str = ""
    input: str = ""
    action: msgspec.Raw = _NOTHING
    output: msgspec.Raw = _NOTHING
    item: _Content | None = None
    usage: _Tokens | None = None
    thread_token_usage: _Tokens = _NO_TOKENS
    info: _Info | None = None
    response_id: str | None = None
    error: _Fault | None = None
    reason: str | None = None
    model_context_window: int | None = None


class _Record(msgspec.Struct):
    type: str = ""
    timestamp: str = ""
    payload: _Payload | None = None


class _State(msgspec.Struct):
    since: float
    path: str = ""
    model: str | None = None
    #: The size of the model's context, from the start of the last turn.
    window: int = 0
    is_started: bool = False
    #: The total of each rollout; the same total twice means the same call.
    totals: dict[str, int] = {}
    #: The models of subagents, by rollout.
    models: dict[str, str] = {}


class CodexReader(TranscriptReader):
    """A reader of one run of Codex with all its rollouts."""

    _state: _State

    def __init__(self, since: float, session: str = "", path: str = "") -> None:
        self._state = _State(since=since, path=path)

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[tracker.Item]:
        found = [(line, record) for line in lines if (record := decoded(line.data, _Record))]
        sides = [(line.path, record) for line, record in found if line.is_side]
        records = [(line.path, record) for line, record in found if not line.is_side]
        if len({path for path, _ in records}) > 1:
            # The sort is stable, so it keeps the order within a file.
            records.sort(key=lambda one: one[1].timestamp)
        items = [item for path, record in sides for item in self._record(path, record, is_side=True)]
        items += [item for path, record in records for item in self._record(path, record)]
        for event in events:
            if event.hook.hook_event_name == "PermissionRequest":
                arguments = bytes(event.hook.tool_input).decode()
                items.append(tracker.Asked(tool=event.hook.tool_name, arguments=arguments))
        return items

    def _record(self, path: str, record: _Record, *, is_side: bool = False) -> Iterator[tracker.Item]:
        """Process one record; a subagent's record counts only as usage, because its text is for Codex."""
        payload = record.payload
        if payload is None:
            return
        if is_side and record.type == "turn_context" and payload.model:
            self._state.models[path] = payload.model
        counted = self._counted(path, record, payload, is_side=is_side)
        if seconds(record.timestamp) < self._state.since:
            return
        yield from counted
        if is_side:
            return
        name = payload.call_id or payload.id or ""
        match record.type:
            case "event_msg":
                yield from self._event(path, payload)
            case "response_item" if payload.type in _CALLS:
                yield _called(name, payload)
                if payload.type == _SEARCH:
                    # This record is written at the end of the call, which nothing else reports.
                    yield tracker.Returned(id=name)
            case "response_item" if payload.type in _RESULTS:
                found = _EXIT_CODE.search(bytes(payload.output)[:_TOLD].decode(errors="ignore"))
                yield tracker.Returned(id=name, ending=f"exit {found[1]}" if found else "")
            case "turn_context":
                self._state.model = payload.model

    def _counted(self, path: str, record: _Record, payload: _Payload, *, is_side: bool) -> list[tracker.Item]:
        """Return the usage of a call, which Codex may report twice: in its own record and as an event.

        The event repeats the last call whenever another of its fields has changed.
        """
        if not is_side:
            said = payload.info.model_context_window if payload.info else payload.model_context_window
            self._state.window = said or self._state.window
        if record.type == "token_usage_record" and payload.usage:
            tokens, total = payload.usage, payload.thread_token_usage.total_tokens
        elif record.type == "event_msg" and payload.type == "token_count" and payload.info:
            tokens, total = payload.info.last_token_usage, payload.info.total_token_usage.total_tokens
        else:
            return []
        if total and self._state.totals.get(path) == total:
            return []
        self._state.totals[path] = total
        name = payload.response_id or (f"{path} {total}" if total else record.timestamp)
        usage = Usage(
            input=tokens.input_tokens,
            output=tokens.output_tokens,
            cache_read=tokens.cached_input_tokens,
            cache_write=tokens.cache_write_input_tokens,
            reasoning=tokens.reasoning_output_tokens,
            model=self._state.models.get(path) or self._state.model,
            context=0 if is_side else tokens.input_tokens + tokens.output_tokens,
            window=0 if is_side else self._state.window,
        )
        return [tracker.Counted(id=name, usage=usage)]

    def _event(self, path: str, payload: _Payload) -> Iterator[tracker.Item]:
        item, fault, state = payload.item, payload.error, self._state
        match payload.type:
            case "task_started":
                if path != state.path:
                    state.path = path
                    # rollout-2026-11-16T10-09-54-<uuid>.jsonl
                    yield tracker.Switched(session=path.removesuffix(".jsonl")[-36:], path=path)
                if not state.is_started:
                    state.is_started = True
                    yield tracker.Started()
                yield tracker.Opened()
            case "item_completed" if item and item.type in ("UserMessage", "AgentMessage"):
                text = "\n".join(part.text for part in item.content if part.text)
                kind = tracker.Prompted if item.type == "UserMessage" else tracker.Wrote
                yield kind(id=item.id, text=text)
            case "turn_aborted":
                yield tracker.Ended(how=Ending.INTERRUPTED, text=payload.reason or "")
            case "task_complete" if fault:
                yield failed(fault.message, is_limit=_LIMIT in bytes(fault.codex_error_info).decode())
            case "task_complete":
                yield tracker.Ended()


def _called(name: str, payload: _Payload) -> tracker.ToolCalled:
    arguments = payload.arguments or payload.input or bytes(payload.action).decode()
    tool = payload.name or payload.type
    shell = decoded(arguments.encode(), _ShellInput) if tool == _SHELL_TOOL else None
    return tracker.ToolCalled(id=name, tool=tool, arguments=arguments, command=shell.cmd if shell else "")
