"""Handle the reply to a turn."""

import dataclasses
from typing import NamedTuple

from msgspec.structs import replace

from csp.errors import BadInput, Refused
from csp.protocol import events
from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, SYSTEM, DeliverKind, Ending, MessageId
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Handoff
from csp.protocol.review_messages import AnyMessage, MessageType, RunRole
from csp.protocol.session_parts import OnLimit, PhaseKind, TurnState
from csp.room import agent_commands, agent_text
from csp.room.agent_commands import AgentTextRunner, is_allstop, kind_of, runnable, sent_for_prompt
from csp.room.board_commands import has_space, notice_full
from csp.room.commands import ExtendTurn, PostReply, Send, Stop
from csp.room.duplicate_messages import find_duplicate, is_repeated
from csp.room.messages import confirm_delivery
from csp.room.room_draft import RoomDraft, SessionDraft
from csp.room.room_state import Channel, Message, Room
from csp.room.runs.run_commands import read_alert, read_message
from csp.room.runs.run_protocol import LEGAL, check_message, give_up, handle_message
from csp.room.sessions.modes import NextSpeaker as Speaking
from csp.room.sessions.modes import row_of
from csp.room.sessions.session_end import remind
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import BallotVote, Turn
from csp.room.sessions.steering import keep_turn, stop
from csp.room.sessions.turns import (
    ask_again,
    at_usage_limit,
    can_pay_again,
    cast,
    delivered,
    fail,
    keep_open,
)
from csp.room.sessions.votes import read_vote
from csp.room.sessions.waits import is_api

_Words = events.Activity | events.AgentResponse


def handle_reply(draft: RoomDraft, command: PostReply) -> None:
    """Handle an agent's text as the reply to its turn or as an ordinary message."""
    if command.id is not None and is_repeated(draft.room, command.sender, command.id):
        return
    ask = _ask_of(draft.room, command) or _forgotten_ask(draft.room, command)
    if is_allstop(draft.room, command.sender, command.text):
        heard = draft.room.message(command.reply_to) if command.reply_to else ask
        thread = command.thread or (heard.thread if heard else DEFAULT_THREAD)
        stop(draft, Stop(sender=command.sender, thread=thread))
    if ask is None and command.turn is None:
        agent_commands.post_agent_text(draft, command)
        handle_working(draft, command)
        _handle_alert(draft, command)
        if command.usage is not None and draft.has_sessions:
            # A message outside a turn also uses tokens, so it may reach a limit.
            for one in draft.sessions.live_with(command.sender):
                advance(SessionDraft(draft, one.id))
        return
    session = draft.sessions.get(ask.session) if ask else None
    if ask is None or session is None or session.is_over:
        thread = ask.thread if ask else command.thread or DEFAULT_THREAD
        draft.emit(
            events.LateReply(
                *draft.header(command.sender, HUMAN, command.text, thread=thread),
                turn=(ask.turn if ask else command.turn) or "",
                session_id=ask.session if ask else None,
                usage=command.usage,
            )
        )
        return
    turn = session.turns.get(command.sender)
    is_open = turn is not None and turn.id == ask.turn
    _Reply(SessionDraft(draft, session.id), command, ask, turn if is_open else None).handle()


def _handle_alert(draft: RoomDraft, command: PostReply) -> None:
    """Handle a reviewer's unprompted alert; text that stays in its pane is ignored."""
    alert = None if command.local or not draft.before.runs.by_id else read_alert(command.text)
    if alert is None:
        return
    for run in list(draft.room.runs.by_id.values()):
        if run.reviewer == command.sender and MessageType.EXECUTION_ALERT in LEGAL.get(run.phase, {}):
            session_draft = SessionDraft(draft, run.session)
            handle_message(session_draft, RunRole.REVIEWER, alert, "words")
            advance(session_draft)


def handle_working(draft: RoomDraft, command: PostReply | Send) -> None:
    """Extend the turn of an agent that asks for more time in a message to another participant."""
    if not draft.has_sessions or "working" not in command.text.lower():
        return
    if any(command.sender in session.turns for session in draft.sessions.live_with(command.sender)):
        said = agent_text.read_agent_text(command.text).commands
        notes = [spoken.note for spoken in said if isinstance(spoken, agent_text.Working)]
        if notes:
            keep_turn(draft, ExtendTurn(agent=command.sender, note=notes[-1]))


def _ask_of(room: Room, command: PostReply) -> Message | None:
    """Return the turn request that a reply answers, by turn or message, or None if another agent has it."""
    if command.turn is not None:
        message = room.ask_of(command.turn)
    else:
        message = room.message(command.reply_to) if command.reply_to else None
        if message is not None and message.sender == SYSTEM and message.reply_to is not None:
            # The room's answer to a query in a turn is only a step towards the reply to that turn.
            message = room.message(message.reply_to)
    if message is None or message.kind is not DeliverKind.TURN or command.sender not in message.deliveries:
        return None
    return message


def _forgotten_ask(room: Room, command: PostReply) -> Message | None:
    """Rebuild the required parts of an open turn's request if that is too old to be remembered."""
    for session in room.sessions.live_with(command.sender):
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


class _Taken(NamedTuple):
    """A run's message found in a reply."""

    role: RunRole
    body: AnyMessage


class _Reply:
    """An agent's text for a turn; `turn` is None if the turn is already over."""

    def __init__(self, draft: SessionDraft, command: PostReply, ask: Message, turn: Turn | None) -> None:
        self._draft = draft
        self._command = command
        self._ask = ask
        self._turn = turn
        #: Messages that the agent has sent during this turn; the reply ends the turn.
        self._sent = sent_for_prompt(draft.room, command.sender)

    def handle(self) -> None:
        """Process the reply."""
        confirm_delivery(self._draft.room_draft, self._ask, self._command)
        turn = self._turn
        if turn is None:
            has_text = bool(self._command.text.strip())
            if has_text or self._command.usage is not None:
                is_reply = has_text and not self._command.activity
                self._post(events.AgentResponse if is_reply else events.Activity, self._command, late=True)
            # It used tokens, so it may reach a limit.
            advance(self._draft)
        elif self._command.ending is not Ending.DONE:
            self._broke_off(turn)
        else:
            said = agent_text.read_agent_text(self._command.text)
            kind = (
                events.Activity if self._command.activity else kind_of(self._draft.room, self._command, said)
            )
            if kind is None:
                self._draft.move(turn, TurnState.REPLIED, "nothing to say")
                advance(self._draft)
            elif kind is events.Activity:
                self._go_on(turn, said)
            else:
                self._reply(turn, said)

    # --- kinds of replies ------------------------------------------------------------------------

    def _broke_off(self, turn: Turn) -> None:
        # A call that was cut off is not a reply, but it may have used tokens.
        if self._command.text.strip() or self._command.usage is not None:
            self._post(events.Activity, self._command)
        if turn.state is TurnState.WAITING:
            # It ended because of what the turn waits for, and will be asked again.
            advance(self._draft)
            return
        if self._command.ending is Ending.LIMITED and self._draft.session.setup.on_limit is not OnLimit.SKIP:
            at_usage_limit(self._draft, turn)
            advance(self._draft)
            return
        why = f"its answer was {self._command.ending}"
        if self._command.reason and self._draft.session.seal:
            ending, reason = self._command.ending, self._command.reason
            words = NoticeCode.REPLY_BROKE_OFF(agent=turn.agent, ending=ending, reason=reason)
            self._draft.notice(words, HUMAN)
        elif self._command.reason:
            why += f": {self._command.reason}"
        fail(self._draft, turn, TurnState.FAILED, why)
        advance(self._draft)

    def _go_on(self, turn: Turn, said: agent_text.AgentText) -> None:
        """Post text from the middle of a turn; the turn stays open."""
        if not self._note(turn):
            return
        vote = self._vote(said.commands)
        if vote is not None:
            cast(self._draft, turn, vote)
        self._runner(self._command).run(runnable(said.commands))
        notes = [spoken.note for spoken in said.commands if isinstance(spoken, agent_text.Working)]
        if not self._is_open(turn):
            return  # the text started another mode
        if notes or turn.state is not TurnState.ASKED:
            keep_open(self._draft, turn, notes[-1] if notes else "")
        else:
            delivered(self._draft, turn)

    def _reply(self, turn: Turn, said: agent_text.AgentText) -> None:
        agent = self._command.sender
        envelope = self._envelope(said.commands)
        if turn.handoff and envelope.handoff is None and not envelope.final and not envelope.malformed:
            # A reply that names no agent hands over to the agent that was named by tool.
            envelope = dataclasses.replace(envelope, handoff=turn.handoff)
        if not envelope.message.strip():
            fail(self._draft, turn, TurnState.FAILED, "its answer was empty")
            advance(self._draft)
            return
        if envelope.message != self._command.text:
            said = agent_text.read_agent_text(envelope.message)
        if self._draft.session.stage.kind is PhaseKind.REVIEW:
            self._say_in_run(turn, envelope, said)
            return
        vote = self._vote(said.commands)
        is_ballot = self._draft.session.stage.kind is PhaseKind.BALLOT
        is_voteless = is_ballot and vote is None and agent not in self._draft.session.votes
        is_unreadable = envelope.malformed and is_api(self._draft, agent)
        if (is_voteless or is_unreadable) and not turn.is_repair and can_pay_again(self._draft, turn):
            self._ask_again(turn, "repair_vote" if is_voteless else "repair_envelope")
            return
        self._accept(turn, envelope, said, vote)

    def _say_in_run(self, turn: Turn, envelope: agent_text.Envelope, said: agent_text.AgentText) -> None:
        """Process a builder's or reviewer's message; ask once more if the text is not a valid message."""
        draft, run = self._draft, self._draft.known_run
        role = run.role_of(self._command.sender) or RunRole.BUILDER
        try:
            body = read_message(envelope.message, role, run.id)
            check_message(run, role, body)
        except (BadInput, Refused) as exc:
            problem = f"{exc.message} ({exc.hint})" if exc.hint else exc.message
            if not turn.is_repair:
                self._ask_again(turn, "repair_review", problem)
                return
            self._post(events.Activity, self._command)
            fail(draft, turn, TurnState.FAILED, f"its reply is not a valid {role} message: {problem}")
            if draft.session.is_running:
                # It was already asked twice; an agent that does not answer at all is handled elsewhere.
                give_up(draft, "even after it was asked again")
            advance(draft)
            return
        self._accept(turn, agent_text.Envelope(message=envelope.message), said, None, _Taken(role, body))

    def _accept(
        self,
        turn: Turn,
        envelope: agent_text.Envelope,
        said: agent_text.AgentText,
        vote: BallotVote | None,
        taken: _Taken | None = None,
    ) -> None:
        """Post the reply, run its commands and advance the session; a new mode starts only after that."""
        draft = self._draft
        command = replace(
            self._command,
            text=envelope.message,
            handoff=self._handoff(envelope),
            final=envelope.final,
        )
        reply = self._post(events.AgentResponse, command, malformed=envelope.malformed)
        if envelope.malformed:
            draft.notice(NoticeCode.REPLY_MALFORMED(agent=command.sender))
        if vote is not None:
            cast(self._draft, turn, vote, reply)
        runner = self._runner(command)
        # The session acts on a handoff line in the same way as on the envelope.
        to = envelope.handoff.to if envelope.handoff else None
        commands = [
            spoken
            for spoken in runnable(said.commands)
            if not (isinstance(spoken, agent_text.HandOver) and spoken.to == to)
        ]
        runner.run([spoken for spoken in commands if not isinstance(spoken, agent_text.ModeRequest)])
        draft.move(turn, TurnState.REPLIED)
        remind(draft, command.sender)
        if taken is not None:
            handle_message(draft, taken.role, taken.body, "turn")
        advance(draft)
        runner.run([spoken for spoken in commands if isinstance(spoken, agent_text.ModeRequest)])

    def _ask_again(self, turn: Turn, template: str, problem: str = "") -> None:
        if self._note(turn):
            ask_again(self._draft, turn, template, problem)
            advance(self._draft)

    def _note(self, turn: Turn) -> bool:
        """Post text that is not yet the reply; return whether the turn continues, as it may reach a limit."""
        self._post(events.Activity, self._command)
        advance(self._draft)
        return self._is_open(turn)

    def _is_open(self, turn: Turn) -> bool:
        """Return whether this turn is still waiting for its reply; its agent may have another turn by now."""
        now = self._draft.session.turns.get(turn.agent)
        return now is not None and now.id == turn.id

    # --- parts of a reply ------------------------------------------------------------------------

    def _envelope(self, commands: tuple[agent_text.Spoken, ...]) -> agent_text.Envelope:
        command = self._command
        if command.handoff is not None or command.final:
            # The fields were sent separately from the text, so there is no envelope to parse.
            handoff = None if command.final else command.handoff
            return agent_text.Envelope(message=command.text, handoff=handoff, final=command.final)
        is_relay = self._draft.phase.kind is PhaseKind.RELAY
        is_needed = is_relay and row_of(self._draft.session.setup).needs_envelope
        is_required = is_needed and is_api(self._draft, command.sender)
        return agent_text.Envelope.parse(command.text, commands, is_required=is_required)

    def _handoff(self, envelope: agent_text.Envelope) -> Handoff | None:
        """Return the handoff if the mode supports handoffs and the named agent takes part."""
        session, handoff = self._draft.session, envelope.handoff
        if handoff is None or not row_of(session.setup).follows_handoff:
            return None
        if self._draft.phase.speaker is Speaking.LEAD and self._command.sender != session.setup.lead:
            return None
        if handoff.to not in session.agents:
            agent, members = self._command.sender, ", ".join(session.agents)
            self._draft.notice(NoticeCode.HANDOFF_UNKNOWN(agent=agent, to=handoff.to, members=members))
            return None
        return handoff

    def _vote(self, commands: tuple[agent_text.Spoken, ...]) -> BallotVote | None:
        labels = [candidate.label for candidate in self._draft.session.stage.candidates]
        return read_vote(commands, labels)

    def _post(
        self, kind: type[_Words], command: PostReply, *, late: bool = False, malformed: bool = False
    ) -> MessageId:
        """Emit the text and return the id of the message."""
        draft, session = self._draft, self._draft.session
        idx = None
        if kind is events.AgentResponse and not late and draft.rules.board_replies:
            if has_space(draft.room_draft, session.id, command.text):
                idx = draft.room.boards.of(session.id).next_idx
            else:
                notice_full(draft.room_draft, session.id, session.thread)
        # Text after a turn may be about any sealed phase of the agent.
        seals = draft.room.sessions.seals_of(command.sender) if late else {}
        seals.pop(session.id, None)
        header = draft.room_draft.message_header(
            command.sender, ALL, command.text, thread=session.thread, id=command.id
        )
        draft.room_draft.emit(
            kind(
                *header,
                recipients=(),
                reply_to=self._ask.id,
                turn=self._ask.turn,
                call_id=self._ask.turn,
                handoff=None if late else command.handoff,
                final=command.final and not late,
                usage=command.usage,
                ending=command.ending,
                session_id=session.id,
                round=self._turn.round if self._turn else None,
                max_rounds=session.setup.rounds,
                sealed=session.seal,
                late=late,
                malformed=malformed,
                idx=idx,
                repeats=find_duplicate(self._sent, Channel.TOOL, (ALL,), command.text),
                seals=seals,
            )
        )
        return header[2]

    def _runner(self, command: PostReply) -> AgentTextRunner:
        return AgentTextRunner(self._draft.room_draft, command, self._ask, self._sent)
