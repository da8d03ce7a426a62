"""The table of modes, one row per mode, and their descriptions for the interfaces.

A row defines a session's phases, the next speaker in each phase, and its end. The session engine
reads only these rows, so a new mode is a new row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from csp.protocol import attention, catalogue
from csp.protocol.catalogue import Catalogue, CommandEntry, CommandText, ModeEntry, ModeOption, ModeText
from csp.protocol.enums import Mode
from csp.protocol.notices import notice_entries
from csp.protocol.review_messages import MAX_REVISIONS, RunPhase
from csp.protocol.session_parts import EndReason, OnLimit, PhaseKind, Setup


class NextSpeaker(StrEnum):
    """The rule for the next speaker of a relay."""

    EACH = "each"  # every agent once, in turn order
    NEXT = "next"  # repeatedly in turn order
    HANDOFF = "handoff"  # the agent that the last speaker names
    HANDOFF_OR_NEXT = "handoff_or_next"
    LEAD = "lead"  # the lead, then the agent it names, then the lead again


class Times(StrEnum):
    """How often a phase is run."""

    ONCE = "once"
    OTHER_ROUNDS = "other_rounds"  # for every round except the first
    IF_BALLOT = "if_ballot"
    IF_SYNTH = "if_synth"
    IF_CUT = "if_cut"  # if a limit ended the previous phase


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """A phase of a mode; `prompt` names the template of its prompt."""

    kind: PhaseKind
    name: str
    prompt: str
    speaker: NextSpeaker = NextSpeaker.EACH
    times: Times = Times.ONCE
    is_sealed: bool = False
    is_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeRow:
    """A mode; `rounds` is its default number of rounds, or None if it has no fixed end."""

    phases: tuple[PhaseRow, ...] = ()
    rounds: int | None = None
    #: The option that changes this number: `rounds` or `steps`, or empty if it is fixed.
    unit: str = ""
    fewest: int = 1
    most: int | None = None
    is_round_a_turn: bool = False
    respects_final: bool = True
    follows_handoff: bool = True
    #: Whether an API agent must reply in an envelope, because plain text cannot name the next speaker.
    needs_envelope: bool = False
    without_handoff: EndReason = EndReason.NO_HANDOFF
    at_cap: EndReason = EndReason.CAP_REACHED
    #: Whether the room's limits apply by default.
    is_limited: bool = False
    #: The default action of a session if an agent reaches a usage limit.
    on_limit: OnLimit = OnLimit.SKIP
    #: The end reasons after which no synthesis is requested.
    needs_no_synthesis: frozenset[EndReason] = frozenset()
    #: Whether the outcome of the vote is the outcome of the session.
    is_decided_by_vote: bool = False


RELAY_NAME: Final = "turns"
_SYNTHESIS: Final = PhaseRow(kind=PhaseKind.SOLO, name="synthesis", prompt="synthesise", times=Times.IF_SYNTH)
#: The phases of a run by name, with the prompts of those in which an agent is asked.
#: csp.room.runs.run_protocol defines their order.
_RUN_PROMPTS: Final = {
    RunPhase.START: "review_ack",
    RunPhase.PLAN: "build_plan",
    RunPhase.FEEDBACK: "review_plan",
    RunPhase.EXECUTION: "build_step",
    RunPhase.WATCH: "review_watch",
    RunPhase.DECISION: "review_work",
    RunPhase.CLOSING: "build_end",
}
_LAST_WORD: Final = replace(_SYNTHESIS, times=Times.IF_CUT)
#: Limits that exist only for emergencies.
EMERGENCIES: Final = frozenset(
    {
        EndReason.EMERGENCY_TURNS,
        EndReason.EMERGENCY_TOKENS,
        EndReason.EMERGENCY_MINUTES,
        EndReason.EMERGENCY_COST,
    }
)


def _relay(prompt: str, speaker: NextSpeaker) -> PhaseRow:
    return PhaseRow(kind=PhaseKind.RELAY, name=RELAY_NAME, prompt=prompt, speaker=speaker)


def _ballot(times: Times) -> PhaseRow:
    return PhaseRow(kind=PhaseKind.BALLOT, name="ballot", prompt="ballot", times=times, is_sealed=True)


MODES: Final[dict[Mode, ModeRow]] = {
    Mode.FREEFORM: ModeRow(),
    Mode.SINGLE: ModeRow(
        phases=(_relay("single", NextSpeaker.HANDOFF), _LAST_WORD),
        rounds=2,
        is_round_a_turn=True,
        without_handoff=EndReason.DONE,
    ),
    Mode.COLLABORATE: ModeRow(
        phases=(_relay("collaborate", NextSpeaker.HANDOFF), _LAST_WORD),
        rounds=6,
        unit="rounds",
        is_round_a_turn=True,
        needs_envelope=True,
    ),
    Mode.AUTOPILOT: ModeRow(
        phases=(_relay("autopilot", NextSpeaker.HANDOFF_OR_NEXT),),
        is_round_a_turn=True,
        respects_final=False,
        is_limited=True,
        on_limit=OnLimit.WAIT,
    ),
    Mode.ROUND_ROBIN: ModeRow(
        phases=(_relay("round_robin", NextSpeaker.NEXT), _SYNTHESIS),
        rounds=10,
        unit="steps",
        is_round_a_turn=True,
        follows_handoff=False,
        at_cap=EndReason.DONE,
    ),
    Mode.ORCHESTRATOR: ModeRow(
        phases=(_relay("orchestrate", NextSpeaker.LEAD), _SYNTHESIS),
        unit="steps",
        fewest=2,
        is_round_a_turn=True,
        needs_envelope=True,
        is_limited=True,
        # The final message of the lead is the synthesis.
        needs_no_synthesis=frozenset({EndReason.FINAL}),
    ),
    Mode.DEBATE: ModeRow(
        phases=(
            PhaseRow(kind=PhaseKind.GATHER, name="positions", prompt="debate", is_sealed=True),
            PhaseRow(kind=PhaseKind.RELAY, name="responses", prompt="respond", times=Times.OTHER_ROUNDS),
            _ballot(Times.IF_BALLOT),
            _SYNTHESIS,
        ),
        rounds=3,
        unit="rounds",
        fewest=2,
        respects_final=False,
        follows_handoff=False,
    ),
    Mode.CONSENSUS: ModeRow(
        phases=(
            PhaseRow(kind=PhaseKind.GATHER, name="proposals", prompt="consensus", is_sealed=True),
            _ballot(Times.ONCE),
            _SYNTHESIS,
        ),
        rounds=2,
        fewest=2,
        respects_final=False,
        follows_handoff=False,
        is_decided_by_vote=True,
    ),
    Mode.REVIEW: ModeRow(
        phases=tuple(
            PhaseRow(
                kind=PhaseKind.REVIEW,
                name=phase,
                prompt=_RUN_PROMPTS.get(phase, ""),
                is_waiting=phase not in _RUN_PROMPTS,
            )
            for phase in RunPhase
        ),
        rounds=MAX_REVISIONS + 1,
        unit="rounds",
        fewest=2,
        most=2,
        respects_final=False,
        follows_handoff=False,
        on_limit=OnLimit.WAIT,
    ),
}


def row_of(setup: Setup) -> ModeRow:
    """Return the table row for a session's mode."""
    return MODES[setup.mode]


def repetitions(phase: PhaseRow, setup: Setup, reason: EndReason, *, has_synth: bool) -> int:
    """Return how often a phase is run if the previous phase ended for `reason`."""
    has_last_word = has_synth and reason not in row_of(setup).needs_no_synthesis
    return {
        Times.ONCE: 1,
        Times.OTHER_ROUNDS: (setup.rounds or 1) - 1,
        Times.IF_BALLOT: int(setup.ballot),
        Times.IF_SYNTH: int(has_last_word),
        Times.IF_CUT: int(has_last_word and reason in EMERGENCIES),
    }[phase.times]


def respects_final(setup: Setup) -> bool:
    """Return whether an agent may end the session."""
    return row_of(setup).respects_final or setup.respect_final


# --- descriptions for the interfaces --------------------------------------------------------------


_PASSES_ON = (NextSpeaker.NEXT, NextSpeaker.HANDOFF, NextSpeaker.HANDOFF_OR_NEXT)


def mode_names() -> list[str]:
    """Return the names of the modes, the most used first."""
    return [str(mode) for mode in dict.fromkeys((*catalogue.MODE_TEXTS, *MODES))]


def mode_entries() -> tuple[ModeEntry, ...]:
    """Return the catalogue entries of all modes that run sessions."""
    rows = {str(mode): row for mode, row in MODES.items()}
    return tuple(_entry(name, rows[name]) for name in mode_names() if rows[name].phases)


def build_catalogue(groups: Mapping[str, tuple[str, ...]] | None = None) -> Catalogue:
    """Return the whole catalogue for an interface of a room with these groups."""
    return Catalogue(
        modes=mode_entries(),
        delivery_states=catalogue.DELIVERY_STATES,
        held_reasons=catalogue.HELD_REASONS,
        end_reasons=catalogue.END_REASONS,
        agent_states=catalogue.AGENT_STATES,
        notices=notice_entries(),
        commands=tuple(_command(row) for row in catalogue.COMMANDS if row.is_page_command),
        pane_commands=tuple(_command(row) for row in catalogue.COMMANDS if not row.is_page_command),
        attention_events=attention.EVENTS,
        groups=dict(groups or {}),
    )


def _command(row: CommandEntry) -> CommandText:
    return CommandText(name=row.name, form=row.form, help=row.help, group=row.group)


def _entry(name: str, row: ModeRow) -> ModeEntry:
    texts = {str(mode): text for mode, text in catalogue.MODE_TEXTS.items()}
    text = texts.get(name, ModeText(""))
    words = name.replace("_", " ").capitalize()
    speakers = {phase.speaker for phase in row.phases if phase.kind is PhaseKind.RELAY}
    times = {phase.times for phase in row.phases}
    offered = {
        ModeOption.FIRST: not speakers.isdisjoint(_PASSES_ON),
        ModeOption.SYNTH: Times.IF_SYNTH in times and not row.needs_no_synthesis,
        ModeOption.BALLOT: Times.IF_BALLOT in times,
        # In other modes, a final message always ends the session, or there are no handoffs.
        ModeOption.RESPECT_FINAL: row.follows_handoff and not row.respects_final,
        ModeOption.LIMITS: row.is_limited,
        ModeOption.ROLES: any(phase.kind is PhaseKind.REVIEW for phase in row.phases),
        ModeOption.LEAD: NextSpeaker.LEAD in speakers,
    }
    return ModeEntry(
        id=name,
        name=words,
        chip=text.chip or words,
        about=text.about,
        unit=row.unit,
        rounds=row.rounds or 0,
        fewest=row.fewest,
        most=row.most,
        options=tuple(option for option, is_offered in offered.items() if is_offered),
    )
