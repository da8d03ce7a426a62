"""The figures for Prometheus, line by line."""

from types import SimpleNamespace

from csp.gateway.metrics import Metrics
from csp.protocol.enums import AgentId
from csp.room.sessions.session_state import Spent
from tests.gateway.test_broadcast import event

ROOM = SimpleNamespace(
    seq=41,
    participants={
        "claude": SimpleNamespace(online=True, queue=["m-1", "m-2"]),
        "codex": SimpleNamespace(online=True, queue=["m-2"]),
        "gemini": SimpleNamespace(online=False, queue=[]),
    },
    boards=SimpleNamespace(
        by_name={
            "s-4": SimpleNamespace(next_idx=3, bytes=70),
            "room": SimpleNamespace(next_idx=2, bytes=105),
        }
    ),
    spent_so_far=[
        Spent(AgentId("claude"), "opus", input=10, output=4, cost_usd=1.5, cached=6),
        Spent(AgentId("codex"), 'odd\n"name"\\', input=7, output=3),
    ],
)
LINES = r"""
# TYPE csp_events_total counter
csp_events_total{type="system"} 3
# TYPE csp_http_requests_total counter
csp_http_requests_total{status="200"} 5
csp_http_requests_total{status="404"} 1
# TYPE csp_commits_total counter
csp_commits_total 2
# TYPE csp_seq counter
csp_seq 41
# TYPE csp_participants gauge
csp_participants 3
# TYPE csp_participants_online gauge
csp_participants_online 2
# TYPE csp_deliveries_waiting gauge
csp_deliveries_waiting 3
# TYPE csp_watchers gauge
csp_watchers 6
# TYPE csp_journal_bytes gauge
csp_journal_bytes 777
# TYPE csp_board_notes_total counter
csp_board_notes_total{board="room"} 2
csp_board_notes_total{board="s-4"} 3
# TYPE csp_board_bytes gauge
csp_board_bytes{board="room"} 105
csp_board_bytes{board="s-4"} 70
# TYPE csp_tokens_total counter
csp_tokens_total{agent="claude",model="opus",kind="input"} 10
csp_tokens_total{agent="claude",model="opus",kind="output"} 4
csp_tokens_total{agent="claude",model="opus",kind="cached"} 6
csp_tokens_total{agent="claude",model="opus",kind="new"} 8
csp_tokens_total{agent="codex",model="odd\n\"name\"\\",kind="input"} 7
csp_tokens_total{agent="codex",model="odd\n\"name\"\\",kind="output"} 3
csp_tokens_total{agent="codex",model="odd\n\"name\"\\",kind="cached"} 0
csp_tokens_total{agent="codex",model="odd\n\"name\"\\",kind="new"} 10
# TYPE csp_cost_usd_total counter
csp_cost_usd_total{agent="claude",model="opus"} 1.500000
csp_cost_usd_total{agent="codex",model="odd\n\"name\"\\"} 0.000000
"""


def test_every_figure_of_the_room_is_told() -> None:
    metrics = Metrics()
    metrics.count([event(1), event(2)])
    metrics.count([event(3)])
    metrics.requests[404] += 1
    metrics.requests[200] += 5

    told = metrics.render(ROOM, watchers=6, journal_bytes=777)  # type: ignore[arg-type]  # it has what is used

    assert told == LINES.lstrip("\n")
