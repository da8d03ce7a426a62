"""Carry what one call of a verb needs."""

import argparse
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from csp.config import Settings
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

    def reconnect(self) -> GatewayClient:
        """Return the gateway of the same room, which may have moved to another port by now."""
        settings = self.settings
        if self.address.room and not settings.gateway_url:
            settings = replace(
                settings, room=self.address.room, sources={**settings.sources, "room": "this call"}
            )
        found = find_room(settings, self.cwd)
        return GatewayClient(found.url, found.token)
