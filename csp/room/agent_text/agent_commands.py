"""What comes of an agent's words: the message they are, the commands in them.

Commands are run for every participant alike, in the batch of the words they stand in; the words are posted as
they are. A refused command costs a notice, never the words. Notices are not typed into a pane: none can loop.
"""

from collections.abc import Sequence
from typing import Any, Final

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
from csp.protocol.events import Activity, AgentCall, AgentResponse, KeptPrivate, LogRequested, SystemReply
from csp.protocol.requests import Handoff
from csp.room import commands
from csp.room.agent_text.grammar import (
    AgentText,
    Finish,
    HandOver,
    ModeRequest,
    Noop,
    QueryLog,
    SendTo,
    ShowMode,
    Spoken,
    Working,
    read_agent_text,
)
from csp.room.agent_text.spelling import Misspelt
from csp.room.commands import AnswerQuery, PostReply, Send
from csp.room.identity import nearest
from csp.room.messages.send import (
    AgentSpeech,
    answered_message,
    ask_about_loop,
    check_queues,
    check_share,
    confirm_delivery,
    hold_and_expiry,
    hops_after,
    is_person,
    notice_duplicate,
    post_message,
    reply_recipients,
    route,
)
from csp.room.messages.tool_dedupe import Channel, SentMessage, find_duplicate
from csp.room.orchestrator.digest import DEFAULT_COUNT, MAX_ANSWER, mode_text
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Message, Room
from csp.room.sessions.session_start import set_mode

MAX_COMMANDS: Final = 20
_NO_COMMANDS: Final = AgentText(commands=(), has_prose=True)
#: Who says nothing else goes on with its turn: the answer is still to come.
_GOES_ON: Final = (Working, QueryLog)
_RUN: Final = (SendTo, HandOver, ModeRequest, ShowMode, QueryLog, Misspelt)


def post_agent_text(room: Room, command: PostReply, batch: RoomDraft, rules: RoomRules) -> None:
    """Post what a participant wrote, then run the commands in an agent's text, in their order.

    What stays in the pane because it is not shared runs its commands all the same: they are the agent's own.
    """
    heard = answered_message(room, command)
    speech = _NO_COMMANDS if is_person(room, command.sender) else read_agent_text(command.text)
    speaker = AgentTextRunner(room, command, heard, batch, rules)
    confirm_delivery(heard, command, batch)
    commands = runnable(speech.commands)
    if not _stays(room, command):
        if kind := kind_of(room, command, speech):
            speaker.post(kind, speech.commands)
        elif room.wakeups.is_owed_by(command.sender) or sent_for_prompt(room, command.sender):
            # That nothing needs to be done is an answer too, with which a prompt is over.
            speaker.keep()
    elif commands or (sent_for_prompt(room, command.sender) and not command.activity):
        speaker.keep()
    speaker.run(commands)


def sent_for_prompt(room: Room, agent: AgentId) -> tuple[SentMessage, ...]:
    """Return what an agent has sent because of the prompt that it works on."""
    participant = room.participants.get(agent)
    return participant.sent if participant is not None else ()


def runnable(commands: tuple[Spoken, ...]) -> list[Spoken]:
    """Return those of the commands that do something by themselves."""
    return [spoken for spoken in commands if isinstance(spoken, _RUN)]


def _stays(room: Room, command: PostReply) -> bool:
    """Tell whether the words stay in the pane, as what a person typed there did."""
    participant = room.participants.get(command.sender)
    return command.local and (participant is None or not participant.share)


def kind_of(room: Room, command: PostReply, speech: AgentText) -> type[Activity | AgentResponse] | None:
    """Return as what the words are posted; None where there is nothing to post."""
    has_nothing_else = bool(speech.commands) and not speech.has_prose and command.ending is Ending.DONE
    if has_nothing_else and all(isinstance(spoken, Noop) for spoken in speech.commands):
        return None
    expected = (*_GOES_ON, ShowMode) if _may_steer(room, command.sender) else _GOES_ON
    goes_on = has_nothing_else and all(isinstance(spoken, expected) for spoken in speech.commands)
    return Activity if command.activity or goes_on else AgentResponse


class AgentTextRunner:
    """One who speaks, because of `heard`, the message it answers."""

    def __init__(
        self, room: Room, command: PostReply, heard: Message | None, batch: RoomDraft, rules: RoomRules
    ) -> None:
        self._rules = rules
        self._room = room
        self._command = command
        self._heard = heard
        self._batch = batch
        self._reply_to = command.reply_to
        self._asked = heard
        if heard is not None and heard.sender == SYSTEM and heard.kind is not DeliverKind.TURN:
            # What the room answered is a step on the way to an answer to somebody else.
            self._reply_to = heard.reply_to or heard.id
            self._asked = room.message(heard.reply_to) if heard.reply_to else None
        self._thread = command.thread or (heard.thread if heard else DEFAULT_THREAD)
        #: Messages of a tool that were found again in these words.
        self._used: set[MessageId] = set()

    # --- the words -------------------------------------------------------------------------------

    def keep(self) -> None:
        """Remember the id alone, so that nothing is run twice."""
        fields = {"recipients": ()}
        id = self._command.id
        self._batch.add(KeptPrivate, self._command.sender, SYSTEM, "", fields, thread=self._thread, id=id)

    def post(self, kind: type[AgentSpeech], commands: tuple[Spoken, ...]) -> None:
        """Post the words as they are."""
        room, command, asked = self._room, self._command, self._asked
        # What is answered may be too old to be remembered; then nobody knows who else may read it.
        target = asked.sender if asked else HUMAN if self._reply_to else ALL
        recipients = reply_recipients(room, asked, command.sender) if kind is AgentResponse else ()
        repeats = find_duplicate(self._sent, Channel.TOOL, (target, ALL), command.text)
        recipients = () if repeats else recipients
        check_queues(room, recipients, command.text, self._batch)
        fields: dict[str, Any] = {
            "handoff": command.handoff,
            "final": command.final or any(isinstance(spoken, Finish) for spoken in commands),
            "usage": command.usage,
            "ending": command.ending,
            "reply_to": self._reply_to,
            "repeats": repeats,
        }
        if fields["handoff"] is None and not fields["final"]:
            fields["handoff"] = self._handoff(commands)
        post_message(room, command, self._batch, kind, self._heard, target, recipients, fields)

    def _handoff(self, commands: tuple[Spoken, ...]) -> Handoff | None:
        known = [
            spoken
            for spoken in commands
            if isinstance(spoken, HandOver) and spoken.to in self._room.participants
        ]
        return Handoff(to=known[-1].to, task=known[-1].task) if known else None

    # --- the commands ----------------------------------------------------------------------------

    def run(self, commands: Sequence[Spoken]) -> None:
        """Run each command; one that is refused leaves a notice."""
        for spoken in commands[:MAX_COMMANDS]:
            try:
                self._run(spoken)
            except (BadInput, Refused) as error:
                self._complain(f"{_name(spoken)} was not run: {error.message} ({error.hint})")
        more = len(commands) - MAX_COMMANDS
        if more > 0:
            self._complain(f"{more} commands were not run: one text may have {MAX_COMMANDS}")

    def _run(self, spoken: Spoken) -> None:
        match spoken:
            case SendTo():
                self._send(spoken)
            case HandOver():
                # It stands in the event of the words, for a mode to act on.
                self._known(spoken.to)
            case QueryLog():
                self._query(spoken.count or DEFAULT_COUNT)
            case ModeRequest():
                self._set_mode(spoken)
            case ShowMode():
                self._check_role()
                self._tell(mode_text(self._batch.sessions.live_in(self._thread)))
            case Misspelt() if not spoken.to or spoken.to in (*self._room.participants, HUMAN, ALL):
                self._complain(f"{spoken.line!r} was not understood; {spoken.hint}")
            case _:
                # It names nobody known, so it is prose.
                pass

    def _known(self, agent: str) -> None:
        if agent not in self._room.participants:
            raise NotFound(f"unknown agent {agent!r}", nearest(agent, list(self._room.participants)))

    def _complain(self, text: str) -> None:
        self._batch.notice(self._command.sender, f"{self._command.sender}: {text}")

    def _send(self, spoken: SendTo) -> None:
        command = Send(
            sender=self._command.sender,
            to=spoken.to,
            text=spoken.text,
            thread=self._thread,
            ttl_s=self._command.ttl_s,
        )
        target, recipients = route(self._room, command)
        if known := find_duplicate(self._sent, Channel.TOOL, (target,), spoken.text, self._used):
            self._used.add(known)
            notice_duplicate(self._batch, command.sender, _name(spoken), known)
            return
        check_share(self._room, recipients)
        check_queues(self._room, recipients, spoken.text, self._batch)
        # With the answer the prompt is over, so nothing can repeat what stands in that.
        fields = {"via": Channel.WORDS} if self._command.activity else {}
        post_message(self._room, command, self._batch, AgentCall, self._heard, target, recipients, fields)

    @property
    def _sent(self) -> tuple[SentMessage, ...]:
        """What it has sent because of the same prompt."""
        return sent_for_prompt(self._room, self._command.sender)

    def _query(self, count: int) -> None:
        fields = {"count": count, "reply_to": self._question, "hops": hops_after(self._heard)}
        text = f"@query.log {count}"
        self._batch.add(LogRequested, self._command.sender, SYSTEM, text, fields, thread=self._thread)

    @property
    def _question(self) -> MessageId | None:
        return self._asked.id if self._asked else None

    def _tell(self, text: str) -> None:
        agent = self._command.sender
        check_queues(self._room, (agent,), text, self._batch)
        fields = {"reply_to": self._question, "hops": hops_after(self._heard)}
        _add_told(self._batch, agent, text, self._thread, fields, self._command.ttl_s)

    def _set_mode(self, spoken: ModeRequest) -> None:
        self._check_role()
        command = commands.SetMode(
            sender=self._command.sender,
            mode=spoken.mode,
            topic=spoken.topic,
            agents=spoken.agents or None,
            rounds=spoken.rounds,
            thread=self._thread,
        )
        set_mode(self._room, command, self._batch, self._rules)
        self._tell(mode_text(self._batch.sessions.live_in(self._thread)))

    def _check_role(self) -> None:
        if not _may_steer(self._room, self._command.sender):
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


def answer_query(room: Room, command: AnswerQuery, batch: RoomDraft) -> None:
    """Answer a query, if it still waits for an answer."""
    query = room.queries.get(command.query)
    if query is None:
        return
    fields: dict[str, Any] = {"reply_to": query.reply_to, "hops": query.hops, "query": command.query}
    try:
        check_queues(room, (query.agent,), command.text, batch)
    except TooMany:
        # Who takes no more is not told, but the question is over.
        fields["recipients"] = ()
    _add_told(batch, query.agent, command.text, query.thread, fields, command.ttl_s)


def _add_told(
    batch: RoomDraft, agent: AgentId, text: str, thread: str, fields: dict[str, Any], ttl_s: float | None
) -> None:
    recipients = fields.setdefault("recipients", (agent,))
    fields |= hold_and_expiry(batch, recipients, fields["hops"], ttl_s)
    batch.add(SystemReply, SYSTEM, agent, text[:MAX_ANSWER], fields, thread=thread)
    ask_about_loop(batch)
