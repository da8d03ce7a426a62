"""What the room answers to an agent's query: one line of its own, short enough to be typed."""

from collections.abc import Iterable
from typing import Final

from csp.core.session import Session
from csp.core.tokens import cut
from csp.events import AnyEvent, Unknown
from csp.wire import Mode

MAX_ANSWER: Final = 2000
MAX_LINE: Final = 300
DEFAULT_COUNT: Final = 20


def mode_text(session: Session | None) -> str:
    """Say which mode a thread is in, whose turn it is."""
    if session is None:
        return f"[CSP: the mode is {Mode.FREEFORM}; no session is running]"
    topic = f" on {session.setup.topic!r}" if session.setup.topic else ""
    waiting = ", ".join(session.waiting_for) or "nobody"
    text = (
        f"the mode is {session.setup.mode}{topic}; {session.id} is {session.status}, in {session.stage.name}"
    )
    return f"[CSP: {cut(text, MAX_LINE)}; it waits for {cut(waiting, MAX_LINE)}]"


def log_text(events: Iterable[AnyEvent]) -> str:
    """Say what `events` say, oldest first; of more than fits, the newest."""
    lines: list[str] = []
    left = MAX_ANSWER - len(_whole(["#"]))
    for event in reversed([event for event in events if not isinstance(event, Unknown)]):
        line = _line(event.seq, event.sender, event.target, event.text)
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return _whole(lines[::-1]) if lines else "[CSP: nothing that concerns you has been said yet]"


def _line(seq: int, sender: str, target: str, text: str) -> str:
    line = f"#{seq} {sender} -> {target}: {' '.join(text[:MAX_LINE].split())}"
    is_cut = len(text) > MAX_LINE or len(line) > MAX_LINE
    return f"{line[: MAX_LINE - 1]}…" if is_cut else line


def _whole(lines: list[str]) -> str:
    text = "\n".join(lines)
    return f"[CSP: the last that concerns you, oldest first\n{text}]"
