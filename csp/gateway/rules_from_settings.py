"""Build the rules of a room from its settings."""

from csp.config import Settings
from csp.prompt_files import load_prompts
from csp.protocol.session_parts import Limits, OnHardLimit, OnLimit
from csp.room.commands import AllowedCommand, RoomRules, WindowSize


def load_rules(settings: Settings) -> RoomRules:
    """Return the rules defined by the settings, with all prompts."""
    return RoomRules(
        warn_s=settings.turn_warn_ms / 1000,
        timeout_s=settings.turn_timeout_ms / 1000,
        soft_turns=settings.soft_turns,
        soft_tokens=settings.soft_tokens,
        window=WindowSize(items=settings.window_items, tokens=settings.window_tokens),
        limits=Limits(
            turns=settings.max_turns,
            tokens=settings.max_tokens,
            minutes=settings.max_minutes,
            cost=settings.max_cost_usd,
        ),
        on_limit=OnLimit(settings.on_limit) if settings.on_limit else None,
        on_hard_limit=OnHardLimit(settings.on_hard_limit),
        board_replies=settings.board_replies,
        summary_after=settings.board_summary_after,
        summariser=settings.board_summariser,
        board_max_bytes=settings.board_max_kb * 1024,
        allowed=tuple(AllowedCommand(agent=one.agent, pattern=one.command) for one in settings.allow),
        prompts=load_prompts(),
    )
