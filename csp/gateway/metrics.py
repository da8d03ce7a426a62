"""Counters for Prometheus, in its text format.

Five counters and some gauges do not need a client library, so there is none.
"""

from collections import Counter

from csp.core.room import Room
from csp.events import AnyEvent, type_of


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
        return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, value: int) -> list[str]:
    return [f"# TYPE {name} {kind}", f"{name} {value}"]
