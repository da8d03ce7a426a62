"""Events, lines and journals for the tests of csp.journal."""

import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from csp.journal import JsonlJournal
from csp.protocol.enums import ALL, AgentId, DeliveryState, MessageId
from csp.protocol.events import (
    AgentResponse,
    AnyEvent,
    DeliveryMoved,
    KnownEvent,
    LateReply,
    NoticePosted,
    encode_event,
)
from csp.protocol.requests import Handoff
from csp.room import visibility
from csp.room.sessions.session_reducer import Sessions


def said(
    seq: int,
    text: str = "",
    *,
    sender: str = "claude",
    target: str = ALL,
    recipients: Sequence[str] = ("codex",),
    message_id: str = "",
    task: str = "",
) -> AgentResponse:
    return AgentResponse(
        seq=seq,
        ts=1700000000.5 + seq,
        id=MessageId(message_id or f"m-{seq}"),
        sender=AgentId(sender),
        target=AgentId(target),
        thread="default",
        text=text or f"message number {seq}",
        recipients=tuple(AgentId(agent) for agent in recipients),
        handoff=Handoff(to="codex", task=task) if task else None,
    )


def noticed(seq: int, text: str) -> NoticePosted:
    return NoticePosted(seq, 1.0, MessageId(f"e-{seq}"), AgentId("system"), ALL, "default", text)


def late(seq: int, text: str) -> LateReply:
    return LateReply(
        seq, 1.0, MessageId(f"e-{seq}"), AgentId("codex"), AgentId("human"), "default", text, turn="t-1"
    )


def delivered(seq: int, message_id: str, state: DeliveryState = DeliveryState.CONFIRMED) -> DeliveryMoved:
    return DeliveryMoved(
        seq=seq,
        ts=1.0,
        id=MessageId(f"e-{seq}"),
        sender=AgentId("codex"),
        target=AgentId("claude"),
        thread="default",
        text="",
        message=MessageId(message_id),
        agent=AgentId("codex"),
        state=state,
    )


def encoded(events: Iterable[KnownEvent]) -> list[bytes]:
    return [encode_event(event) for event in events]


def lines_to(count: int) -> list[bytes]:
    return encoded(said(seq) for seq in range(1, count + 1))


def commit(journal: JsonlJournal, lines: Sequence[bytes]) -> None:
    journal.append(lines, journal.last_seq + 1)
    journal.commit()


def write_journal(folder: Path, data: bytes) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / "journal.jsonl"
    path.write_bytes(data)
    return path


@contextmanager
def opened(folder: Path) -> Iterator[JsonlJournal]:
    journal = JsonlJournal.open(folder)
    try:
        yield journal
    finally:
        journal.close()


def read_all(journal: JsonlJournal, after: int = 0, max_bytes: int = 1 << 18) -> list[bytes]:
    found: list[bytes] = []
    cursor = None
    while True:
        chunk = journal.view.read_after(after, max_bytes, cursor)
        found += chunk.lines
        if chunk.end:
            return found
        cursor = chunk.cursor


def run_python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, for what would harm this one."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    root = Path(__file__).parents[2]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)


def concerns(event: AnyEvent, agent: AgentId) -> bool:
    """Tell what an agent may read in a room without sessions."""
    return visibility.is_visible_to(event, agent, Sessions())
