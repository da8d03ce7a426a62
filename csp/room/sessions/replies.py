"""What comes of a reply to a turn."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from msgspec.structs import replace

from csp.errors import BadInput, Refused
from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, SYSTEM, DeliverKind, Ending, SessionId
from csp.protocol.events import Activity, AgentResponse, LateReply
from csp.protocol.requests import Handoff
from csp.protocol.review_messages import AnyMessage, MessageType, RunRole
from csp.protocol.session_parts import PhaseKind, TurnState
from csp.room.agent_text import agent_commands
from csp.room.agent_text.agent_commands import AgentTextRunner, kind_of, runnable, sent_for_prompt
from csp.room.agent_text.allstop import is_allstop
from csp.room.agent_text.envelope import Envelope
from csp.room.agent_text.grammar import AgentText, HandOver, ModeRequest, Spoken, Working, read_agent_text
from csp.room.board.board_commands import has_space, place_on_board, tell_full
from csp.room.commands import ExtendTurn, PostReply, Send, Stop
from csp.room.messages.send import confirm_delivery, is_repeated
from csp.room.messages.tool_dedupe import Channel, find_duplicate
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Message, Room
from csp.room.runs.run_message_parser import read_alert, read_message
from csp.room.runs.run_protocol import LEGAL, check_message, give_up, handle_message
from csp.room.sessions.modes import NextSpeaker as Speaking
from csp.room.sessions.modes import row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_notices import remind
from csp.room.sessions.session_state import BallotVote, Turn
from csp.room.sessions.steering import keep_turn, stop
from csp.room.sessions.turn_prompt import max_rounds
from csp.room.sessions.turns import ask_again, can_pay_again, cast, delivered, fail, is_api, keep_open
from csp.room.sessions.votes import read_vote

_Words = Activity | AgentResponse


def handle_reply(room: Room, command: PostReply, batch: RoomDraft, rules: RoomRules) -> None:
    """Take what a participant wrote: as the reply to its turn, or as something else it said."""
    if command.id is not None and is_repeated(room, command.sender, command.id):
        return
    ask = _ask_of(room, command) or _forgotten_ask(batch, command)
    if is_allstop(room, command.sender, command.text):
        heard = room.message(command.reply_to) if command.reply_to else ask
        thread = command.thread or (heard.thread if heard else DEFAULT_THREAD)
        stop(room, Stop(sender=command.sender, thread=thread), batch, rules)
    if ask is not None:
        _answer_turn(room, command, batch, rules, ask)
    elif command.turn is not None:
        _too_late(command, batch, {"turn": command.turn}, command.thread or DEFAULT_THREAD)
    else:
        agent_commands.post_agent_text(room, command, batch, rules)
        handle_working(room, command, batch, rules)
        _heed_alert(room, command, batch, rules)
        _heed_limits(room, command, batch, rules)


def _heed_limits(room: Room, command: PostReply, batch: RoomDraft, rules: RoomRules) -> None:
    """Let the sessions go on after words out of turn: they were paid for, so a limit may be reached."""
    if command.usage is not None and batch.has_sessions:
        for session in batch.sessions.live_with(command.sender):
            advance(SessionDraft(room, batch, rules, session.id))


def _heed_alert(room: Room, command: PostReply, batch: RoomDraft, rules: RoomRules) -> None:
    """Take the alert of a reviewer that nobody has asked; what it says in its pane is not meant."""
    alert = None if command.local or not room.runs.by_id else read_alert(command.text)
    if alert is None:
        return
    for run in list(batch.runs.by_id.values()):
        if run.reviewer == command.sender and MessageType.EXECUTION_ALERT in LEGAL.get(run.phase, {}):
            desk = SessionDraft(room, batch, rules, run.session)
            handle_message(desk, RunRole.REVIEWER, alert, "words")
            advance(desk)


def handle_working(room: Room, command: PostReply | Send, batch: RoomDraft, rules: RoomRules) -> None:
    """Give an agent more time that asks for it in words to somebody else."""
    if batch.has_sessions and any(
        command.sender in session.turns for session in batch.sessions.live_with(command.sender)
    ):
        said = read_agent_text(command.text).commands
        notes = [spoken.note for spoken in said if isinstance(spoken, Working)]
        if notes:
            keep_turn(room, ExtendTurn(agent=command.sender, note=notes[-1]), batch, rules)


def _ask_of(room: Room, command: PostReply) -> Message | None:
    """Return the ask that a reply is bound to, by its turn or by the message; of another's turn, nothing."""
    message_id = command.reply_to if command.turn is None else f"m-{command.turn.removeprefix('t-')}"
    message = room.message(message_id) if message_id else None
    if message is not None and message.sender == SYSTEM and message.reply_to is not None:
        # What the room answered to a question in a turn is a step on the way to its reply.
        message = room.message(message.reply_to)
    if message is None or message.kind is not DeliverKind.TURN or command.sender not in message.deliveries:
        return None
    return message


def _forgotten_ask(batch: RoomDraft, command: PostReply) -> Message | None:
    """Return the ask of an open turn that is too old to be remembered, as far as it is needed."""
    for session in batch.sessions.live_with(command.sender):
        turn = session.turns.get(command.sender)
        if turn is None or (command.turn or command.reply_to) not in (turn.id, turn.message):
            continue
        return Message(
            id=turn.message,
            seq=session.seq,
            sender=SYSTEM,
            target=turn.agent,
            thread=session.thread,
            text="",
            deliveries={},
            kind=DeliverKind.TURN,
            turn=turn.id,
            session=session.id,
        )
    return None


def _too_late(command: PostReply, batch: RoomDraft, fields: dict[str, Any], thread: str) -> None:
    batch.add(
        LateReply, command.sender, HUMAN, command.text, fields | {"usage": command.usage}, thread=thread
    )


def _answer_turn(room: Room, command: PostReply, batch: RoomDraft, rules: RoomRules, ask: Message) -> None:
    session = batch.sessions.get(ask.session)
    if session is None or session.is_over:
        _too_late(command, batch, {"turn": ask.turn, "session_id": ask.session}, ask.thread)
        return
    desk = SessionDraft(room, batch, rules, session.id)
    turn = session.turns.get(command.sender)
    _Reply(desk, command, ask, turn if turn is not None and turn.id == ask.turn else None).take()


def _is_taken(spoken: Spoken, envelope: Envelope) -> bool:
    """Tell whether a line hands over as the envelope says, which the session has acted on already."""
    return isinstance(spoken, HandOver) and envelope.handoff is not None and spoken.to == envelope.handoff.to


def _with_handoff(envelope: Envelope, turn: Turn) -> Envelope:
    """Let a reply that names nobody hand over to whom its agent has named by tool."""
    is_open = envelope.handoff is None and not envelope.final and not envelope.malformed
    return dataclasses.replace(envelope, handoff=turn.handoff) if is_open and turn.handoff else envelope


class _Taken(NamedTuple):
    """The message of a run that a reply holds."""

    role: RunRole
    body: AnyMessage


class _Reply:
    """What an agent wrote for a turn; `turn` is None where that is over already."""

    def __init__(self, desk: SessionDraft, command: PostReply, ask: Message, turn: Turn | None) -> None:
        self._desk = desk
        self._command = command
        self._ask = ask
        self._turn = turn

    def take(self) -> None:
        """Act on it."""
        confirm_delivery(self._ask, self._command, self._desk.batch)
        turn = self._turn
        if turn is None:
            self._post_late()
            # It was paid for, so a limit may be reached.
            advance(self._desk)
        elif self._command.ending is not Ending.DONE:
            self._broke_off(turn)
        else:
            said = read_agent_text(self._command.text)
            kind = Activity if self._command.activity else kind_of(self._desk.room, self._command, said)
            self._TAKERS[kind](self, turn, said)

    # --- each kind of reply ----------------------------------------------------------------------

    def _post_late(self) -> None:
        has_text = bool(self._command.text.strip())
        if has_text or self._command.usage is not None:
            is_reply = has_text and not self._command.activity
            self._post(AgentResponse if is_reply else Activity, self._command, late=True)

    def _broke_off(self, turn: Turn) -> None:
        # What broke off has said nothing, but it may have been paid for.
        if self._command.text.strip() or self._command.usage is not None:
            self._post(Activity, self._command)
        why = f"its answer was {self._command.ending}"
        if self._command.reason and self._desk.session.seal:
            self._desk.notice(f"{turn.agent}: {why}: {self._command.reason}", HUMAN)
        elif self._command.reason:
            why += f": {self._command.reason}"
        fail(self._desk, turn, TurnState.FAILED, why)
        advance(self._desk)

    def _go_on(self, turn: Turn, said: AgentText) -> None:
        """Post words from the midst of the work; the turn stays open."""
        if not self._note(turn):
            return
        vote = self._vote(said.commands)
        if vote is not None:
            cast(self._desk, turn, vote)
        self._speaker(self._command).run(runnable(said.commands))
        notes = [spoken.note for spoken in said.commands if isinstance(spoken, Working)]
        if not self._is_open(turn):
            return  # it has set another mode
        if notes or turn.state is not TurnState.ASKED:
            keep_open(self._desk, turn, notes[-1] if notes else "")
        else:
            delivered(self._desk, turn)

    def _say_nothing(self, turn: Turn, said: AgentText) -> None:
        self._desk.move(turn, TurnState.REPLIED, "nothing to say")
        advance(self._desk)

    def _reply(self, turn: Turn, said: AgentText) -> None:
        agent = self._command.sender
        envelope = _with_handoff(self._envelope(said.commands), turn)
        if not envelope.message.strip():
            fail(self._desk, turn, TurnState.FAILED, "its answer was empty")
            advance(self._desk)
            return
        if envelope.message != self._command.text:
            said = read_agent_text(envelope.message)
        if self._desk.session.stage.kind is PhaseKind.REVIEW:
            self._say_in_run(turn, envelope, said)
            return
        vote = self._vote(said.commands)
        is_voteless = self._is_ballot and vote is None and agent not in self._desk.session.votes
        is_unreadable = envelope.malformed and is_api(self._desk, agent)
        if (is_voteless or is_unreadable) and not turn.is_repair and can_pay_again(self._desk, turn):
            self._ask_again(turn, "repair_vote" if is_voteless else "repair_envelope")
            return
        self._accept(turn, envelope, said, vote)

    def _say_in_run(self, turn: Turn, envelope: Envelope, said: AgentText) -> None:
        """Take the message of a builder or reviewer; one that is none is asked for once more."""
        desk, run = self._desk, self._desk.known_run
        role = run.role_of(self._command.sender) or RunRole.BUILDER
        try:
            body = read_message(envelope.message, role, run.id)
            check_message(run, role, body)
        except (BadInput, Refused) as exc:
            problem = f"{exc.message} ({exc.hint})" if exc.hint else exc.message
            if not turn.is_repair:
                self._ask_again(turn, "repair_review", problem)
                return
            self._post(Activity, self._command)
            fail(desk, turn, TurnState.FAILED, f"its reply is no message of a {role}: {problem}")
            if desk.session.is_running:
                # It was asked once more already; who does not answer at all is another matter.
                give_up(desk, "though it was asked once more")
            advance(desk)
            return
        self._accept(turn, Envelope(message=envelope.message), said, None, _Taken(role, body))

    _TAKERS: ClassVar[dict[type[_Words] | None, Callable[["_Reply", Turn, AgentText], None]]] = {
        Activity: _go_on,
        AgentResponse: _reply,
        None: _say_nothing,
    }

    def _accept(
        self,
        turn: Turn,
        envelope: Envelope,
        said: AgentText,
        vote: BallotVote | None,
        taken: _Taken | None = None,
    ) -> None:
        """Post the reply, run its commands, let the session go on; a new mode comes after all that."""
        desk = self._desk
        command = replace(
            self._command,
            text=envelope.message,
            handoff=self._handoff(envelope),
            final=envelope.final,
        )
        self._post(AgentResponse, command, malformed=envelope.malformed)
        if envelope.malformed:
            desk.notice(f"{command.sender}'s reply was malformed, so it is taken for plain text.")
        if vote is not None:
            cast(self._desk, turn, vote)
        speaker = self._speaker(command)
        commands = [spoken for spoken in runnable(said.commands) if not _is_taken(spoken, envelope)]
        speaker.run([spoken for spoken in commands if not isinstance(spoken, ModeRequest)])
        desk.move(turn, TurnState.REPLIED)
        remind(desk, command.sender)
        if taken is not None:
            handle_message(desk, taken.role, taken.body, "turn")
        advance(desk)
        speaker.run([spoken for spoken in commands if isinstance(spoken, ModeRequest)])

    def _ask_again(self, turn: Turn, template: str, problem: str = "") -> None:
        if self._note(turn):
            ask_again(self._desk, turn, template, problem)
            advance(self._desk)

    def _note(self, turn: Turn) -> bool:
        """Post words that are no reply yet; tell whether the turn goes on: they may use up a limit."""
        self._post(Activity, self._command)
        advance(self._desk)
        return self._is_open(turn)

    def _is_open(self, turn: Turn) -> bool:
        """Tell whether a turn still waits for its reply; its agent may have got another one instead."""
        now = self._desk.session.turns.get(turn.agent)
        return now is not None and now.id == turn.id

    # --- its parts -------------------------------------------------------------------------------

    @property
    def _is_ballot(self) -> bool:
        return self._desk.session.stage.kind is PhaseKind.BALLOT

    def _envelope(self, commands: tuple[Spoken, ...]) -> Envelope:
        command = self._command
        if command.handoff is not None or command.final:
            # Its fields were sent beside the text: there is no envelope to read.
            handoff = None if command.final else command.handoff
            return Envelope(message=command.text, handoff=handoff, final=command.final)
        is_relay = self._desk.phase.kind is PhaseKind.RELAY
        is_needed = is_relay and row_of(self._desk.session.setup).needs_envelope
        is_required = is_needed and is_api(self._desk, command.sender)
        return Envelope.parse(command.text, commands, is_required=is_required)

    def _handoff(self, envelope: Envelope) -> Handoff | None:
        """Return the handoff if the mode knows any, if whom it names takes part."""
        session, handoff = self._desk.session, envelope.handoff
        if handoff is None or not row_of(session.setup).heeds_handoff:
            return None
        if self._desk.phase.speaker is Speaking.LEAD and self._command.sender != session.setup.lead:
            return None
        if handoff.to not in session.agents:
            known = ", ".join(session.agents)
            text = f"{self._command.sender} named {handoff.to!r}, who takes no part. Taking part: {known}."
            self._desk.notice(text)
            return None
        return handoff

    def _vote(self, commands: tuple[Spoken, ...]) -> BallotVote | None:
        labels = [candidate.label for candidate in self._desk.session.stage.candidates]
        return read_vote(commands, labels)

    def _post(
        self, kind: type[_Words], command: PostReply, *, late: bool = False, malformed: bool = False
    ) -> None:
        session = self._desk.session
        fields: dict[str, Any] = {
            "recipients": (),
            "session_id": session.id,
            "turn": self._ask.turn,
            "call_id": self._ask.turn,
            "round": self._turn.round if self._turn else None,
            "max_rounds": max_rounds(session),
            "sealed": session.seal,
            "seals": self._other_seals() if late else {},
            "late": late,
            "malformed": malformed,
            "reply_to": self._ask.id,
            "usage": command.usage,
            "ending": command.ending,
            "handoff": None if late else command.handoff,
            "final": command.final and not late,
            "repeats": find_duplicate(
                sent_for_prompt(self._desk.room, command.sender), Channel.TOOL, (ALL,), command.text
            ),
        }
        if kind is AgentResponse and not late and self._desk.rules.board_replies:
            if has_space(self._desk.room, session.id, command.text, self._desk.rules):
                fields["idx"] = place_on_board(self._desk.room, self._desk.batch, session.id)
            else:
                tell_full(self._desk.room, self._desk.batch, session.id, session.thread)
        thread = session.thread
        self._desk.batch.add(kind, command.sender, ALL, command.text, fields, thread=thread, id=command.id)

    def _other_seals(self) -> dict[SessionId, int]:
        """Return the other sealed phases of the agent: what comes after a turn may be about any of them."""
        seals = self._desk.batch.sessions.seals_of(self._command.sender)
        seals.pop(self._desk.session.id, None)
        return seals

    def _speaker(self, command: PostReply) -> AgentTextRunner:
        desk = self._desk
        return AgentTextRunner(desk.room, command, self._ask, desk.batch, desk.rules)
