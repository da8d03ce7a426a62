"""Post an agent's text and run the commands in it.

Every participant's commands are executed in the same way, in the same batch as the text containing them. The
text is posted unchanged. A refused command causes a notice; the text is still posted. Notices are not typed
into a pane, so they cannot cause a loop.
"""

from collections.abc import Sequence
from typing import Final

from csp.errors import BadInput, Forbidden, NotFound, Refused, TooMany
from csp.protocol import events
from csp.protocol.enums import (
    ALL,
    DEFAULT_THREAD,
    HUMAN,
    SYSTEM,
    AgentId,
    DeliverKind,
    Ending,
    MessageId,
)
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.requests import Handoff
from csp.room import agent_text, commands, human_input, messages
from csp.room.agent_names import nearest
from csp.room.commands import AnswerQuery, PostReply, Send, Stop
from csp.room.duplicate_messages import find_duplicate, is_repeated, notice_duplicate
from csp.room.orchestrator import DEFAULT_COUNT, MAX_ANSWER, mode_text
from csp.room.recipients import route
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Channel, Message, Room, SentMessage
from csp.room.sessions.session_start import set_mode
from csp.room.sessions.steering import stop, threads_of

MAX_COMMANDS: Final = 20
_NO_COMMANDS: Final = agent_text.AgentText(commands=(), has_prose=True)
#: Commands that keep the turn open because the answer will follow.
_GOES_ON: Final = (agent_text.Working, agent_text.QueryLog)
_RUN: Final = (
    agent_text.SendTo,
    agent_text.HandOver,
    agent_text.ModeRequest,
    agent_text.ShowMode,
    agent_text.QueryLog,
    agent_text.Misspelt,
)


def post_agent_text(draft: RoomDraft, command: PostReply) -> None:
    """Post a participant's text, then run the commands in it, in order, if it is an agent's text.

    The commands are executed even if the text stays in the pane because the agent does not share it.
    """
    room = draft.room
    heard = messages.answered_message(room, command)
    speech = _NO_COMMANDS if room.is_person(command.sender) else agent_text.read_agent_text(command.text)
    sent = sent_for_prompt(room, command.sender)
    runner = AgentTextRunner(draft, command, heard, sent)
    is_woken = room.wakeups.is_owed_by(command.sender)
    participant = room.participants.get(command.sender)
    stays_in_pane = command.local and (participant is None or not participant.share)
    kind = kind_of(room, command, speech)
    messages.confirm_delivery(draft, heard, command)
    commands = runnable(speech.commands)
    if not stays_in_pane:
        if kind is not None:
            runner.post(kind, speech.commands)
        elif is_woken or sent:
            # "Nothing to do" is also an answer: it ends the prompt.
            runner.keep()
    elif commands or (sent and not command.activity):
        runner.keep()
    runner.run(commands)


def sent_for_prompt(room: Room, agent: AgentId) -> tuple[SentMessage, ...]:
    """Return the messages that an agent has sent while working on its current prompt."""
    participant = room.participants.get(agent)
    return participant.sent if participant is not None else ()


def runnable(commands: tuple[agent_text.Spoken, ...]) -> list[agent_text.Spoken]:
    """Return the commands that have an effect by themselves."""
    return [spoken for spoken in commands if isinstance(spoken, _RUN)]


def kind_of(
    room: Room, command: PostReply, speech: agent_text.AgentText
) -> type[events.Activity | events.AgentResponse] | None:
    """Return the kind of event to post the text as, or None if there is nothing to post."""
    has_nothing_else = bool(speech.commands) and not speech.has_prose and command.ending is Ending.DONE
    if has_nothing_else and all(isinstance(spoken, agent_text.Noop) for spoken in speech.commands):
        return None
    expected = (*_GOES_ON, agent_text.ShowMode) if room.is_orchestrator(command.sender) else _GOES_ON
    goes_on = has_nothing_else and all(isinstance(spoken, expected) for spoken in speech.commands)
    return events.Activity if command.activity or goes_on else events.AgentResponse


class AgentTextRunner:
    """Posts an agent's text, an answer to the message `heard`, and runs the commands in it.

    `sent` contains the messages that the agent sent for the same prompt, as of before the prompt ended.
    """

    def __init__(
        self, draft: RoomDraft, command: PostReply, heard: Message | None, sent: tuple[SentMessage, ...]
    ) -> None:
        self._draft = draft
        self._command = command
        self._heard = heard
        self._reply_to = command.reply_to
        self._asked = heard
        if heard is not None and heard.sender == SYSTEM and heard.kind is not DeliverKind.TURN:
            # An answer from the room is only a step towards the answer to the original sender.
            self._reply_to = heard.reply_to or heard.id
            self._asked = draft.room.message(heard.reply_to) if heard.reply_to else None
        self._thread = command.thread or (heard.thread if heard else DEFAULT_THREAD)
        self._sent = sent
        #: Messages sent by tool that have been matched with a command in this text.
        self._used: set[MessageId] = set()

    # --- the text --------------------------------------------------------------------------------

    def keep(self) -> None:
        """Record only the id, so that nothing is executed twice."""
        command = self._command
        header = self._draft.message_header(command.sender, SYSTEM, "", thread=self._thread, id=command.id)
        self._draft.emit(events.KeptPrivate(*header, recipients=()))

    def post(self, kind: type[messages.AgentSpeech], commands: tuple[agent_text.Spoken, ...]) -> None:
        """Post the text unchanged; before this, only the delivery has been confirmed."""
        room, command, asked = self._draft.before, self._command, self._asked
        # The answered message may be too old to be remembered, in which case its other readers are unknown.
        target = asked.sender if asked else HUMAN if self._reply_to else ALL
        recipients = (
            messages.reply_recipients(room, asked, command.sender) if kind is events.AgentResponse else ()
        )
        repeats = find_duplicate(self._sent, Channel.TOOL, (target, ALL), command.text)
        recipients = () if repeats else recipients
        messages.check_queues(room, recipients, command.text)
        is_final = command.final or any(isinstance(spoken, agent_text.Finish) for spoken in commands)
        handoff = command.handoff
        named = [
            one for one in commands if isinstance(one, agent_text.HandOver) and one.to in room.participants
        ]
        if handoff is None and not is_final and named:
            handoff = Handoff(to=named[-1].to, task=named[-1].task)
        words = messages.AgentWords(
            reply_to=self._reply_to,
            handoff=handoff,
            final=is_final,
            usage=command.usage,
            ending=command.ending,
            repeats=repeats,
        )
        messages.post_message(self._draft, command, kind, self._heard, target, recipients, words)

    # --- the commands ----------------------------------------------------------------------------

    def run(self, commands: Sequence[agent_text.Spoken]) -> None:
        """Run each command; a refused one causes a notice."""
        for spoken in commands[:MAX_COMMANDS]:
            try:
                self._run(spoken)
            except (BadInput, Refused) as error:
                self._complain(
                    NoticeCode.COMMAND_REFUSED(
                        agent=self._command.sender,
                        command=_name(spoken),
                        problem=error.message,
                        hint=error.hint,
                    )
                )
        more = len(commands) - MAX_COMMANDS
        if more > 0:
            agent = self._command.sender
            self._complain(NoticeCode.TOO_MANY_COMMANDS(agent=agent, count=more, most=MAX_COMMANDS))

    def _run(self, spoken: agent_text.Spoken) -> None:
        known = self._draft.room.participants
        match spoken:
            case agent_text.SendTo():
                self._send(spoken)
            case agent_text.HandOver():
                # The mode handles it when the event of the text is applied.
                if spoken.to not in known:
                    raise NotFound(f"unknown agent {spoken.to!r}", nearest(spoken.to, list(known)))
            case agent_text.QueryLog():
                count = spoken.count or DEFAULT_COUNT
                header = self._draft.header(
                    self._command.sender, SYSTEM, f"@query.log {count}", thread=self._thread
                )
                question = self._asked.id if self._asked else None
                hops = messages.hops_after(self._heard)
                self._draft.emit(events.LogRequested(*header, count=count, reply_to=question, hops=hops))
            case agent_text.ModeRequest():
                self._check_role()
                command = commands.SetMode(
                    sender=self._command.sender,
                    mode=spoken.mode,
                    topic=spoken.topic,
                    agents=spoken.agents or None,
                    rounds=spoken.rounds,
                    thread=self._thread,
                )
                set_mode(self._draft, command)
                self._tell_mode()
            case agent_text.ShowMode():
                self._check_role()
                self._tell_mode()
            case agent_text.Misspelt() if not spoken.to or spoken.to in (*known, HUMAN, ALL):
                agent, line, hint = self._command.sender, spoken.line, spoken.hint
                self._complain(NoticeCode.COMMAND_MISSPELT(agent=agent, line=line, hint=hint))
            case _:
                # It names no known participant, so it counts as prose.
                pass

    def _complain(self, words: NoticeWords) -> None:
        self._draft.notice(self._command.sender, words)

    def _send(self, spoken: agent_text.SendTo) -> None:
        command = Send(
            sender=self._command.sender,
            to=spoken.to,
            text=spoken.text,
            thread=self._thread,
            ttl_s=self._command.ttl_s,
        )
        room = self._draft.room
        target, recipients = route(room, command)
        if known := find_duplicate(self._sent, Channel.TOOL, (target,), spoken.text, self._used):
            self._used.add(known)
            notice_duplicate(self._draft, command.sender, _name(spoken), known)
            return
        messages.check_share(room, recipients)
        messages.check_queues(room, recipients, spoken.text)
        # The answer ends the prompt, so a command in it need not be recorded to detect later duplicates.
        words = messages.AgentWords(via=Channel.WORDS if self._command.activity else "")
        messages.post_message(self._draft, command, events.AgentCall, self._heard, target, recipients, words)

    def _tell_mode(self) -> None:
        """Send the agent the current mode of the thread."""
        agent = self._command.sender
        text = mode_text(self._draft.sessions.live_in(self._thread))
        messages.check_queues(self._draft.room, (agent,), text)
        question = self._asked.id if self._asked else None
        hops = messages.hops_after(self._heard)
        header = self._draft.message_header(SYSTEM, agent, text[:MAX_ANSWER], thread=self._thread)
        self._draft.emit(
            events.SystemReply(
                *header,
                recipients=(agent,),
                reply_to=question,
                hops=hops,
                held=messages.hold_reason((agent,), hops),
                expires=messages.expiry(self._draft, (agent,), self._command.ttl_s),
            )
        )
        messages.ask_about_loop(self._draft)

    def _check_role(self) -> None:
        if not self._draft.room.is_orchestrator(self._command.sender):
            raise Forbidden(
                "only the orchestrator may ask for or set the mode", "ask the orchestrator or the human"
            )


def _name(spoken: agent_text.Spoken) -> str:
    match spoken:
        case agent_text.SendTo(to="all"):
            return "@all"
        case agent_text.SendTo():
            return f"@send.{spoken.to}"
        case agent_text.HandOver():
            return f"@handoff.{spoken.to}"
        case agent_text.ModeRequest():
            return "@mode.set"
        case _:
            return "@mode.status"


# --- answers from the room -----------------------------------------------------------------------


def answer_query(draft: RoomDraft, command: AnswerQuery) -> None:
    """Answer a query that is still open."""
    query = draft.room.queries.get(command.query)
    if query is None:
        return
    recipients: tuple[AgentId, ...] = (query.agent,)
    try:
        messages.check_queues(draft.room, recipients, command.text)
    except TooMany:
        # An agent whose queue is full gets no answer, but its query is closed.
        recipients = ()
    draft.emit(
        events.SystemReply(
            *draft.message_header(SYSTEM, query.agent, command.text[:MAX_ANSWER], thread=query.thread),
            recipients=recipients,
            reply_to=query.reply_to,
            hops=query.hops,
            held=messages.hold_reason(recipients, query.hops),
            expires=messages.expiry(draft, recipients, command.ttl_s),
            query=command.query,
        )
    )
    messages.ask_about_loop(draft)


# --- Allstop: the word that ends a session at once ------------------------------------------------


def is_allstop(room: Room, sender: AgentId, text: str) -> bool:
    """Return whether the text is an Allstop from a person or from the orchestrator."""
    if not human_input.is_allstop(text):
        return False
    return room.is_orchestrator(sender) or room.is_person(sender)


def allstop(draft: RoomDraft, command: Send) -> None:
    """Stop the thread's session, then record the word without delivering it to anybody."""
    if command.id is not None and is_repeated(draft.room, command.sender, command.id):
        return
    thread = command.thread or DEFAULT_THREAD
    is_needed = any(thread in threads_of(session) for session in draft.sessions.live())
    stop(draft, Stop(sender=command.sender, thread=thread))
    kind = events.HumanMessage if draft.room.is_person(command.sender) else events.AgentCall
    header = draft.message_header(command.sender, ALL, command.text, thread=thread, id=command.id)
    draft.emit(kind(*header, recipients=(), seals=draft.sessions.seals_of(command.sender)))
    if not is_needed:
        draft.notice(HUMAN, NoticeCode.ALLSTOP_IDLE(thread=thread))
