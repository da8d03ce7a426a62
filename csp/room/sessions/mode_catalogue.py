"""Describe the modes, made from their table, for every interface."""

from collections.abc import Mapping

from csp.protocol import catalogue
from csp.protocol.catalogue import Catalogue, CommandText, ModeEntry, ModeOption, ModeText
from csp.protocol.notices import notice_entries
from csp.protocol.session_parts import PhaseKind
from csp.room.sessions.modes import MODES, ModeRow, NextSpeaker, Times

_PASSES_ON = (NextSpeaker.NEXT, NextSpeaker.HANDOFF, NextSpeaker.HANDOFF_OR_NEXT)


def mode_names() -> list[str]:
    """Return the names of the modes, those that are used most first."""
    return [str(mode) for mode in dict.fromkeys((*catalogue.MODE_TEXTS, *MODES))]


def mode_entries() -> tuple[ModeEntry, ...]:
    """Return every mode in which a session runs."""
    rows = {str(mode): row for mode, row in MODES.items()}
    return tuple(_entry(name, rows[name]) for name in mode_names() if rows[name].phases)


def build_catalogue(groups: Mapping[str, tuple[str, ...]] | None = None) -> Catalogue:
    """Return the whole catalogue as an interface of a room with these groups gets it."""
    return Catalogue(
        modes=mode_entries(),
        delivery_states=catalogue.DELIVERY_STATES,
        held_reasons=catalogue.HELD_REASONS,
        end_reasons=catalogue.END_REASONS,
        agent_states=catalogue.AGENT_STATES,
        notices=notice_entries(),
        commands=tuple(
            CommandText(name=row.name, form=row.form, help=row.help, group=row.group)
            for row in catalogue.COMMANDS
            if row.is_page_command
        ),
        groups=dict(groups or {}),
    )


def _entry(name: str, row: ModeRow) -> ModeEntry:
    texts = {str(mode): text for mode, text in catalogue.MODE_TEXTS.items()}
    text = texts.get(name, ModeText(""))
    words = name.replace("_", " ").capitalize()
    return ModeEntry(
        id=name,
        name=words,
        chip=text.chip or words,
        about=text.about,
        unit=row.unit,
        rounds=row.rounds or 0,
        fewest=row.fewest,
        most=row.most,
        options=_options(row),
    )


def _options(row: ModeRow) -> tuple[ModeOption, ...]:
    speakers = {phase.speaker for phase in row.phases if phase.kind is PhaseKind.RELAY}
    times = {phase.times for phase in row.phases}
    offered = {
        ModeOption.FIRST: not speakers.isdisjoint(_PASSES_ON),
        ModeOption.SYNTH: Times.IF_SYNTH in times and not row.needs_no_synthesis,
        ModeOption.BALLOT: Times.IF_BALLOT in times,
        # Elsewhere a final word either ends the session anyway, or nobody hands over.
        ModeOption.RESPECT_FINAL: row.follows_handoff and not row.respects_final,
        ModeOption.LIMITS: row.is_limited,
        ModeOption.ROLES: any(phase.kind is PhaseKind.REVIEW for phase in row.phases),
        ModeOption.LEAD: NextSpeaker.LEAD in speakers,
    }
    return tuple(option for option, is_offered in offered.items() if is_offered)
