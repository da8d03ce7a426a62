"""Read the transcript format that any tool can write so that its replies are followed exactly.

Such a tool has a profile with `proof = "transcript"` in [delivery] and `kind = "plain"` in [capture]. It is
started with the name of a file in CSP_TRANSCRIPT, to which it appends events: one JSON object per line, each
line written at once when it happens and never changed. Without that variable the tool writes nothing.

    {"type": "start", "ts": 1789.5}                      the composer accepts keys from now on
    {"type": "prompt", "ts": 1790.0, "text": "..."}      a prompt was submitted, with its complete text
    {"type": "attached", "text": "/a/file"}              a file was added to that prompt because of its text
    {"type": "text", "ts": 1791.0, "text": "..."}        one complete block of the answer, as Markdown
    {"type": "tool", "name": "run", "arguments": {...}}  a tool is called; text before it is not the answer
    {"type": "usage", "input": 9, "output": 4, "model": "m"}    token counts, as often as they are known
    {"type": "end", "how": "done", "text": "..."}        the tool is idle again

`ts` is the time in Unix seconds; a line without it has the time of the line before. Lines older than the run
are skipped, so a file may be continued by several runs. `how` is done, interrupted, failed or limited; `text`
gives the reason, and `until` the end of a limit, in words. Between a prompt and its end the tool counts as
busy; a second prompt in between belongs to the same answer. Other types, other fields (such as an `id` for
the tool's own use) and lines that are not JSON objects are also skipped.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from csp.clis.hook_spool import HookEvent
from csp.clis.transcript_reader import Line, TranscriptReader, decoded, until
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.reply_tracker import Attached, Counted, Ended, Item, Prompted, Started, ToolCalled, Wrote

MAX_MODEL: Final = 128
_NOTHING: Final = msgspec.Raw(b"")
_ENDINGS: Final = {ending.value: ending for ending in Ending}


class _Record(msgspec.Struct):
    type: str = ""
    ts: float | None = None
    text: str = ""
    name: str = ""
    arguments: msgspec.Raw = _NOTHING
    input: int = 0
    output: int = 0
    model: str | None = None
    how: str = Ending.DONE.value
    until: str | None = None


class _State(msgspec.Struct):
    since: float
    lines: int = 0
    ts: float | None = None


class PlainReader(TranscriptReader):
    """A reader of one transcript; a line is identified by its position in the file and its time."""

    _state: _State

    def __init__(self, since: float, session: str = "", path: str = "") -> None:
        self._state = _State(since=since)

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[Item]:
        return [item for line in lines for item in self._line(line.data)]

    def _line(self, data: bytes) -> Iterator[Item]:
        state = self._state
        state.lines += 1
        record = decoded(data, _Record)
        if record is None:
            return
        state.ts = state.ts if record.ts is None else record.ts
        if state.ts is not None and state.ts < state.since:
            return
        # The room identifies an answer by this id, so no other run or file may have the same one.
        line = f"{state.lines} {state.ts or state.since}"
        match record.type:
            case "start":
                yield Started()
            case "prompt":
                yield Prompted(id=line, text=record.text)
            case "attached":
                yield Attached(id=line, path=record.text)
            case "text":
                yield Wrote(id=line, text=record.text)
            case "tool":
                # A string is used as it is, anything else as JSON.
                raw = bytes(record.arguments)
                arguments = str(msgspec.json.decode(raw)) if raw.startswith(b'"') else raw.decode()
                yield ToolCalled(id=line, tool=record.name, arguments=arguments)
            case "usage":
                # Clamp the tool's counts to values that the room accepts.
                model = record.model[:MAX_MODEL] if record.model else None
                usage = Usage(input=max(0, record.input), output=max(0, record.output), model=model)
                yield Counted(id=line, usage=usage)
            case "end":
                how = _ENDINGS.get(record.how, Ending.FAILED)
                yield Ended(how=how, text=record.text, until=record.until or until(record.text))
