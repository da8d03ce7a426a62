"""Post an agent's text and run the commands in it.

Commands are run for every participant alike, in the batch of the words they stand in; the words are posted as
they are. A refused command costs a notice, never the words. Notices are not typed into a pane: none can loop.
"""

from collections.abc import Sequence
from typing import Final

from csp.errors import BadInput, Forbidden, NotFound, Refused, TooMany
from csp.protocol.enums import (
    ALL,
    DEFAULT_THREAD,
    HUMAN,
    SYSTEM,
    AgentId,
    DeliverKind,
    Ending,
    JoinRole,
    MessageId,
)
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    HumanMessage,
    KeptPrivate,
    LogRequested,
    SystemReply,
)
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.requests import Handoff
from csp.room import commands, human_input
from csp.room.agent_text.grammar import (
    AgentText,
    Finish,
    HandOver,
    Misspelt,
    ModeRequest,
    Noop,
    QueryLog,
    SendTo,
    ShowMode,
    Spoken,
    Working,
    read_agent_text,
)
from csp.room.commands import AnswerQuery, PostReply, Send, Stop
from csp.room.identity import nearest
from csp.room.messages.delivery import Channel, SentMessage, find_duplicate
from csp.room.messages.send import (
    AgentSpeech,
    AgentWords,
    answered_message,
    ask_about_loop,
    check_queues,
    check_share,
    confirm_delivery,
    expiry,
    hold_reason,
    hops_after,
    is_person,
    is_repeated,
    notice_duplicate,
    post_message,
    reply_recipients,
    route,
)
from csp.room.orchestrator import DEFAULT_COUNT, MAX_ANSWER, mode_text
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Message, Room
from csp.room.sessions.session_start import set_mode
from csp.room.sessions.steering import stop, threads_of

MAX_COMMANDS: Final = 20
_NO_COMMANDS: Final = AgentText(commands=(), has_prose=True)
#: Commands that keep the turn open: the answer is still to come.
_GOES_ON: Final = (Working, QueryLog)
_RUN: Final = (SendTo, HandOver, ModeRequest, ShowMode, QueryLog, Misspelt)


def post_agent_text(draft: RoomDraft, command: PostReply) -> None:
    """Post what a participant wrote, then run the commands in an agent's text, in their order.

    What stays in the pane because it is not shared runs its commands all the same: they are the agent's own.
    """
    room = draft.room
    heard = answered_message(room, command)
    speech = _NO_COMMANDS if is_person(room, command.sender) else read_agent_text(command.text)
    sent = sent_for_prompt(room, command.sender)
    runner = AgentTextRunner(draft, command, heard, sent)
    is_woken = room.wakeups.is_owed_by(command.sender)
    participant = room.participants.get(command.sender)
    stays_in_pane = command.local and (participant is None or not participant.share)
    kind = kind_of(room, command, speech)
    confirm_delivery(draft, heard, command)
    commands = runnable(speech.commands)
    if not stays_in_pane:
        if kind is not None:
            runner.post(kind, speech.commands)
        elif is_woken or sent:
            # That nothing needs to be done is an answer too, with which a prompt is over.
            runner.keep()
    elif commands or (sent and not command.activity):
        runner.keep()
    runner.run(commands)


def sent_for_prompt(room: Room, agent: AgentId) -> tuple[SentMessage, ...]:
    """Return what an agent has sent because of the prompt that it works on."""
    participant = room.participants.get(agent)
    return participant.sent if participant is not None else ()


def runnable(commands: tuple[Spoken, ...]) -> list[Spoken]:
    """Return those of the commands that do something by themselves."""
    return [spoken for spoken in commands if isinstance(spoken, _RUN)]


def kind_of(room: Room, command: PostReply, speech: AgentText) -> type[Activity | AgentResponse] | None:
    """Return the kind of event that the words are posted as; None where there is nothing to post."""
    has_nothing_else = bool(speech.commands) and not speech.has_prose and command.ending is Ending.DONE
    if has_nothing_else and all(isinstance(spoken, Noop) for spoken in speech.commands):
        return None
    expected = (*_GOES_ON, ShowMode) if _may_steer(room, command.sender) else _GOES_ON
    goes_on = has_nothing_else and all(isinstance(spoken, expected) for spoken in speech.commands)
    return Activity if command.activity or goes_on else AgentResponse


class AgentTextRunner:
    """Post and run what an agent wrote because of `heard`, the message it answers.

    `sent` is what it has sent because of the same prompt, as it was before the prompt was over.
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
            # What the room answered is a step on the way to an answer to somebody else.
            self._reply_to = heard.reply_to or heard.id
            self._asked = draft.room.message(heard.reply_to) if heard.reply_to else None
        self._thread = command.thread or (heard.thread if heard else DEFAULT_THREAD)
        self._sent = sent
        #: Messages of a tool that were found again in these words.
        self._used: set[MessageId] = set()

    # --- the words -------------------------------------------------------------------------------

    def keep(self) -> None:
        """Remember the id alone, so that nothing is run twice."""
        command = self._command
        header = self._draft.message_header(command.sender, SYSTEM, "", thread=self._thread, id=command.id)
        self._draft.emit(KeptPrivate(*header, recipients=()))

    def post(self, kind: type[AgentSpeech], commands: tuple[Spoken, ...]) -> None:
        """Post the words as they are; nothing but their confirmation has happened before."""
        room, command, asked = self._draft.before, self._command, self._asked
        # What is answered may be too old to be remembered; then nobody knows who else may read it.
        target = asked.sender if asked else HUMAN if self._reply_to else ALL
        recipients = reply_recipients(room, asked, command.sender) if kind is AgentResponse else ()
        repeats = find_duplicate(self._sent, Channel.TOOL, (target, ALL), command.text)
        recipients = () if repeats else recipients
        check_queues(room, recipients, command.text)
        is_final = command.final or any(isinstance(spoken, Finish) for spoken in commands)
        handoff = command.handoff
        named = [one for one in commands if isinstance(one, HandOver) and one.to in room.participants]
        if handoff is None and not is_final and named:
            handoff = Handoff(to=named[-1].to, task=named[-1].task)
        words = AgentWords(
            reply_to=self._reply_to,
            handoff=handoff,
            final=is_final,
            usage=command.usage,
            ending=command.ending,
            repeats=repeats,
        )
        post_message(self._draft, command, kind, self._heard, target, recipients, words)

    # --- the commands ----------------------------------------------------------------------------

    def run(self, commands: Sequence[Spoken]) -> None:
        """Run each command; one that is refused leaves a notice."""
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

    def _run(self, spoken: Spoken) -> None:
        known = self._draft.room.participants
        match spoken:
            case SendTo():
                self._send(spoken)
            case HandOver():
                # It stands in the event of the words, for a mode to act on.
                if spoken.to not in known:
                    raise NotFound(f"unknown agent {spoken.to!r}", nearest(spoken.to, list(known)))
            case QueryLog():
                count = spoken.count or DEFAULT_COUNT
                header = self._draft.header(
                    self._command.sender, SYSTEM, f"@query.log {count}", thread=self._thread
                )
                question = self._asked.id if self._asked else None
                hops = hops_after(self._heard)
                self._draft.emit(LogRequested(*header, count=count, reply_to=question, hops=hops))
            case ModeRequest():
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
            case ShowMode():
                self._check_role()
                self._tell_mode()
            case Misspelt() if not spoken.to or spoken.to in (*known, HUMAN, ALL):
                agent, line, hint = self._command.sender, spoken.line, spoken.hint
                self._complain(NoticeCode.COMMAND_MISSPELT(agent=agent, line=line, hint=hint))
            case _:
                # It names nobody known, so it is prose.
                pass

    def _complain(self, words: NoticeWords) -> None:
        self._draft.notice(self._command.sender, words)

    def _send(self, spoken: SendTo) -> None:
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
        check_share(room, recipients)
        check_queues(room, recipients, spoken.text)
        # With the answer the prompt is over, so nothing can repeat what stands in that.
        words = AgentWords(via=Channel.WORDS if self._command.activity else "")
        post_message(self._draft, command, AgentCall, self._heard, target, recipients, words)

    def _tell_mode(self) -> None:
        """Answer which mode the thread is in."""
        agent = self._command.sender
        text = mode_text(self._draft.sessions.live_in(self._thread))
        check_queues(self._draft.room, (agent,), text)
        question = self._asked.id if self._asked else None
        hops = hops_after(self._heard)
        header = self._draft.message_header(SYSTEM, agent, text[:MAX_ANSWER], thread=self._thread)
        self._draft.emit(
            SystemReply(
                *header,
                recipients=(agent,),
                reply_to=question,
                hops=hops,
                held=hold_reason((agent,), hops),
                expires=expiry(self._draft, (agent,), self._command.ttl_s),
            )
        )
        ask_about_loop(self._draft)

    def _check_role(self) -> None:
        if not _may_steer(self._draft.room, self._command.sender):
            raise Forbidden("the mode is the orchestrator's to ask for or to set", "ask it, or the human")


def _may_steer(room: Room, agent: AgentId) -> bool:
    participant = room.participants.get(agent)
    return participant is not None and participant.role is JoinRole.ORCHESTRATOR


def _name(spoken: Spoken) -> str:
    match spoken:
        case SendTo(to="all"):
            return "@all"
        case SendTo():
            return f"@send.{spoken.to}"
        case HandOver():
            return f"@handoff.{spoken.to}"
        case ModeRequest():
            return "@mode.set"
        case _:
            return "@mode.status"


# --- answers of the room -------------------------------------------------------------------------


def answer_query(draft: RoomDraft, command: AnswerQuery) -> None:
    """Answer a query, if it still waits for an answer."""
    query = draft.room.queries.get(command.query)
    if query is None:
        return
    recipients: tuple[AgentId, ...] = (query.agent,)
    try:
        check_queues(draft.room, recipients, command.text)
    except TooMany:
        # An agent with a full queue gets no answer, but the question is over.
        recipients = ()
    draft.emit(
        SystemReply(
            *draft.message_header(SYSTEM, query.agent, command.text[:MAX_ANSWER], thread=query.thread),
            recipients=recipients,
            reply_to=query.reply_to,
            hops=query.hops,
            held=hold_reason(recipients, query.hops),
            expires=expiry(draft, recipients, command.ttl_s),
            query=command.query,
        )
    )
    ask_about_loop(draft)


# --- Allstop: the word that ends a session at once ------------------------------------------------


def is_allstop(room: Room, sender: AgentId, text: str) -> bool:
    """Return whether a person or the orchestrator says Allstop."""
    if not human_input.is_allstop(text):
        return False
    participant = room.participants.get(sender)
    is_lead = participant is not None and participant.role is JoinRole.ORCHESTRATOR
    return is_lead or is_person(room, sender)


def allstop(draft: RoomDraft, command: Send) -> None:
    """Stop the session of the thread, then record the word; it is delivered to nobody."""
    if command.id is not None and is_repeated(draft.room, command.sender, command.id):
        return
    thread = command.thread or DEFAULT_THREAD
    is_needed = any(thread in threads_of(session) for session in draft.sessions.live())
    stop(draft, Stop(sender=command.sender, thread=thread))
    kind = HumanMessage if is_person(draft.room, command.sender) else AgentCall
    header = draft.message_header(command.sender, ALL, command.text, thread=thread, id=command.id)
    draft.emit(kind(*header, recipients=(), seals=draft.sessions.seals_of(command.sender)))
    if not is_needed:
        draft.notice(HUMAN, NoticeCode.ALLSTOP_IDLE(thread=thread))
