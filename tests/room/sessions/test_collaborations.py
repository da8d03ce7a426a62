"""Collaborations: several at once, steps, results, going on."""

from typing import Any

import pytest
from msgspec.structs import replace

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import HUMAN, AgentId, Ending, JoinRole, MessageId, ParticipantKind, SessionAction
from csp.protocol.events import AgentCall, AgentResponse, HumanMessage, NoticePosted, TurnSignal
from csp.protocol.notes import FoundBy, HitView, NoteKind, NoteView, Source
from csp.protocol.requests import Handoff, Usage
from csp.protocol.responses import CollaborationView
from csp.protocol.session_parts import Price
from csp.room.board_state import HIT_TOKENS
from csp.room.commands import (
    Collaborate,
    Join,
    Leave,
    PostReply,
    RedactMessage,
    Remove,
    Send,
    SetMode,
    Stop,
    Tick,
)
from csp.room.room_reducer import replay
from csp.room.room_state import Room, dump, load
from csp.room.sessions.session_reducer import KEPT_COLLABORATIONS, KEPT_ENDED
from csp.room.sessions.session_state import tokens_in
from csp.room.sessions.session_views import collaboration_view
from csp.room.sessions.turn_reducer import KEPT_COURSE
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, RULES, Play
from tests.room.playing import NAMES as NAMES_OF_PROMPTS

NAMES = ("claude", "codex", "gemini")
FREE = {agent: Price(input=0.0, output=0.0) for agent in (CLAUDE, CODEX, GEMINI)}


class Work(Play):
    """A room of models; its last collaboration is the session."""

    def __init__(self, *agents: AgentId, kind: ParticipantKind = ParticipantKind.API, **fields: Any) -> None:
        super().__init__(*agents, kind=kind, **fields)
        self.id = ""

    def collaborate(self, objective: str = "a plan", **fields: Any) -> None:
        options: dict[str, Any] = {"agents": NAMES, "prices": FREE} | fields
        self.do(Collaborate(sender=HUMAN, objective=objective, **options))
        self.id = [one.id for one in self.room.sessions.by_id.values() if one.setup.collaboration][-1]

    def go_on(self, said: str = "", **fields: Any) -> None:
        self.do(Collaborate(sender=HUMAN, session=self.id, said=said, **{"prices": FREE} | fields))

    @property
    def session(self) -> Any:
        return self.room.sessions.by_id[self.id]  # type: ignore[index]  # ids are str

    def fail(self, agent: AgentId, reason: str = "no key") -> None:
        self.reply(agent, "", ending=Ending.FAILED, reason=reason)

    def finish(self) -> None:
        while self.waiting:
            self.reply_all()

    def asked(self) -> list[AgentId]:
        return [event.target for event in self.all(TurnSignal)]

    def told(self, thread: str = "default") -> list[str]:
        return [event.text for event in self.all(NoticePosted) if event.thread == thread]


# --- one after the other ---------------------------------------------------------------------------


def test_models_take_turns_by_their_index_then_the_first_sums_up() -> None:
    work = Work()
    work.collaborate(steps=4)
    work.finish()

    assert work.asked() == [CLAUDE, CODEX, GEMINI, CLAUDE, CLAUDE]
    assert "<synthesise>" in work.prompt(CLAUDE)
    assert (work.ended, work.session.steps) == ("done", 4)


def test_ten_steps_unless_somebody_says_otherwise() -> None:
    work = Work()
    work.collaborate()
    work.finish()

    assert len(work.asked()) == 10 + 1


def test_result_is_told_once_where_it_is_waited_for() -> None:
    work = Work()
    work.collaborate(steps=1, agents=("claude",))
    work.reply(CLAUDE, "one")
    work.reply(CLAUDE, "the whole")

    assert work.told() == [f"Collaboration {work.id}: ROUND_ROBIN complete.\nthe whole"]
    assert {event.thread for event in work.all(AgentResponse)} == {work.session.thread} != {"default"}


def test_result_goes_to_the_thread_that_was_named() -> None:
    work = Work()
    work.collaborate(steps=1, thread="dev")
    work.finish()

    assert work.told() == []
    assert len(work.told("dev")) == 1


def test_final_answer_ends_it_before_its_steps() -> None:
    work = Work()
    work.collaborate()
    work.reply(CLAUDE, "draft")
    work.reply(CODEX, "done", final=True)
    work.fail(CLAUDE)

    assert work.ended == "final"
    assert work.session.result.text == "done", "no synthesis, so what ended it stands"


@pytest.mark.parametrize("blank", ["   ", "NOOP"])
def test_blank_synthesis_leaves_a_summary(blank: str) -> None:
    work = Work()
    work.collaborate(steps=1)
    work.reply(CLAUDE, "one")
    work.reply(CLAUDE, blank)

    assert work.session.result is None
    assert "No synthesis was written: a summary replaces it." in work.notices
    assert "- claude: one" in work.told()[0]


def test_failed_model_is_passed_over_named_and_left_out_after_two_failures() -> None:
    work = Work()
    work.collaborate(steps=7)
    for _ in range(2):
        work.reply(CLAUDE, "a")
        work.fail(CODEX)
        work.reply(GEMINI, "b")
    work.finish()

    assert work.asked() == [CLAUDE, CODEX, GEMINI] * 2 + [CLAUDE, CLAUDE]
    assert work.session.failed == {CODEX: "its answer was failed: no key"}
    assert "codex is benched: it gets no turns until it posts something." in work.notices


def test_model_that_is_away_costs_no_step() -> None:
    work = Work()
    work.do(Leave(agent=CODEX, reason="closed"))
    work.collaborate(steps=3)
    work.finish()

    assert work.asked() == [CLAUDE, GEMINI, CLAUDE, CLAUDE]
    assert work.session.failed == {CODEX: "it is offline"}


def test_all_that_fail_end_it() -> None:
    work = Work()
    work.collaborate()
    for agent in (CLAUDE, CODEX, GEMINI):
        work.fail(agent)

    assert work.ended == "all_failed"


def test_one_who_recovers_is_not_named_any_more() -> None:
    work = Work()
    work.collaborate(agents=("claude", "codex"), steps=4)
    work.fail(CLAUDE)
    work.reply(CODEX)
    work.reply(CLAUDE)

    assert work.session.failed == {}


def test_synthesis_is_asked_of_one_who_works() -> None:
    work = Work()
    work.collaborate(steps=2, agents=("claude", "codex"))
    work.fail(CLAUDE)
    work.reply(CODEX)

    assert work.waiting == (CODEX,)
    assert "<synthesise>" in work.prompt(CODEX)


def test_nobody_left_to_sum_up_ends_with_a_summary() -> None:
    work = Work()
    work.collaborate(steps=1, agents=("claude",))
    work.do(Leave(agent=CLAUDE, reason="closed"))
    work.fail(CLAUDE)

    assert work.ended == "done"
    assert "No synthesis" not in "".join(work.notices), "nobody was asked for one"


def test_step_that_times_out_is_skipped_with_a_notice() -> None:
    work = Work()
    work.collaborate(step_s=20.0)
    work.deliver(CLAUDE)
    work.wait(19.0)

    assert work.waiting == (CLAUDE,)
    work.wait(1.0)
    assert work.waiting == (CODEX,)
    assert "claude: timed out, no reply in 20 s. The turn passes on." in work.notices


def test_step_takes_five_minutes_at_most_by_default() -> None:
    work = Work(kind=ParticipantKind.CLI)
    work.collaborate()
    work.deliver(CLAUDE)

    assert work.deadline() == work.now + RULES.warn_s
    work.wait(RULES.warn_s)
    assert work.deadline() == work.now - RULES.warn_s + 300


# --- several at once -------------------------------------------------------------------------------


def test_as_many_are_asked_at_once_as_was_said_no_more() -> None:
    work = Work()
    work.collaborate(parallel=2, steps=6)
    groups = []
    while work.session.stage.name == "turns":
        groups.append(work.waiting)
        work.reply_all()

    assert groups == [(CLAUDE, CODEX), (CLAUDE, GEMINI), (CODEX, GEMINI)]


def test_order_of_the_answers_does_not_move_the_index() -> None:
    work = Work()
    work.collaborate(parallel=2)
    work.reply(CODEX, "first")
    work.reply(CLAUDE, "second")

    assert work.asked()[2:] == [GEMINI, CLAUDE]


def test_more_at_once_than_there_are_models_asks_each_once() -> None:
    work = Work()
    work.collaborate(parallel=12, steps=4)

    assert work.asked() == [CLAUDE, CODEX, GEMINI]
    work.reply_all()
    assert work.waiting == (CLAUDE,), "one step is left"


def test_group_waits_for_all_then_the_synthesis_has_every_answer() -> None:
    work = Work()
    work.collaborate(parallel=3, steps=3)
    work.reply(GEMINI, "red")
    work.reply(CLAUDE, "green")

    assert work.waiting == (CODEX,)
    work.reply(CODEX, "blue")
    assert all(word in work.prompt(CLAUDE) for word in ("red", "green", "blue", "<synthesise>"))


def test_final_of_one_among_several_ends_it_once_all_are_in() -> None:
    work = Work()
    work.collaborate(parallel=2)
    work.reply(CLAUDE, "solved", final=True)
    assert work.waiting == (CODEX,)
    work.reply(CODEX, "not sure")
    work.reply(CLAUDE, "sum")

    assert work.ended == "final"


def test_final_of_an_earlier_group_is_not_heard_twice() -> None:
    work = Work()
    work.collaborate(parallel=2)
    work.reply(CLAUDE, "solved", final=True)
    work.reply(CODEX)
    work.reply(CLAUDE, "sum")
    work.go_on()
    work.reply_all()

    assert work.ended is None


def test_group_is_filled_up_where_one_cannot_be_asked() -> None:
    work = Work()
    work.do(Leave(agent=CLAUDE, reason="closed"))
    work.collaborate(parallel=2)

    assert work.waiting == (CODEX, GEMINI)


def test_allstop_ends_all_that_are_asked_at_once() -> None:
    work = Work()
    work.collaborate(parallel=3)
    work.do(Send(sender=HUMAN, to="all", text="Allstop!"))
    work.do(PostReply(sender=CLAUDE, text="too late", turn=work.all(TurnSignal)[0].turn))

    assert work.ended == "stopped_by_user"
    assert work.all(AgentResponse) == []
    assert work.told() == [f"Collaboration {work.id}: Collaboration stopped by user (Allstop)."]


@pytest.mark.parametrize("thread", [None, "default"])
def test_stop_in_the_thread_of_the_caller_stops_it(thread: str | None) -> None:
    work = Work()
    work.collaborate()
    work.do(Stop(sender=HUMAN, thread=thread))

    assert work.ended == "stopped_by_user"


def test_stop_of_another_thread_leaves_it() -> None:
    work = Work()
    work.collaborate()
    work.do(Stop(sender=HUMAN, thread="elsewhere"))

    assert work.ended is None


# --- led by one ------------------------------------------------------------------------------------


def lead(work: Work, **fields: Any) -> None:
    work.collaborate(mode="orchestrator", **fields)


def test_first_model_leads_even_where_an_orchestrator_is_in_the_room() -> None:
    work = Work()
    work.join_boss()
    lead(work)
    work.reply(CLAUDE, "go", handoff=Handoff(to="gemini", task="look"))

    assert work.asked() == [CLAUDE, GEMINI]
    assert work.session.agents == (CLAUDE, CODEX, GEMINI)


def test_lead_that_names_nobody_is_asked_to_sum_up() -> None:
    work = Work()
    lead(work)
    for text in "abc":
        work.reply(CLAUDE, f'{{"message": "{text}"}}')
    work.reply(CLAUDE, "the whole")

    assert (work.ended, work.session.result.text) == ("no_handoff", "the whole")


def test_last_word_of_the_lead_is_the_result() -> None:
    work = Work()
    lead(work)
    work.reply(CLAUDE, "all done", final=True)

    assert (work.ended, work.session.result.text) == ("final", "all done")


def test_final_of_one_that_is_led_is_no_result() -> None:
    work = Work()
    lead(work)
    work.reply(CLAUDE, "go", handoff=Handoff(to="codex", task="look"))
    work.reply(CODEX, "I am done", final=True)

    assert work.waiting == (CLAUDE,)
    assert work.session.result is None


def test_steps_of_the_lead_count() -> None:
    work = Work()
    lead(work, steps=2)
    work.reply(CLAUDE, "go", handoff=Handoff(to="codex", task="look"))
    assert "Round 2 of 2" in work.prompt(CODEX)
    work.reply(CODEX, '{"message": "found"}')

    assert "<synthesise>" in work.prompt(CLAUDE)
    work.reply(CLAUDE, "the whole")
    assert work.ended == "cap_reached"


def test_lead_names_one_at_a_time() -> None:
    work = Work()
    lead(work, parallel=3)

    assert work.waiting == (CLAUDE,)
    assert "claude names one speaker at a time, so `parallel` is ignored." in work.notices


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"agents": None}, "no models were named"),
        ({"agents": ()}, "agents is empty"),
        ({"agents": ("claude", "gpt9")}, "unknown agent 'gpt9'"),
        ({"agents": ("claude", "claude")}, "an agent is named twice"),
        ({"objective": " "}, "objective is empty"),
        ({"mode": "debate"}, "a collaboration cannot be a debate"),
        ({"mode": "chaos"}, "unknown mode 'chaos'"),
        ({"mode": "orchestrator", "agents": ("claude",)}, "orchestrator needs at least 2 agents, got 1"),
        ({"session": "default"}, "'default' is not a valid collaboration name"),
    ],
)
def test_odd_wish_is_refused(fields: dict[str, Any], problem: str) -> None:
    work = Work()
    wanted = {"objective": "a plan", "agents": NAMES} | fields

    assert problem in work.refuse(Collaborate(sender=HUMAN, **wanted), BadInput).message


def test_unknown_models_hint_names_who_is_there() -> None:
    work = Work()
    refusal = work.refuse(Collaborate(sender=HUMAN, objective="x"), BadInput)

    assert "claude, codex, gemini" in refusal.hint
    empty = Work(CLAUDE)
    empty.do(Remove(agent=CLAUDE))
    assert "nobody yet" in empty.refuse(Collaborate(sender=HUMAN, objective="x"), BadInput).hint


def test_one_who_takes_part_cannot_begin_another() -> None:
    work = Work()
    work.do(Join(name="orchestrator", role=JoinRole.ORCHESTRATOR))
    wish = Collaborate(sender=BOSS, objective="deeper", agents=("claude",))
    work.start("round_robin", agents=("orchestrator", "codex"))
    work.do(wish)
    work.do(Stop(sender=HUMAN, thread=None))
    work.collaborate(agents=("orchestrator", "codex"))

    assert f"orchestrator takes part in collaboration {work.id}" in work.refuse(wish, Refused).message


def test_cli_is_in_one_session_at_a_time_a_model_in_many() -> None:
    work = Work(kind=ParticipantKind.CLI)
    work.collaborate()
    again = Collaborate(sender=HUMAN, objective="x", agents=("claude",))

    assert "claude is in session" in work.refused(again)
    models = Work()
    models.collaborate(agents=("claude",))
    models.collaborate(agents=("claude",))
    assert len(list(models.room.sessions.live())) == 2


# --- going on --------------------------------------------------------------------------------------


def test_one_that_is_over_goes_on_where_it_was() -> None:
    work = Work()
    work.collaborate(steps=2)
    work.finish()
    before = work.session
    work.now += 1000
    work.go_on("and now in green", steps=2)

    assert (work.session.status, work.session.thread) == ("running", before.thread)
    assert work.waiting == (GEMINI,), "the index goes on"
    assert "Round 3 of 4" in work.prompt(GEMINI)
    assert "human: and now in green" in work.prompt(GEMINI)
    assert "codex: codex speaks" in work.prompt(GEMINI), "what was said before is in its window"
    work.finish()
    assert (work.ended, work.session.steps) == ("done", 4)
    assert len(work.told()) == 2, "each time the result is told once"
    assert work.session.idle_s == 1000


def test_one_that_runs_gets_more_steps() -> None:
    work = Work()
    work.collaborate(steps=2)
    work.reply(CLAUDE)
    work.go_on("shorter", steps=2)

    assert work.waiting == (CODEX,)
    work.reply(CODEX)
    assert "human: shorter" in work.prompt(GEMINI)
    assert work.session.setup.rounds == 4


def test_ten_more_steps_unless_somebody_says_otherwise() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.finish()
    work.go_on()

    assert work.session.setup.rounds == 11


def test_synthesis_under_way_makes_way_for_more_steps() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.reply(CLAUDE)
    work.go_on(steps=1)

    assert work.waiting == (CODEX,)
    assert work.session.stage.name == "turns"
    work.finish()
    assert work.ended == "done"


def test_one_that_is_paused_runs_again() -> None:
    work = Work()
    work.collaborate()
    work.steer(SessionAction.PAUSE)
    work.now += 50
    work.go_on()

    assert work.session.is_running
    assert (work.session.idle_s, work.session.paused_at) == (50, None)


def test_good_synthesis_outlives_a_failed_one() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.reply(CLAUDE, "one")
    work.reply(CLAUDE, "the whole")
    work.go_on(steps=1)
    work.reply(CODEX, "more")
    work.fail(CLAUDE)

    assert work.session.result.text == "the whole"
    assert "No synthesis was written: the last one remains valid." in work.notices
    assert work.told()[-1].endswith("\nthe whole")


def test_what_is_left_out_stays_what_is_given_changes() -> None:
    work = Work()
    work.do(Join(name="gpt", kind=ParticipantKind.API))
    work.collaborate("a plan", steps=1, parallel=2, step_s=9.0, cost=1.0, summarise_at=7)
    work.finish()
    work.go_on(steps=1)
    kept = work.session.setup
    work.finish()
    work.go_on(agents=("gpt", "codex"), objective="a better one", parallel=1, cost=2.0, mode="orchestrator")
    changed = work.session.setup

    assert (kept.topic, kept.limits.cost, kept.synth) == ("a plan", 1.0, CLAUDE)
    assert (kept.collaboration.parallel, kept.collaboration.step_s) == (2, 9.0)
    assert (changed.topic, changed.limits.cost, changed.lead) == ("a better one", 2.0, "gpt")
    assert (changed.synth, changed.agents) == ("gpt", ("gpt", "codex"))
    assert (changed.collaboration.parallel, changed.collaboration.summarise_at) == (1, 7)
    assert work.waiting == ("gpt",)


def test_turn_of_one_that_is_left_out_is_taken_back() -> None:
    work = Work()
    work.collaborate(parallel=2)
    work.go_on(agents=("codex", "gemini"))

    assert list(work.waiting) == [CODEX]
    work.reply(CODEX)
    assert list(work.waiting) == [CODEX, GEMINI]


def test_one_that_has_left_the_room_does_not_go_on() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.finish()
    work.do(Remove(agent=CLAUDE))
    work.go_on(steps=1)

    assert work.session.agents == (CODEX, GEMINI)
    work.do(Stop(sender=HUMAN, thread=None))
    work.do(Remove(agent=CODEX))
    work.do(Remove(agent=GEMINI))
    again = Collaborate(sender=HUMAN, session=work.id)
    assert "round_robin needs at least 1 agents, got 0" in work.refused(again)


def test_failed_model_gets_another_chance() -> None:
    work = Work()
    work.collaborate(agents=("claude", "codex"), steps=4)
    for _ in range(2):
        work.fail(CLAUDE)
        work.reply(CODEX)
    work.finish()
    work.go_on(steps=2)

    assert work.waiting == (CLAUDE,)


def test_cli_that_is_busy_elsewhere_does_not_go_on() -> None:
    work = Work(kind=ParticipantKind.CLI)
    work.collaborate(steps=1)
    work.finish()
    work.start("collaborate", agents=("codex",))

    assert "codex is in session" in work.refused(Collaborate(sender=HUMAN, session=work.id))


def test_another_session_in_its_thread_is_not_pushed_aside() -> None:
    work = Work()
    work.collaborate(steps=1, session="plan")
    work.finish()
    work.do(SetMode(sender=HUMAN, mode="autopilot", agents=("codex",), thread="plan"))

    assert "runs in thread plan" in work.refused(Collaborate(sender=HUMAN, session=work.id))


def test_name_of_a_collaboration_begins_it_then_goes_on_with_it() -> None:
    work = Work()
    work.collaborate(session="plan-b", steps=1)
    work.finish()
    first = work.id
    work.id = "plan-b"
    work.go_on(steps=1)

    assert (work.room.sessions.by_id[first].status, work.room.sessions.by_id[first].thread) == (  # type: ignore[index]
        "running",
        "plan-b",
    )


def test_unknown_or_other_sessions_do_not_go_on() -> None:
    work = Work()
    unknown = work.refuse(Collaborate(sender=HUMAN, session="s-99"), NotFound)
    assert (unknown.message, unknown.hint) == (
        "unknown collaboration 's-99', or it ended too long ago",
        "omit session_id to start one",
    )
    work.collaborate()
    assert work.id in work.refuse(Collaborate(sender=HUMAN, session="s-99"), NotFound).hint
    work.start("round_robin")
    other = work.room.sessions.newest_in("default")
    assert other is not None
    assert f"{other.id} is not a collaboration" in work.refused(Collaborate(sender=HUMAN, session=other.id))


def test_words_of_one_who_is_no_person_are_its_own() -> None:
    work = Work()
    work.join_boss()
    wish = Collaborate(sender=BOSS, objective="x", agents=("claude",), said="mind the budget")
    work.do(wish)

    assert [event.text for event in work.all(AgentCall)] == ["mind the budget"]
    assert work.all(HumanMessage) == []
    assert "orchestrator: mind the budget" in work.prompt(CLAUDE)


def test_collaborations_are_remembered_longer_than_other_sessions() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.finish()
    first = work.id
    for _ in range(KEPT_ENDED + 4):
        work.start("single", agents=("claude",))
    work.go_on(steps=1)
    work.finish()
    assert work.session.steps == 2
    for _ in range(KEPT_COLLABORATIONS):
        work.collaborate(steps=1, agents=("codex",))
        work.finish()

    assert first not in work.room.sessions.by_id


def test_restart_in_the_middle_changes_nothing() -> None:
    work = Work()
    work.collaborate(parallel=2, steps=5)
    work.reply(CODEX, "blue")
    work.go_on("a hint", steps=1)
    live = dump(work.room)

    assert dump(replay(work.journal, Room())) == live
    work.room = load(live)
    work.finish()
    assert (work.ended, work.session.steps) == ("done", 6)


def test_text_that_is_taken_out_is_no_result() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.reply(CLAUDE, "one")
    work.reply(CLAUDE, "the whole")
    other = work.all(AgentResponse)[0].id
    work.do(RedactMessage(message=other))
    assert work.session.result.text == "the whole"
    work.do(RedactMessage(message=work.session.result.message))
    assert work.session.result is None
    work.go_on(steps=1)
    work.finish()
    work.room.sessions.drop_texts()
    assert work.session.result is None


# --- how it is shown -------------------------------------------------------------------------------


def view(work: Work, after: int | None = None) -> CollaborationView:
    return collaboration_view(work.session, work.session.setup.collaboration, after)


def test_view_says_how_far_it_is() -> None:
    work = Work()
    work.collaborate(steps=3, parallel=2, cost=1.0)
    work.reply(CODEX, "blue", usage=Usage(input=10, output=5, cost_usd=0.25))
    shown = view(work)

    assert (shown.status, shown.reason, shown.result) == ("running", None, None)
    assert (shown.step, shown.max_steps, shown.parallel) == (2, 3, 2)
    assert (shown.speakers, shown.waiting, shown.failed) == ((CODEX,), (CLAUDE,), ())
    assert (shown.cost_usd, shown.cost_limit_usd, shown.tokens) == (0.25, 1.0, 15)
    assert shown.progress == ("step 2 of 3: codex replied",)


def test_view_leaves_out_the_lines_that_are_known() -> None:
    work = Work()
    work.collaborate(steps=70, agents=("claude", "codex"))
    work.reply(CLAUDE)
    work.fail(CODEX)
    assert view(work, after=1).progress == ("step 2 of 70: codex failed: its answer was failed: no key",)
    work.finish()
    shown = view(work, after=3)

    assert (shown.lines, len(shown.progress)) == (71, KEPT_COURSE)
    assert view(work, after=70).progress == ("synthesis: claude replied",)
    assert view(work, after=99).progress == ()


def test_view_of_one_that_was_stopped_has_the_result_of_before() -> None:
    work = Work()
    work.collaborate(steps=1)
    work.do(Stop(sender=HUMAN))
    assert view(work).result is None
    work.go_on(steps=1)
    work.finish()
    assert view(work).result == "claude speaks"
    work.go_on(steps=1)
    work.do(Stop(sender=HUMAN))

    assert view(work).result == "claude speaks"


# --- what the whiteboard adds ----------------------------------------------------------------------


def hit(seq: int, text: str, source: str = "") -> HitView:
    note = NoteView(
        id=MessageId(f"n-{seq}"),
        idx=seq,
        session="room",
        thread="default",
        author=GEMINI,
        text=text,
        tags=(),
        kind=NoteKind.NOTE,
        ts=1.0,
        source=Source(seq=seq, type="agent_response", id=MessageId(source)) if source else None,
    )
    return HitView(note=note, score=1.0, how=FoundBy.WORDS)


def with_board() -> Work:
    shown = {name: f"{RULES.prompts[name]} board={{board}}" for name in NAMES_OF_PROMPTS}
    return Work(rules=replace(RULES, prompts={**RULES.prompts, **shown, "board": "BOARD {hits}"}))


def test_hits_come_with_the_turns_of_a_collaboration_that_begins() -> None:
    work = with_board()
    work.collaborate(hits={"": (hit(3, "the attic is full"),)})

    assert "board=BOARD gemini: the attic is full" in work.prompt(CLAUDE)


def test_hits_come_with_the_turn_after_a_reply() -> None:
    work = with_board()
    work.collaborate()
    work.reply(CLAUDE, "and the attic?", hits={work.id: (hit(3, "it is full"),)})

    assert work.prompt(CLAUDE).endswith("board=")
    assert work.prompt(CODEX).endswith("board=BOARD gemini: it is full")


def test_hits_come_with_the_turn_after_a_timeout() -> None:
    work = with_board()
    work.collaborate(step_s=5.0)
    work.deliver(CLAUDE)
    work.now += 5.0
    work.do(Tick(hits={work.id: (hit(3, "it is full"),)}))

    assert "it is full" in work.prompt(CODEX)


def test_what_stands_in_the_window_is_not_shown_twice() -> None:
    work = with_board()
    work.collaborate()
    work.reply(CLAUDE, "blue, of course", id="reply-1")
    work.reply(CODEX, hits={work.id: (hit(9, "blue, of course", "reply-1"), hit(3, "it is full"))})

    assert work.prompt(GEMINI).count("blue, of course") == 2, "in the window, among the positions"
    assert work.prompt(GEMINI).endswith("board=BOARD gemini: it is full")


def test_hits_take_no_more_room_however_many_there_are() -> None:
    work = with_board()
    work.collaborate(hits={"": tuple(hit(seq, "a long note " * 60) for seq in range(1, 30))})

    assert tokens_in(work.prompt(CLAUDE)) < HIT_TOKENS + 200
