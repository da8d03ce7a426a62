"""The texts that agents are asked with, from the files of prompts/."""

from pathlib import Path
from typing import Final

from csp.config import Settings
from csp.errors import Broken
from csp.protocol.session_parts import Limits
from csp.room.room_rules import RoomRules, WindowSize

_HERE: Final = Path(__file__).resolve().parent.parent
#: In a wheel the prompts lie inside the package, in a clone beside it.
_FOLDERS: Final = (_HERE / "prompts", _HERE.parent / "prompts")


def load_prompts() -> dict[str, str]:
    """Return the text of every prompt by its name."""
    for folder in _FOLDERS:
        if folder.is_dir():
            return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}
    raise Broken(f"the prompts are missing, expected them in one of: {', '.join(map(str, _FOLDERS))}")


def load_rules(settings: Settings) -> RoomRules:
    """Return the rules that the settings make for the modes."""
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
        board_replies=settings.board_replies,
        summary_after=settings.board_summary_after,
        summariser=settings.board_summariser,
        board_max_bytes=settings.board_max_kb * 1024,
        prompts=load_prompts(),
    )
