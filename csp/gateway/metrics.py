"""Counters for Prometheus, in its text format.

A client library would be too much for five counters and some gauges.
"""

from collections import Counter

from csp.protocol.events import AnyEvent, type_of
from csp.room.room_state import Room
from csp.room.sessions.spending import Ledger


class Metrics:
    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.requests: Counter[int] = Counter()
        self.batches = 0

    def count(self, committed: list[tuple[AnyEvent, bytes]]) -> None:
        """Count one committed batch."""
        self.batches += 1
        for event, _ in committed:
            self.events[type_of(event)] += 1

    def render(self, room: Room, watchers: int, journal_bytes: int) -> str:
        """Return all figures in Prometheus' text format."""
        lines = ["# TYPE csp_events_total counter"]
        lines += [f'csp_events_total{{type="{kind}"}} {n}' for kind, n in sorted(self.events.items())]
        lines.append("# TYPE csp_http_requests_total counter")
        lines += [
            f'csp_http_requests_total{{status="{code}"}} {n}' for code, n in sorted(self.requests.items())
        ]
        online = sum(participant.online for participant in room.participants.values())
        queued = sum(len(participant.queue) for participant in room.participants.values())
        lines += _metric("csp_commits_total", "counter", self.batches)
        lines += _metric("csp_seq", "counter", room.seq)
        lines += _metric("csp_participants", "gauge", len(room.participants))
        lines += _metric("csp_participants_online", "gauge", online)
        lines += _metric("csp_deliveries_waiting", "gauge", queued)
        lines += _metric("csp_watchers", "gauge", watchers)
        lines += _metric("csp_journal_bytes", "gauge", journal_bytes)
        lines += _boards(room)
        lines += _spending(room.spent_so_far)
        return "\n".join(lines) + "\n"


def _boards(room: Room) -> list[str]:
    """Return the number of notes and the bytes of text of each whiteboard."""
    boards = [(_label(name), board) for name, board in sorted(room.boards.by_name.items())]
    lines = ["# TYPE csp_board_notes_total counter"]
    lines += [f'csp_board_notes_total{{board="{name}"}} {board.next_idx}' for name, board in boards]
    lines.append("# TYPE csp_board_bytes gauge")
    lines += [f'csp_board_bytes{{board="{name}"}} {board.bytes}' for name, board in boards]
    return lines


def _spending(ledger: Ledger) -> list[str]:
    """Return tokens and cost of each agent's models; calls without a price add no cost.

    The kinds overlap: `cached` is part of `input`; `new` is the rest of the input plus the output.
    """
    lines = ["# TYPE csp_tokens_total counter"]
    for row in ledger:
        who = f'agent="{_label(row.agent)}",model="{_label(row.model)}"'
        lines.append(f'csp_tokens_total{{{who},kind="input"}} {row.input}')
        lines.append(f'csp_tokens_total{{{who},kind="output"}} {row.output}')
        lines.append(f'csp_tokens_total{{{who},kind="cached"}} {row.cached}')
        lines.append(f'csp_tokens_total{{{who},kind="new"}} {row.new}')
    lines.append("# TYPE csp_cost_usd_total counter")
    for row in ledger:
        who = f'agent="{_label(row.agent)}",model="{_label(row.model)}"'
        lines.append(f"csp_cost_usd_total{{{who}}} {row.cost_usd:.6f}")
    return lines


def _label(text: str) -> str:
    """Escape a label value; agents choose the names of their models."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _metric(name: str, kind: str, value: int) -> list[str]:
    return [f"# TYPE {name} {kind}", f"{name} {value}"]
