"""Take part in a room as an agent of one's own, for a client that runs outside it."""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from csp.errors import Broken, CspError, Forbidden, NotFound, Unauthenticated
from csp.fast_start.room_files import make_private_dir, save_token, token_path
from csp.http_client import GatewayClient, field, segment
from csp.mcp.room_client import HttpRoomClient
from csp.protocol.enums import JoinRole, ParticipantKind
from csp.room.identity import to_id
from csp.room_registry import Address

#: Beside the tokens of panes, of which one may have the same name.
_TOKEN_KIND: Final = "mcp"
_WAIT_S: Final = 50
_PAUSE_S: Final = 1.0
#: After every message that there can be, so that the wait is for none.
_LAST_SEQ: Final = 2**53


class OutsideMember:
    """An agent of a name, which comes back under its id as long as its token is known."""

    def __init__(self, name: str, find: Callable[[], Address], state_dir: Path) -> None:
        self._name = name
        self._file = to_id(name, JoinRole.AGENT)
        self._find = find
        self._state_dir = str(state_dir)
        self.network = HttpRoomClient(self.connect)
        self.id = ""

    def connect(self) -> GatewayClient:
        """Join the room, or come back to it; return the gateway to speak to as this agent."""
        address = self._find()
        if not address.room:
            # Nothing is known of it here but its address, so there is no place for a token either.
            return self._join(address, "")
        path = token_path(self._state_dir, address.room, self._file, _TOKEN_KIND)
        try:
            make_private_dir(os.path.dirname(path))
            # Of two that start at once, the second one finds the token of the first.
            with open(f"{path}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                return self._join(address, self._known_token(address.room))
        except OSError as exc:
            raise Broken(f"cannot write {path!r}: {(exc.strerror or '').lower()}") from exc

    def _join(self, address: Address, known: str) -> GatewayClient:
        body = {"agentId": self._name, "kind": ParticipantKind.MCP, "capabilities": [ParticipantKind.MCP]}
        try:
            answer = GatewayClient(address.url, known).post("/register", body)
        except (Unauthenticated, Forbidden, NotFound):
            # It has none yet, somebody else has had the id meanwhile, or the room is a new one.
            answer = GatewayClient(address.url, address.token).post("/register", body)
        token = field(answer, "token", str)
        self.id = field(answer, "agentId", str)
        if address.room:
            save_token(self._state_dir, address.room, self._file, token, _TOKEN_KIND)
        return GatewayClient(address.url, token)

    def _known_token(self, room: str) -> str:
        try:
            return Path(token_path(self._state_dir, room, self._file, _TOKEN_KIND)).read_text("ascii").strip()
        except (CspError, OSError, UnicodeError):
            return ""

    def stay(self) -> None:
        """Be seen to be here from now on: who asks for nothing for a minute counts as gone."""
        threading.Thread(target=self._stay, daemon=True, name="csp-mcp-stay").start()

    def _stay(self) -> None:
        while True:
            try:
                self.network.ask(
                    lambda it: it.get(f"/inbox/{segment(self.id)}", after=_LAST_SEQ, wait=_WAIT_S)
                )
            except Unauthenticated:
                return  # it was removed, or its id is somebody else's now
            except CspError:
                time.sleep(_PAUSE_S)

    def leave(self) -> None:
        """Say good-bye; a room that does not hear it will notice by itself."""
        if not self.id:
            return
        try:
            self.network.ask(lambda it: it.post("/state", {"state": "offline"}))
        except CspError:
            return
