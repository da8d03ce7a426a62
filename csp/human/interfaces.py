"""What the chat needs around it: somewhere to show things, the room's address, a memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from csp.human.saved_state import SavedState
from csp.room_registry import Address


class ChatOutput(Protocol):
    """Where things are shown."""

    def put(self, text: str) -> None:
        """Show what was asked for or has come in."""

    def talk(self, text: str) -> None:
        """Show what is wrong, or what goes on around the room."""

    def bell(self) -> None:
        """Call the person."""

    def refresh(self) -> None:
        """Redraw what stays on the screen: the target and the bottom line."""

    def leave(self) -> None:
        """End the pane."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOrder:
    """Where the room is, what the pane may use; `is_person` tells a person from a script."""

    address: Address
    memory: SavedState
    env: Mapping[str, str]
    cwd: Path
    is_person: bool
