"""Join a room as an agent, for an MCP client that runs outside the room."""

import contextlib
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
from csp.room.agent_names import to_id
from csp.room_registry import Address

#: Separate from the tokens of panes, because a pane may have the same name.
_TOKEN_KIND: Final = "mcp"
_WAIT_S: Final = 50
_PAUSE_S: Final = 1.0
#: A position after all messages, so that the wait never ends early.
_LAST_SEQ: Final = 2**53


class OutsideMember:
    """A named agent that keeps its id as long as its token is known."""

    def __init__(self, name: str, find: Callable[[], Address], state_dir: Path) -> None:
        self._name = name
        self._file = to_id(name, JoinRole.AGENT)
        self._find = find
        self._state_dir = str(state_dir)
        self.network = HttpRoomClient(self.connect)
        self.id = ""

    def connect(self) -> GatewayClient:
        """Join or rejoin the room; return the gateway client of this agent."""
        address = self._find()
        if not address.room:
            # Only the room's address is known here, so there is no folder for a token.
            return self._join(address, "")
        path = token_path(self._state_dir, address.room, self._file, _TOKEN_KIND)
        try:
            make_private_dir(os.path.dirname(path))
            # If two start at the same time, the second finds the token of the first.
            with open(f"{path}.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                known = ""
                with contextlib.suppress(OSError, UnicodeError):
                    known = Path(path).read_text("ascii").strip()
                return self._join(address, known)
        except OSError as exc:
            raise Broken(f"cannot write {path!r}: {(exc.strerror or '').lower()}") from exc

    def _join(self, address: Address, known: str) -> GatewayClient:
        body = {"agentId": self._name, "kind": ParticipantKind.MCP, "capabilities": [ParticipantKind.MCP]}
        try:
            answer = GatewayClient(address.url, known).post("/register", body)
        except (Unauthenticated, Forbidden, NotFound):
            # No token yet, the id has a new owner, or the room is new.
            answer = GatewayClient(address.url, address.token).post("/register", body)
        token = field(answer, "token", str)
        self.id = field(answer, "agentId", str)
        if address.room:
            save_token(self._state_dir, address.room, self._file, token, _TOKEN_KIND)
        return GatewayClient(address.url, token)

    def stay(self) -> None:
        """Start calling the room regularly, because an agent counts as offline after a minute of silence."""
        threading.Thread(target=self._stay, daemon=True, name="csp-mcp-stay").start()

    def _stay(self) -> None:
        while True:
            try:
                self.network.ask(
                    lambda it: it.get(f"/inbox/{segment(self.id)}", after=_LAST_SEQ, wait=_WAIT_S)
                )
            except Unauthenticated:
                return  # it was removed, or its id has a new owner
            except CspError:
                time.sleep(_PAUSE_S)

    def leave(self) -> None:
        """Leave the room; a room that cannot be reached detects the absence by itself."""
        if not self.id:
            return
        try:
            self.network.ask(lambda it: it.post("/state", {"state": "offline"}))
        except CspError:
            return
