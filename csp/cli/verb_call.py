"""The context of one call of a verb."""

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
    """One call, with its arguments, settings, directory and gateway."""

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
        """Report the outcome in one line, or print the response as JSON; return 0."""
        if self.is_json:
            put_json(answer)
        else:
            talk(text)
        return 0

    def show(self, answer: object, lines: Iterable[str], note: str = "") -> int:
        """Print the response as JSON, or as human-readable lines with a note on stderr; return 0."""
        if self.is_json:
            put_json(answer)
            return 0
        put_lines(lines)
        if note:
            talk(note)
        return 0

    def room_name(self, *, is_sure: bool = False) -> str:
        """Return the room's name, whether or not its gateway is running; with `is_sure`, never a guess."""
        if self.settings.is_set("room"):
            return self.settings.room
        try:
            return self.address.room or self.settings.room
        except CspError as exc:
            if is_sure and isinstance(exc, Refused):
                raise
            return self.settings.room

    def reconnect(self) -> GatewayClient:
        """Return the current gateway of the same room, which may have moved to another port."""
        settings = self.settings
        if self.address.room and not settings.gateway_url:
            settings = replace(
                settings, room=self.address.room, sources={**settings.sources, "room": "this call"}
            )
        found = find_room(settings, self.cwd)
        return GatewayClient(found.url, found.token)

    def directory(self, text: str | None) -> Path:
        """Return the directory given by --dir, by default the current one."""
        path = self.cwd / Path(text or ".")
        if not path.is_dir():
            raise BadInput(f"--dir: expected a directory, got {text!r}")
        return path.resolve()

    def check_free_pane(self, what: str) -> None:
        """Raise in an agent's pane, because a new agent started there would join as that agent."""
        if self.settings.agent:
            raise Refused(
                f"this pane is already agent {self.settings.agent!r}", f"start {what} in another pane"
            )
        if not self.address.token:
            raise BadInput("no token for the room", "set CSP_AUTH_TOKEN")
