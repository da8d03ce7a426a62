"""The demo agents' characters, which are defined in personas.toml."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """One character, with the phrases that it uses; `likes` are words that it votes for."""

    name: str
    motto: str
    busy: tuple[str, ...]
    greetings: tuple[str, ...]
    opinions: tuple[str, ...]
    remarks: tuple[str, ...]
    positions: tuple[str, ...]
    reasons: tuple[str, ...]
    rebuttals: tuple[str, ...]
    proposals: tuple[str, ...]
    steps: tuple[str, ...]
    tasks: tuple[str, ...]
    verdicts: tuple[str, ...]
    likes: tuple[str, ...]
    #: The thinking time in seconds at normal speed.
    think_s: float = 1.0
    #: An index into the terminal's palette of sixteen colours.
    colour: int = 32
    is_brief: bool = False


PERSONAS: Final = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("personas.toml").read_text("utf-8")), dict[str, Persona]
)
CONDUCTOR: Final = PERSONAS["conductor"]
