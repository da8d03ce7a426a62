"""A session's limits on turns, tokens, minutes and cost: the amount used and the limit reached."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.session_parts import EndReason, Limits, OnHardLimit, PhaseKind, WaitKind
from csp.room.sessions.session_state import Session

_Used = Callable[[Session, float], float]
_Limit = Callable[[Limits], float | None]


def minutes_used(session: Session, now: float) -> float:
    """Return how many minutes a session has been running, excluding pauses and waits."""
    idle_now_s = 0.0 if session.idle_since is None else now - session.idle_since
    return (now - session.started_at - session.idle_s - idle_now_s) / 60


#: For each limit: the amount used, the maximum and the unit.
_GUARDS: Final[dict[EndReason, tuple[_Used, _Limit, str]]] = {
    EndReason.EMERGENCY_TURNS: (lambda session, _: session.asked, lambda limits: limits.turns, "turns"),
    EndReason.EMERGENCY_TOKENS: (
        lambda session, _: session.used.new,
        lambda limits: limits.tokens,
        "new tokens",
    ),
    EndReason.EMERGENCY_MINUTES: (minutes_used, lambda limits: limits.minutes, "minutes"),
    EndReason.EMERGENCY_COST: (
        lambda session, _: session.used.cost_usd or 0.0,
        lambda limits: limits.cost,
        "US dollars",
    ),
}


_FIELDS: Final = {
    EndReason.EMERGENCY_TURNS: "turns",
    EndReason.EMERGENCY_TOKENS: "tokens",
    EndReason.EMERGENCY_MINUTES: "minutes",
    EndReason.EMERGENCY_COST: "cost",
}


#: Limits for which people are warned in advance.
_WARNED_OF: Final = (EndReason.EMERGENCY_TOKENS, EndReason.EMERGENCY_COST)
NEAR: Final = 0.8


def limit_hit(session: Session, now: float) -> EndReason | None:
    """Return the limit that a session has reached; a turn limit is reached when the last turn is over."""
    if session.stage.kind is PhaseKind.SOLO:
        # This is the only turn that is allowed after a limit.
        return None
    for reason, (used, limit, _) in _GUARDS.items():
        most = limit(session.setup.limits)
        # Turns for which no limit is left are not asked before a person has decided.
        is_open = reason is EndReason.EMERGENCY_TURNS and not all(
            turn.waits_for(WaitKind.RESUME) for turn in session.turns.values()
        )
        if most is not None and used(session, now) >= most and not is_open:
            return reason
    return None


def limits_near(session: Session) -> list[EndReason]:
    """Return the token and cost limits that are nearly used up."""
    found = []
    for reason in _WARNED_OF:
        used, limit, _ = _GUARDS[reason]
        most = limit(session.setup.limits)
        if most is not None and NEAR * most <= used(session, 0.0) < most:
            found.append(reason)
    return found


def limit_near(session: Session, reason: EndReason) -> NoticeWords:
    """Return the notice that a limit is nearly used up."""
    used, limit, unit = _GUARDS[reason]
    most = limit(session.setup.limits) or 0.0
    so_far, figure = _figure(used(session, 0.0)), _figure(most)
    if session.setup.on_hard_limit is OnHardLimit.ASK:
        return NoticeCode.LIMIT_NEAR_ASKS(used=so_far, most=figure, unit=unit)
    return NoticeCode.LIMIT_NEAR(used=so_far, most=figure, unit=unit)


def limit_reached(session: Session, reason: EndReason) -> NoticeWords:
    """Return the notice that a limit has been reached."""
    _, limit, unit = _GUARDS[reason]
    asks = session.setup.on_hard_limit is OnHardLimit.ASK
    most = _figure(limit(session.setup.limits) or 0.0)
    if asks:
        return NoticeCode.LIMIT_ASKS(most=most, unit=unit, session=session.id)
    return NoticeCode.LIMIT_REACHED(most=most, unit=unit)


def more_of(session: Session, reason: EndReason) -> Limits:
    """Return the limits of a session after a person has granted the amount of one of them once more."""
    used, limit, _ = _GUARDS[reason]
    amount = limit(session.amounts) or 0.0
    # The last turn may have passed the limit, which must not use up what is granted.
    most = max(limit(session.setup.limits) or 0.0, used(session, session.idle_since or 0.0)) + amount
    name = _FIELDS[reason]
    is_whole = reason in (EndReason.EMERGENCY_TURNS, EndReason.EMERGENCY_TOKENS)
    return replace(session.setup.limits, **{name: int(most) if is_whole else most})


def amount_of(session: Session, reason: EndReason) -> str:
    """Return what a person grants at a limit, such as "50 turns"."""
    _, limit, unit = _GUARDS[reason]
    return f"{_figure(limit(session.amounts) or 0.0)} {unit}"


def _figure(value: float) -> str:
    """Format a number for people; large numbers are shown without decimals."""
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:.6g}"


def minutes_over_at(session: Session) -> float | None:
    """Return when a session reaches its time limit, if it has one."""
    minutes = session.setup.limits.minutes
    if minutes is None or session.stage.kind is PhaseKind.SOLO or session.is_idle:
        return None
    return session.started_at + session.idle_s + minutes * 60
