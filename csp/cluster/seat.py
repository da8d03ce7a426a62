"""A gateway's seat in a room: it follows the log of the room, and decides for it while it is the owner."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from csp.cluster.background import end_task
from csp.cluster.bus import Bus
from csp.cluster.calls import Calls
from csp.cluster.names import shard_of, stream_name
from csp.cluster.ownership import OwnerSigns, Step, next_step, rank_of
from csp.cluster.peers import Peers
from csp.cluster.rounds import Rounds
from csp.cluster.starting import START_S, wait_or_raise
from csp.errors import Broken, Deposed, LogLost
from csp.journal import Batch, Log, Place

log = logging.getLogger(__name__)


class FollowedLog(Log, Protocol):
    """The log of a room, as a seat follows it."""

    def look(self) -> None:
        """Look for new batches now, in case some were not heard of."""


class Member(Protocol):
    """The replica of a room in this process."""

    @property
    def place(self) -> Place:
        """The place in the log up to which the replica has everything."""

    @property
    def is_leading(self) -> bool:
        """Whether commands are decided here."""

    async def follow(self, place: Place, batch: Batch) -> None:
        """Add a batch of another gateway, or a claim."""

    async def caught_up(self, place: Place) -> None:
        """Return when the replica has an own batch at this place, or leads no more."""

    def check_start(self) -> None:
        """Raise Broken if the replica has something that is not in the log."""

    def lead(self, place: Place, epoch: int) -> None:
        """Decide from now on, after the claim at this place."""

    async def step_down(self) -> None:
        """Decide no more; what is not committed is passed on."""


class Seat:
    """Follows the log for a member, and claims the room when it is free."""

    def __init__(
        self, commit_log: FollowedLog, bus: Bus, peers: Peers, rounds: Rounds, calls: Calls, room: str
    ) -> None:
        self._log = commit_log
        self._bus = bus
        self._peers = peers
        self._rounds = rounds
        self._calls = calls
        self._room = room
        #: The stream that holds the room.
        self.stream = stream_name(shard_of(room))
        self._owner = ""
        self._epoch = 0
        self._claimed_at = 0.0
        self._deaf_since: float | None = None
        self._is_catching_up = True
        self._following: asyncio.Task[None] | None = None
        #: The claim, or the end of a lead, that is under way.
        self._acting: asyncio.Task[None] | None = None
        #: Called when the log cannot be followed any more.
        self.on_failure: Callable[[Broken], None] = lambda error: None
        calls.on_echo = self._on_echo

    @property
    def owner(self) -> str:
        """The process that owns the room, "" if nobody does."""
        return self._owner

    async def open(self, member: Member, after: Place) -> None:
        """Bring the member up to date, then follow the log in the background."""
        self._member = member
        await self._catch_up(after)
        member.check_start()
        self._is_catching_up = False
        await self._calls.open()
        self._following = asyncio.create_task(self._follow())
        self._rounds.add(self)

    async def close(self) -> None:
        """Stop following."""
        await self._stop()
        await self._calls.close()

    async def _stop(self) -> None:
        self._rounds.discard(self)
        await end_task(self._following)
        await end_task(self._acting)

    async def _catch_up(self, after: Place) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                async for place, batch in self._log.replay(after):
                    await self._receive(place, batch)
                    after = place
                return
            except LogLost as error:
                # The servers may be starting too.
                await wait_or_raise(error, deadline)

    # --- following -------------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            async for place, batch in self._log.tail(self._member.place):
                await self._receive(place, batch)
        except Broken as error:
            log.error("the log cannot be followed", extra={"problem": error.message})
            self.on_failure(error)

    async def _receive(self, place: Place, batch: Batch) -> None:
        member = self._member
        # Without lines it is a claim, or the last word of an owner that has left.
        if (batch.owner or not batch.lines) and batch.epoch >= self._epoch:
            self._note_owner(batch)
        if place.mark <= member.place.mark:
            return
        if member.is_leading and batch.owner == self._peers.me:
            # Its own append reports it in a moment.
            await member.caught_up(place)
        if member.is_leading and place.mark > member.place.mark:
            await member.step_down()
        if place.mark > member.place.mark:
            await member.follow(place, batch)

    def _note_owner(self, batch: Batch) -> None:
        if (batch.owner, batch.epoch) == (self._owner, self._epoch):
            return
        self._owner, self._epoch = batch.owner, batch.epoch
        # A claim is a sign of life, but not one that is read long after.
        self._claimed_at, self._deaf_since = 0.0 if self._is_catching_up else time.monotonic(), None
        log.info("room has an owner", extra={"room": self._room, "owner": batch.owner, "epoch": batch.epoch})
        self._calls.redirect(batch.owner)

    # --- ownership -------------------------------------------------------------------------------

    @property
    def is_uneasy(self) -> bool:
        """See `Ticked.is_uneasy`."""
        if self._owner == self._peers.me:
            return not self._member.is_leading
        return self._member.is_leading or self._deaf_since is not None or self._calls.open_bytes > 0

    def look(self) -> None:
        """See `Ticked.look`."""
        self._log.look()

    def tick(self, now: float, *, is_owner_late: bool) -> None:
        """See `Ticked.tick`."""
        if self._calls.refresh():
            # The answer may have been in a batch that was not heard.
            self._log.look()
        if (is_owner_late or self._deaf_since is not None) and self._bus.is_connected:
            self._probe()
        if self._acting is not None and not self._acting.done():
            return
        match next_step(self.signs(now), now):
            case Step.CLAIM:
                self._acting = asyncio.create_task(self._claim())
            case Step.STEP_DOWN:
                self._acting = asyncio.create_task(self._member.step_down())

    def signs(self, now: float) -> OwnerSigns:
        """Return what is known about the owner."""
        is_connected = self._bus.is_connected
        connected_at = now - self._bus.connected_for_s
        return OwnerSigns(
            me=self._peers.me,
            owner=self._owner,
            claimed_at=self._claimed_at,
            is_leading=self._member.is_leading,
            rank=rank_of(self._peers.me, self._room, self._peers.living() - {self._owner}),
            connected_at=max(connected_at, self._rounds.fresh_since) if is_connected else None,
            heard_at=self._peers.heard_at(self._owner),
            deaf_since=self._deaf_since,
            left_at=self._peers.left_at(self._owner),
        )

    def _probe(self) -> None:
        if self._owner not in ("", self._peers.me):
            self._calls.probe()

    def _on_echo(self, is_heard: bool) -> None:
        if is_heard:
            self._deaf_since = None
        elif self._deaf_since is None:
            self._deaf_since = time.monotonic()

    async def _claim(self) -> None:
        member = self._member
        after, epoch = member.place, self._epoch + 1
        claim = Batch(lines=(), first_seq=after.seq + 1, epoch=epoch, owner=self._peers.me)
        # The others may read the claim, and send their calls, before its acknowledgement comes.
        self._calls.hold()
        try:
            place = await self._log.append(claim, after)
            if epoch > self._epoch:
                self._note_owner(claim)
            if (self._owner, self._epoch) == (self._peers.me, epoch) and member.place.mark <= place.mark:
                log.info("room claimed", extra={"room": self._room, "epoch": epoch, "seq": place.seq})
                member.lead(place, epoch)
        except Deposed as error:
            log.info("claim refused", extra={"room": self._room, "epoch": epoch, "why": error.message})
        except LogLost as error:
            log.warning("claim failed", extra={"room": self._room, "epoch": epoch, "why": error.message})
        finally:
            self._calls.release()

    async def leave(self) -> None:
        """Stop following; a room that is decided here is left without an owner, so that others may claim it.

        Otherwise another gateway would first have to find out that nobody listens here any more.
        """
        await self._stop()
        member = self._member
        if member.is_leading:
            await member.step_down()
            free = Batch(lines=(), first_seq=member.place.seq + 1, epoch=self._epoch + 1)
            try:
                await self._log.append(free, member.place)
            except Broken as error:
                log.info("room not left in order", extra={"room": self._room, "why": error.message})
        await self._calls.close()
