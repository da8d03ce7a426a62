"""Post the CLI's output to the room, in order and each piece only once."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from typing import Final

from csp.client import Client
from csp.errors import CspError, StorageFull, TooMany, Unreachable
from csp.protocol.enums import MAX_TEXT_BYTES, NO_TEXT, Ending
from csp.protocol.requests import Usage
from csp.sidecar.inject.message_progress import MessageProgress
from csp.terminal.reply_tracker import CapturedActivity, CapturedReply

log = logging.getLogger(__name__)

#: The minimum interval for reporting running tools.
WORKING_S: Final = 5.0
RETRY_S: Final = 2.0
_CUT: Final = "\n\n[truncated: the full text is in the pane]"
#: The usage of a prompt that was answered together with another one, which accounts for the whole usage.
_NOTHING_MORE: Final = Usage(cost_usd=0.0)
#: Endings whose reason is worth posting; a person who stops an answer already knows the reason.
_SAYS_WHY: Final = frozenset({Ending.FAILED, Ending.LIMITED})


class ReplyPoster:
    """A queue that posts pieces one at a time; a piece that the room refuses is logged and skipped."""

    def __init__(
        self, client: Client, progress: MessageProgress, agent: str, on_posted: Callable[[], None]
    ) -> None:
        self._client = client
        self._progress = progress
        self._agent = agent
        self._on_posted = on_posted
        self._waiting: asyncio.Queue[CapturedActivity | CapturedReply] = asyncio.Queue()
        self._again: CapturedActivity | CapturedReply | None = None
        self._unposted = 0
        self._told_working = 0.0

    @property
    def is_idle(self) -> bool:
        """Return whether the room has received everything."""
        return not self._unposted

    def post(self, piece: CapturedActivity | CapturedReply) -> None:
        """Queue a piece for posting."""
        self._unposted += 1
        self._waiting.put_nowait(piece)

    async def run(self) -> None:
        """Post queued pieces until cancelled."""
        while True:
            piece = self._again or await self._waiting.get()
            self._again = None
            try:
                if isinstance(piece, CapturedActivity):
                    await self._post_activity(piece)
                else:
                    for tag in (*piece.also, piece.tag):
                        await self._post_reply(piece, tag)
            except (StorageFull, TooMany) as error:
                log.warning("room could not accept the output", extra={"why": error.message})
                await asyncio.sleep(RETRY_S)
                self._again = piece
                continue
            except Unreachable:
                raise
            except CspError as error:
                log.error("output was refused", extra={"id": piece.id, "why": error.message})
            self._unposted -= 1
            self._on_posted()

    async def _post_activity(self, piece: CapturedActivity) -> None:
        if piece.text.strip():
            asked = self._progress.find(piece.tag)
            await self._client.output(
                _fitting(piece.text),
                turn=asked.turn if asked else None,
                reply_to=asked.id if asked else None,
                local=asked is None,
                activity=True,
                id=self._id_for(f"{piece.id} activity"),
            )
        if piece.tool and time.monotonic() - self._told_working >= WORKING_S:
            self._told_working = time.monotonic()
            await self._client.working(f"{piece.tool} {piece.arguments}"[:200])

    async def _post_reply(self, piece: CapturedReply, tag: str | None) -> None:
        asked = self._progress.find(tag)
        text = _fitting(piece.text) or (piece.reason if piece.how in _SAYS_WHY else "")
        if not text.strip() and piece.how is Ending.DONE:
            text = NO_TEXT
        await self._client.output(
            text,
            turn=asked.turn if asked else None,
            reply_to=asked.id if asked else None,
            local=asked is None,
            usage=piece.usage if tag == piece.tag or piece.usage is None else _NOTHING_MORE,
            ending=piece.how,
            id=self._id_for(f"{piece.id} {tag}"),
        )

    def _id_for(self, name: str) -> str:
        """Return the same id for the same piece, so that the room accepts it only once."""
        return "out." + hashlib.sha256(f"{self._agent} {name}".encode()).hexdigest()[:32]


def _fitting(text: str) -> str:
    raw = text.encode()
    if len(raw) <= MAX_TEXT_BYTES:
        return text
    return raw[: MAX_TEXT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT
