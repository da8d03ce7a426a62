"""Random histories of a room in which sessions run, each a function of the bytes hypothesis draws."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from hypothesis import strategies as st

from csp.errors import BadInput, CspError
from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    DeliveryState,
    Ending,
    HeldReason,
    JoinRole,
    Mode,
    ParticipantKind,
    SessionAction,
)
from csp.protocol.requests import Usage
from csp.protocol.review_messages import (
    MAILBOX,
    Decision,
    RunAction,
    RunContext,
    RunPhase,
    RunRole,
    RunTerms,
    Verdict,
)
from csp.protocol.session_parts import Limits, OnHardLimit, OnLimit, Price
from csp.room.commands import (
    ActOnRun,
    AnyCommand,
    CancelMessage,
    CastVote,
    CheckRun,
    Collaborate,
    ExtendTurn,
    HandOffTurn,
    Join,
    Leave,
    NextTurn,
    PostReply,
    PrepareRun,
    RedactMessage,
    Rejoin,
    Remove,
    ReportDelivery,
    RoomRules,
    SayInRun,
    Send,
    SetMode,
    SetState,
    Slept,
    Steer,
    Stop,
    Tick,
)
from csp.room.decide import decide
from csp.room.room_reducer import replay
from csp.room.room_state import Room
from csp.room.runs.run_commands import read_message
from csp.room.runs.run_protocol import TURN_OF
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_state import Session, Turn
from csp.room.sessions.steering import next_deadline
from tests.room.histories import Dice, Step
from tests.room.playing import PROMPTS

STEP_BYTES: Final = 10
MAX_STEPS: Final = 45
START: Final = 1_700_000_000.0
RULES: Final = RoomRules(
    soft_turns=3, limits=Limits(turns=12, tokens=4000, minutes=30.0), prompts=PROMPTS, longest_s=400.0
)
THREADS: Final = ("default", "default", "default", "dev")
#: What a reply ends with; what it begins with is said once in a history.
ENDS: Final = (
    *(
        "",
        "",
        "\n@handoff.codex go on",
        "\n@handoff.claude go on",
        "\n@handoff.gpt go on",
        "\nAGREE",
        "\nAGREE",
    ),
    *(
        "\nVOTE: [A]",
        "\nVOTE: [B]",
        "\nVOTE: [A]\nREASON: good",
        "\nVOTE: [C]",
        "\n@final",
        "\n@send.codex psst <{0}>",
    ),
    *("\n@handoff.mallory go on", "\n@all look <{0}>", "\n@working hard", '\n@mode.set single "x"'),
)
WHOLE: Final = (
    *("@working on it", "NOOP", " ", "allstop", "@query.log 3", "@mode.status", '{"message": "<{0}>"}'),
    *('{"message": "<{0}>", "handoff": {"to": "gpt", "task": "t"}}', '{"message": 5}'),
    *('{"message": "<{0}>", "final": true}', '```json\n{{"message": "<{0}>"}}\n```'),
)
LIMITS: Final = (Limits(turns=3), Limits(tokens=300), Limits(cost=0.5), Limits(minutes=5.0))
TEAMS: Final = (None, None, ("claude", "codex"), ("gpt", "claude"), ("codex", "codex"), ("nobody",))
RUN_WORDS: Final = {
    RunPhase.START: ["ACK: hi", "ACK: hi\nSUBSCRIBE: steps"],
    RunPhase.PLAN: ["PLAN: it\n- a"],
    RunPhase.FEEDBACK: ["RISK: low", "RISK: low", "RISK: high", "RISK: low\nALTERNATIVE: b\n- c"],
    RunPhase.EXECUTION: ["DONE: x", "DONE: x", "STEP: x", "ALERT: critical - no", "ALERT: info - hm"],
    RunPhase.WATCH: ["NOOP", "ALERT: info - hm", "ALERT: critical - no"],
    RunPhase.DECISION: [
        "DECISION: accept",
        "DECISION: accept\nRESOLVED: f-1",
        "DECISION: revise\nFINDING: major - a",
        "DECISION: revise\nFINDING: minor - a",
        "DECISION: revise\nRESOLVED: f-1",
        "DECISION: abort",
        "DECISION: abort\nRATIONALE: b",
    ],
    RunPhase.CLOSING: ["END: e"],
}
PAUSES_S: Final = (0.0, 0.0, 1.0, 5.0, 30.0, 91.0, 130.0)
#: As long as a turn may take, so that a message can run out just as its reader is asked.
TTL_S: Final = RULES.timeout_s
S = DeliveryState


class Player:
    """Make up commands that mostly fit the sessions that run."""

    def __init__(self) -> None:
        self.count = 0
        self.turns: list[Turn] = []

    def command(self, room: Room, dice: Dice) -> AnyCommand:
        self.count += 1
        for session in room.sessions.live():
            self.turns += [turn for turn in session.turns.values() if turn not in self.turns]
        return dice.pick(_WISHES)(self, room, dice)

    def agent(self, room: Room, dice: Dice) -> AgentId:
        return dice.pick([*list(room.participants) * 6, AgentId("mallory")])

    def session(self, room: Room, dice: Dice) -> Session | None:
        return dice.pick([*list(room.sessions.live()) * 4, *room.sessions.by_id.values()] or [None])

    def open_turn(self, room: Room, dice: Dice) -> Turn | None:
        return dice.pick([turn for one in room.sessions.live() for turn in one.turns.values()] or [None])

    def text(self, dice: Dice) -> str:
        if dice.pick([False, False, False, True]):
            return dice.pick(WHOLE).replace("{0}", f"text {self.count}").replace("{{", "{").replace("}}", "}")
        return f"<text {self.count}>" + dice.pick(ENDS).format(f"text {self.count}b")

    # --- one wish each ---

    def start(self, room: Room, dice: Dice) -> AnyCommand:
        limits = dice.pick([Limits(), *LIMITS])
        options: dict[str, Any] = {
            "agents": dice.pick(TEAMS),
            "rounds": dice.pick([None, 1, 2, 3]),
            "synth": dice.pick([None, None, "codex"]),
            "first": dice.pick([None, None, None, "codex"]),
            "ballot": dice.pick([False, True]),
            "soft_turns": dice.pick([False, False, True]),
            "on_limit": dice.pick([None, None, *OnLimit]),
            "on_hard_limit": dice.pick([None, None, *OnHardLimit]),
        }
        mode = dice.pick([*list(Mode), Mode.DEBATE, Mode.CONSENSUS, Mode.CONSENSUS])
        return SetMode(
            sender=HUMAN, mode=mode, topic="a topic", limits=limits, thread=dice.pick(THREADS), **options
        )

    def collaborate(self, room: Room, dice: Dice) -> AnyCommand:
        """Begin a collaboration, or go on with one that runs or is over."""
        known = [one.id for one in room.sessions.by_id.values() if one.setup.collaboration]
        return Collaborate(
            sender=HUMAN,
            objective="an objective",
            agents=dice.pick([("claude", "codex", "gpt"), ("gpt", "claude"), ("gpt",), None]),
            session=dice.pick([None, "a-name", *known * 2]),
            said=dice.pick(["", f"<text {self.count}>"]),
            mode=dice.pick([None, None, "orchestrator"]),
            steps=dice.pick([1, 2, 3, 4]),
            parallel=dice.pick([None, 2, 3]),
            step_s=dice.pick([None, 20.0, 200.0]),
            cost=dice.pick([None, 0.5]),
            prices=dice.pick([{}, {AgentId("gpt"): Price(input=100.0, output=300.0)}]),
        )

    def reply(self, room: Room, dice: Dice) -> AnyCommand:
        turn = self.open_turn(room, dice)
        if turn is None:
            return self.start(room, dice)
        runs = [run for run in room.runs.by_id.values() if run.role_of(turn.agent) and not run.is_over]
        return self.answer_to(turn, dice, _run_words(runs[0].phase, dice) if runs else "")

    def late_reply(self, room: Room, dice: Dice) -> AnyCommand:
        return self.answer_to(dice.pick(self.turns), dice) if self.turns else Tick()

    def answer_to(self, turn: Turn, dice: Dice, words: str = "") -> AnyCommand:
        by_message = dice.pick([False, True])
        return PostReply(
            sender=turn.agent,
            text=words or self.text(dice),
            turn=None if by_message else turn.id,
            reply_to=turn.message if by_message else None,
            activity=dice.pick([False, False, False, False, True]),
            ending=dice.pick([Ending.DONE] * 8 + [Ending.FAILED, Ending.LIMITED]),
            usage=dice.pick([None, Usage(input=50, output=10, cost_usd=0.2, model="m")]),
        )

    def talk(self, room: Room, dice: Dice) -> AnyCommand:
        sender = self.agent(room, dice)
        return PostReply(sender=sender, text=self.text(dice), thread=dice.pick(THREADS))

    def send(self, room: Room, dice: Dice) -> AnyCommand:
        sender = dice.pick([HUMAN, *room.participants])
        text = dice.pick([f"<text {self.count}>"] * 6 + ["All stop!"])
        to = dice.pick([ALL, *room.participants])
        return Send(sender=sender, to=to, text=text, thread=dice.pick(THREADS), ttl_s=TTL_S)

    def report(self, room: Room, dice: Dice) -> AnyCommand:
        turn = self.open_turn(room, dice)
        state = dice.pick([S.SUBMITTED, S.CONFIRMED, S.CONFIRMED, S.TYPED, S.HELD, S.FAILED])
        reason = dice.pick([HeldReason.DRAFT, HeldReason.BUSY])
        if turn is None:
            return Tick()
        return ReportDelivery(agent=turn.agent, message=turn.message, state=state, reason=reason)

    def cancel(self, room: Room, dice: Dice) -> AnyCommand:
        turn = self.open_turn(room, dice)
        return CancelMessage(message=turn.message) if turn else Tick()

    def redact(self, room: Room, dice: Dice) -> AnyCommand:
        return RedactMessage(message=dice.pick(list(room.messages) or ["m-1"]))

    def set_state(self, room: Room, dice: Dice) -> AnyCommand:
        state = dice.pick([AgentState.NEEDS_APPROVAL, AgentState.IDLE, AgentState.BUSY, AgentState.LIMITED])
        until = dice.pick([None, START + 100, START + 1000])
        return SetState(agent=self.agent(room, dice), state=state, until=until)

    def steer(self, room: Room, dice: Dice) -> AnyCommand:
        session = self.session(room, dice)
        action = dice.pick(list(SessionAction))
        agent = dice.pick([None, *room.participants])
        return Steer(
            sender=HUMAN,
            session=session.id if session else "s-0",
            action=action,
            agent=agent,
            choice=dice.pick(["continue", "continue", "skip", "end", "ok", "A"]),
            rounds=dice.pick([None, 1]),
            minutes=dice.pick([None, 1.0]),
        )

    def next(self, room: Room, dice: Dice) -> AnyCommand:
        return NextTurn(thread=dice.pick(THREADS))

    def keep(self, room: Room, dice: Dice) -> AnyCommand:
        return ExtendTurn(agent=self.agent(room, dice))

    def vote(self, room: Room, dice: Dice) -> AnyCommand:
        return CastVote(agent=self.agent(room, dice), label=dice.pick(["A", "b", "Z"]))

    def hand(self, room: Room, dice: Dice) -> AnyCommand:
        return HandOffTurn(agent=self.agent(room, dice), to=self.agent(room, dice), task="go on")

    def stop(self, room: Room, dice: Dice) -> AnyCommand:
        return Stop(sender=HUMAN, thread=dice.pick([*THREADS, None]))

    def come(self, room: Room, dice: Dice) -> AnyCommand:
        agent = self.agent(room, dice)
        ways: list[AnyCommand] = [
            Leave(agent=agent, reason="closed"),
            Rejoin(agent=agent),
            Rejoin(agent=agent, launch=f"launch-{self.count}"),
            Remove(agent=agent),
        ]
        return dice.pick(ways)

    def tick(self, room: Room, dice: Dice) -> AnyCommand:
        return Tick()

    def sleep(self, room: Room, dice: Dice) -> AnyCommand:
        return Slept(seconds=dice.pick([20.0, 5000.0]))

    def review(self, room: Room, dice: Dice) -> AnyCommand:
        """Begin a run, or go on with one."""
        runs = [run for run in room.runs.by_id.values() if not run.is_over]
        if not runs:
            return SetMode(
                sender=HUMAN,
                mode="review",
                topic="a run",
                agents=dice.pick([("claude", "codex"), ("gpt", "mailbox"), ("mailbox", "mailbox")]),
                max_revisions=dice.pick([0, 1, 3]),
                terms=RunTerms(approve=dice.pick([False, False, True])),
            )
        run = dice.pick(runs)
        work = self.work_of(run)
        return work if work is not None and dice.pick([True, True, False]) else self.say_in(run, dice)

    def work_of(self, run: ReviewRun) -> AnyCommand | None:
        if run.phase is RunPhase.SETUP:
            return PrepareRun(run=run.id, context=RunContext(dir="/d"))
        if run.phase is RunPhase.CHECKS and run.update is not None:
            return CheckRun(run=run.id, cycle=run.cycle, step=run.steps, update=run.update)
        return None

    def say_in(self, run: ReviewRun, dice: Dice) -> AnyCommand:
        role = dice.pick(list(RunRole))
        turn_of = TURN_OF.get(run.phase, role)
        role = dice.pick([turn_of, turn_of, role])
        words = _run_words(run.phase, dice)
        act = ActOnRun(
            sender=HUMAN,
            run=run.id,
            action=dice.pick([*RunAction, RunAction.RESUME, RunAction.GO, RunAction.DECIDE]),
            decision=dice.pick([None, *Decision]),
            rationale=dice.pick(["", "because"]),
            finding=dice.pick([None, "f-1"]),
            verdict=dice.pick([None, Verdict.CONFIRMED]),
        )
        try:
            body = read_message(words, role, run.id)
        except BadInput:
            return act
        key = dice.pick(["", f"k{self.count}", "again"])
        say = SayInRun(sender=MAILBOX, run=run.id, role=role, body=body, key=key)
        ways: list[AnyCommand] = [say, say, say, act]
        return dice.pick(ways)


def _run_words(phase: RunPhase, dice: Dice) -> str:
    """Return words that mostly fit the phase of a run."""
    fitting = RUN_WORDS.get(phase, ["DONE: x"])
    return dice.pick([*fitting * 3, *(word for words in RUN_WORDS.values() for word in words)])


_WEIGHTS: Final[dict[Callable[[Player, Room, Dice], AnyCommand], int]] = {
    Player.reply: 16,
    Player.start: 4,
    Player.collaborate: 3,
    Player.report: 5,
    Player.tick: 6,
    Player.late_reply: 2,
    Player.talk: 2,
    Player.send: 3,
    Player.set_state: 4,
    Player.sleep: 1,
    Player.steer: 3,
    Player.next: 1,
    Player.keep: 1,
    Player.vote: 2,
    Player.hand: 1,
    Player.stop: 1,
    Player.come: 2,
    Player.cancel: 1,
    Player.redact: 1,
    Player.review: 12,
}
_WISHES: Final = [wish for wish, weight in _WEIGHTS.items() for _ in range(weight)]
_MEMBERS: Final = (
    Join(name="claude"),
    Join(name="codex"),
    Join(name="gpt", kind=ParticipantKind.API),
    Join(name="orchestrator", role=JoinRole.ORCHESTRATOR),
)


def session_histories() -> st.SearchStrategy[bytes]:
    """Draw the script of a history."""
    return st.integers(0, MAX_STEPS).flatmap(
        lambda steps: st.binary(min_size=steps * STEP_BYTES, max_size=steps * STEP_BYTES)
    )


def play_sessions(script: bytes) -> Iterator[tuple[Step, float]]:
    """Play a script in a room of three agents with an orchestrator; yield each step with its time."""
    room, clock, player = Room(), START, Player()
    dice = Dice(script[:1])
    for command in _MEMBERS[: 4 - dice.pick([0, 1])]:
        events = decide(room, command, clock, RULES)
        room = replay(events, room)
        yield Step(command, events, None, room), clock
    for at in range(0, len(script), STEP_BYTES):
        dice = Dice(script[at : at + STEP_BYTES])
        clock += dice.pick(PAUSES_S)
        wish = player.command(room, dice)
        deadline = next_deadline(room, RULES)
        if isinstance(wish, Slept):
            clock += wish.seconds
        if isinstance(wish, Tick) and deadline is not None:
            clock = max(clock, deadline)
        step = step_of(room, wish, clock)
        room = step.room
        yield step, clock


def step_of(room: Room, command: AnyCommand, now: float) -> Step:
    """Decide one command, take in what it causes."""
    try:
        events = decide(room, command, now, RULES)
    except CspError as exc:
        return Step(command, [], exc, room)
    return Step(command, events, None, replay(events, room))
