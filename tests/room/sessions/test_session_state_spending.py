"""Who has used what, for how much."""

from csp.protocol.enums import ParticipantKind
from csp.protocol.events import TurnSignal
from csp.protocol.requests import Usage
from csp.protocol.session_parts import EndReason, Limits
from csp.room.commands import PostReply
from csp.room.sessions.session_state import MOST_ROWS, Ledger, Spent, spend
from csp.room.sessions.session_views import spent_view
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import Play


def test_replies_add_up_by_agent_and_model() -> None:
    ledger: Ledger = ()
    for agent, usage in (
        (CLAUDE, Usage(input=10, output=2, cost_usd=0.5, model="opus")),
        (CODEX, Usage(input=7, output=1, model="gpt")),
        (CLAUDE, Usage(input=20, output=3, cost_usd=0.25, model="opus")),
        (CLAUDE, Usage(input=1, output=1, model="haiku", estimated=True)),
    ):
        ledger = spend(ledger, agent, usage)

    assert ledger == (
        Spent(CLAUDE, "opus", replies=2, input=30, output=5, cost_usd=0.75),
        Spent(CODEX, "gpt", replies=1, input=7, output=1, unpriced=1),
        Spent(CLAUDE, "haiku", replies=1, input=1, output=1, unpriced=1, estimated=1),
    )
    assert [row.tokens for row in ledger] == [35, 8, 2]


def test_a_price_that_nobody_knows_is_not_nothing() -> None:
    ledger = spend((), CODEX, Usage(input=7, model="gpt"))
    free = spend((), CODEX, Usage(input=7, cost_usd=0.0, model="gpt"))
    mixed = spend(ledger, CODEX, Usage(input=7, cost_usd=0.5, model="gpt"))

    assert [row.known_cost for row in (*ledger, *free, *mixed)] == [None, 0.0, 0.5]
    assert [row.cost_usd for row in spent_view((*ledger, *mixed))] == [None, 0.5]


def test_invented_names_of_models_do_not_fill_the_memory() -> None:
    ledger: Ledger = ()
    for number in range(MOST_ROWS + 5):
        ledger = spend(ledger, CLAUDE, Usage(input=1, model=f"model-{number}"))

    assert len(ledger) == MOST_ROWS + 1
    assert ledger[-1] == Spent(CLAUDE, "", replies=5, input=5, unpriced=5)
    assert sum(row.input for row in ledger) == MOST_ROWS + 5


def test_the_room_counts_what_is_said_outside_of_sessions_too() -> None:
    play = Play(CLAUDE, CODEX)
    play.do(PostReply(sender=CLAUDE, text="hello", usage=Usage(input=5, output=1, model="opus")))
    play.do(PostReply(sender=CLAUDE, text="nobody counted this"))

    assert play.room.spent == (Spent(CLAUDE, "opus", replies=1, input=5, output=1, unpriced=1),)


def test_what_moved_nothing_was_paid_for_all_the_same() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("collaborate")
    play.reply(CLAUDE, "{not json", usage=Usage(input=10))  # is asked once more
    play.reply(CLAUDE, '{"message": "m", "handoff": {"to": "codex", "task": "t"}}', usage=Usage(input=20))
    turn = play.turn(CODEX).id
    play.wait(play.rules.timeout_s + 300)
    play.reply(CODEX, '{"message": "too late"}', turn=turn, usage=Usage(input=300))

    assert [(row.agent, row.input) for row in play.session.spent] == [(CLAUDE, 30), (CODEX, 300)]
    assert play.session.tokens == 330


def test_no_call_follows_once_a_limit_is_used_up_by_what_moved_nothing() -> None:
    play = Play(CLAUDE, CODEX, kind=ParticipantKind.API)
    play.start("collaborate", limits=Limits(tokens=100))
    play.reply(CLAUDE, "{not json", usage=Usage(input=100))

    assert play.session.reason == EndReason.EMERGENCY_TOKENS
    assert len(play.all(TurnSignal)) == 1


def test_activity_that_uses_up_a_limit_ends_the_session() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot", limits=Limits(tokens=100))
    play.reply(CLAUDE, "looking around", activity=True, usage=Usage(input=100))

    assert play.session.reason == EndReason.EMERGENCY_TOKENS
