"""Counters and gauges in the Prometheus text format.

A client library is not worthwhile for five counters and a few gauges.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from csp.protocol.events import AnyEvent, type_of
from csp.room.room_state import Room


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
        """Return all metrics in the Prometheus text format."""
        online = sum(participant.online for participant in room.participants.values())
        queued = sum(len(participant.queue) for participant in room.participants.values())
        boards = [(f'board="{_label(name)}"', board) for name, board in sorted(room.boards.by_name.items())]
        spent = [
            (f'agent="{_label(row.agent)}",model="{_label(row.model)}"', row) for row in room.spent_so_far
        ]
        # The kinds overlap: `cached` is part of `input`; `new` is the rest of the input plus the output.
        kinds = ("input", "output", "cached", "new")
        lines = [
            *_family("csp_events_total", "counter", _labelled("type", self.events)),
            *_family("csp_http_requests_total", "counter", _labelled("status", self.requests)),
            *_family("csp_commits_total", "counter", [("", self.batches)]),
            *_family("csp_seq", "counter", [("", room.seq)]),
            *_family("csp_participants", "gauge", [("", len(room.participants))]),
            *_family("csp_participants_online", "gauge", [("", online)]),
            *_family("csp_deliveries_waiting", "gauge", [("", queued)]),
            *_family("csp_watchers", "gauge", [("", watchers)]),
            *_family("csp_journal_bytes", "gauge", [("", journal_bytes)]),
            *_family("csp_board_notes_total", "counter", [(name, board.next_idx) for name, board in boards]),
            *_family("csp_board_bytes", "gauge", [(name, board.bytes) for name, board in boards]),
            *_family(
                "csp_tokens_total",
                "counter",
                [(f'{who},kind="{kind}"', getattr(row, kind)) for who, row in spent for kind in kinds],
            ),
            # Calls without a price add no cost.
            *_family("csp_cost_usd_total", "counter", [(who, f"{row.cost_usd:.6f}") for who, row in spent]),
        ]
        return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """Escape a label value, because agents choose their models' names."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labelled(label: str, counts: Mapping[Any, int]) -> list[tuple[str, object]]:
    return [(f'{label}="{key}"', count) for key, count in sorted(counts.items())]


def _family(name: str, kind: str, values: Iterable[tuple[str, object]]) -> list[str]:
    """Return the lines of one metric; each value has its labels."""
    rows = [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in values]
    return [f"# TYPE {name} {kind}", *rows]
