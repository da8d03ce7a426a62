"""What one call of a verb needs."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from csp.cli.output import put_json, put_lines, talk
from csp.config import Settings
from csp.errors import BadInput, CspError, Refused
from csp.http_client import GatewayClient
from csp.room_registry import Address, find_room


@dataclass(frozen=True)
class VerbCall:
    """One call: its arguments, its settings, where it was made, and the gateway it talks to."""

    args: argparse.Namespace
    settings: Settings
    cwd: Path
    argv: tuple[str, ...] = ()

    @property
    def is_json(self) -> bool:
        return bool(self.args.json)

    @cached_property
    def address(self) -> Address:
        return find_room(self.settings, self.cwd)

    @cached_property
    def gateway(self) -> GatewayClient:
        return GatewayClient(self.address.url, self.address.token)

    def tell(self, answer: object, text: str) -> int:
        """Say in one line what was done, or print the answer as json; return 0."""
        if self.is_json:
            put_json(answer)
        else:
            talk(text)
        return 0

    def show(self, answer: object, lines: Iterable[str], note: str = "") -> int:
        """Print the answer, as json or as lines for a person with a note on stderr; return 0."""
        if self.is_json:
            put_json(answer)
            return 0
        put_lines(lines)
        if note:
            talk(note)
        return 0

    def room_name(self, *, is_sure: bool = False) -> str:
        """Return the name of the room, whether its gateway runs or not; if `is_sure`, never a guess."""
        if self.settings.is_set("room"):
            return self.settings.room
        try:
            return self.address.room or self.settings.room
        except CspError as exc:
            if is_sure and isinstance(exc, Refused):
                raise
            return self.settings.room

    def reconnect(self) -> GatewayClient:
        """Return the gateway of the same room, which may have moved to another port by now."""
        settings = self.settings
        if self.address.room and not settings.gateway_url:
            settings = replace(
                settings, room=self.address.room, sources={**settings.sources, "room": "this call"}
            )
        found = find_room(settings, self.cwd)
        return GatewayClient(found.url, found.token)

    def directory(self, text: str | None) -> Path:
        """Return the directory that --dir names, by default the current one."""
        path = self.cwd / Path(text or ".")
        if not path.is_dir():
            raise BadInput(f"--dir: expected a directory, got {text!r}")
        return path.resolve()

    def check_free_pane(self, what: str) -> None:
        """Refuse to start an agent inside another's pane: the new one would join as that agent."""
        if self.settings.agent:
            raise Refused(
                f"this pane is already agent {self.settings.agent!r}", f"start {what} in another pane"
            )
        if not self.address.token:
            raise BadInput("no token for the room", "set CSP_AUTH_TOKEN")
