"""The replica of a room in a cluster: what it adds to the writer of a room with one gateway."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.cluster.calls import RemoteCommand
from csp.cluster.node import Node
from csp.errors import Broken, Forbidden, LogLost, NotFound, StorageFailed, StorageFull, TooLarge, TooMany
from csp.gateway import replicated_writer as writer_module
from csp.gateway.replicated_writer import ReplicatedWriter, error_of, failure_of, kinds
from csp.journal import DiskThread, JsonlJournal
from csp.protocol.enums import ALL, HUMAN, AgentId
from csp.protocol.notices import NoticeCode
from csp.protocol.review_messages import RunTerms
from csp.room.commands import (
    DEFAULT_RULES,
    AnyCommand,
    Collaborate,
    Command,
    Join,
    Notice,
    Send,
    SetMode,
)
from tests.cluster.nats_servers import NatsServer
from tests.journal.making import lines_to
from tests.waiting import wait_until

WORDS = NoticeCode.JOURNAL_REPAIRED(warning="a")


@pytest.mark.parametrize("kind", kinds().values(), ids=kinds())
def test_a_command_of_every_kind_can_be_read(kind: type[Command]) -> None:
    assert msgspec.json.Decoder(kind) is not None


@pytest.mark.parametrize(
    "command",
    [
        Notice(words=WORDS, target=HUMAN),
        Join(name="ada", capabilities={"model": "m"}),
        Join(name="ada", capabilities=["demo"]),
        SetMode(sender=HUMAN, mode="review", terms=RunTerms(), notes=(WORDS,), thread=None),
        Collaborate(sender=HUMAN, objective="o", agents=("a", "b"), cost=1.5),
        Send(sender=HUMAN, to="all", text="line\nline \u2028 \x7f 🦜", once="k", caller=AgentId("ada")),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_command_arrives_as_it_was(command: Command) -> None:
    assert msgspec.json.decode(msgspec.json.encode(command), type=type(command)) == command


@pytest.mark.parametrize(
    "error",
    [
        NotFound("unknown agent 'x'", "see: csp agents"),
        Forbidden("no", ""),
        TooMany("many", "wait", after_s=2.0),
        LogLost("lost", "again", after_s=1.0),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_refusal_arrives_as_it_was(error: Any) -> None:
    found = error_of(failure_of(error))

    assert type(found) is type(error)
    assert (found.message, found.hint, found.status) == (error.message, error.hint, error.status)
    assert getattr(found, "after_s", None) == getattr(error, "after_s", None)


def test_an_error_of_a_newer_version_is_an_error() -> None:
    failure = msgspec.structs.replace(failure_of(Broken("x")), kind="Unheard")

    assert type(error_of(failure)) is Broken


# --- in a cluster --------------------------------------------------------------------------------


class Replica:
    """One gateway's writer with its seat."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node = node
        self.folder = folder
        self.published: list[int] = []

    async def open(self, room: str) -> None:
        cluster = await self.node.room(room)
        self.seat = cluster.seat
        self.writer = ReplicatedWriter(
            JsonlJournal.open(self.folder), cluster, DiskThread(), time.time, self._publish, DEFAULT_RULES
        )
        self.seat.on_failure = self.writer.fail
        await self.seat.open(self.writer, self.writer.start)

    def _publish(self, committed: Any) -> None:
        self.published += [event.seq for event, _ in committed]

    async def close(self) -> None:
        await self.seat.close()
        await self.writer.close()
        if self.writer.broken.done():
            self.writer.broken.exception()

    async def say(self, text: str) -> list[int]:
        return [event.seq for event in await self.writer.submit(Send(sender=HUMAN, to=ALL, text=text))]

    @property
    def journal(self) -> bytes:
        return (self.folder / "journal.jsonl").read_bytes()


@pytest.fixture
async def nodes(nats_server: NatsServer) -> AsyncIterator[list[Node]]:
    nodes = [await Node.open([nats_server.url], b"a secret of the cluster") for _ in range(2)]
    yield nodes
    for node in nodes:
        await node.close()


@pytest.fixture
async def pair(nodes: list[Node], tmp_path: Path) -> AsyncIterator[tuple[Replica, Replica]]:
    """An owner and an edge of one room."""
    room = f"pair-{time.time_ns()}"
    replicas = [Replica(node, tmp_path / str(number)) for number, node in enumerate(nodes)]
    for replica in replicas:
        await replica.open(room)
    await wait_until(lambda: any(replica.writer.is_leading for replica in replicas))
    await replicas[0].writer.submit(Join(name="ada"))
    owner, edge = sorted(replicas, key=lambda replica: not replica.writer.is_leading)
    yield owner, edge
    for replica in replicas:
        await replica.close()


async def test_a_command_at_an_edge_has_its_events_in_the_replica(pair: tuple[Replica, Replica]) -> None:
    owner, edge = pair
    for number in range(5):
        seqs = await edge.say(f"message {number}")
        assert edge.writer.room.seq >= seqs[-1]
        assert edge.writer.safe_seq >= seqs[-1]
    await wait_until(lambda: owner.journal == edge.journal)

    assert edge.published == owner.published == list(range(1, edge.writer.room.seq + 1))


async def test_commands_of_an_edge_keep_their_order(pair: tuple[Replica, Replica]) -> None:
    _, edge = pair
    commands = [Send(sender=HUMAN, to=ALL, text=str(number)) for number in range(300)]
    results = [edge.writer.submit(command) for command in commands]
    seqs = [(await result)[0].seq for result in results]

    assert seqs == sorted(seqs)


async def test_a_refusal_by_the_owner_is_raised_at_the_edge(pair: tuple[Replica, Replica]) -> None:
    owner, edge = pair
    before = owner.writer.room.seq
    with pytest.raises(NotFound, match="nobody"):
        await edge.writer.submit(Send(sender=HUMAN, to="nobody", text="x"))

    assert owner.writer.room.seq == before


async def test_a_command_that_causes_nothing_is_answered(pair: tuple[Replica, Replica]) -> None:
    _, edge = pair
    command = Send(sender=HUMAN, to=ALL, text="x", once="a-key")
    first = await edge.writer.submit(command)
    again = await edge.writer.submit(command)

    assert first
    assert again == []


async def test_an_order_that_is_too_long_for_a_message_is_refused_and_changes_nothing(
    pair: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, edge = pair
    monkeypatch.setattr(writer_module, "MAX_COMMAND_BYTES", 1000)
    before = owner.writer.room.seq
    for replica in (owner, edge):
        with pytest.raises(TooLarge):
            await replica.writer.submit(Send(sender=HUMAN, to=ALL, text="x" * 2000))
    await edge.say("short")

    assert owner.writer.room.seq == before + 1


async def test_a_taken_room_goes_on_and_loses_nothing(pair: tuple[Replica, Replica]) -> None:
    """The edge claims while the owner decides: commands of both sides are carried out once, in order."""
    owner, edge = pair
    results = []
    for number in range(200):
        results += [replica.writer.submit(_text(replica, number)) for replica in pair]
        if number == 100:
            await edge.seat._claim()
        await asyncio.sleep(0.001)
    ends = [[event.text for event in await result] for result in results]
    await wait_until(lambda: owner.journal == edge.journal)
    said = [msgspec.json.decode(line)["text"] for line in owner.journal.splitlines()]

    assert all(len(texts) == 1 for texts in ends)
    for replica in pair:
        own = [text for text in said if text.startswith(str(id(replica)))]
        assert own == [f"{id(replica)} {number}" for number in range(200)]
    assert owner.published == edge.published
    assert sum(replica.writer.is_leading for replica in pair) == 1


def _text(replica: Replica, number: int) -> AnyCommand:
    return Send(sender=HUMAN, to=ALL, text=f"{id(replica)} {number}")


async def test_a_call_that_is_sent_twice_is_decided_once(pair: tuple[Replica, Replica]) -> None:
    owner, edge = pair
    edge.seat._calls.on_answers = lambda answers: None
    result = edge.writer.submit(Send(sender=HUMAN, to=ALL, text="once"))
    for _ in range(5):
        edge.seat._calls._repeat()
        await asyncio.sleep(0)
    events = await result
    edge.seat._calls._repeat()
    await edge.say("after")
    texts = [msgspec.json.decode(line)["text"] for line in owner.journal.splitlines()]

    assert len(events) == 1
    assert texts.count("once") == 1


async def test_a_new_owner_ignores_calls_that_the_last_one_carried_out(
    pair: tuple[Replica, Replica],
) -> None:
    """The ids of calls are in the log, so a gateway that only followed knows them."""
    owner, edge = pair
    await asyncio.gather(*[edge.writer.submit(_text(edge, number)) for number in range(20)])
    known = list(edge.writer._done)
    repeated = [
        RemoteCommand(call_id, "Send", msgspec.Raw(msgspec.json.encode(_text(edge, 0)))) for call_id in known
    ]
    await edge.seat._claim()
    before = edge.writer.room.seq
    accepted = edge.writer._accept("nowhere", repeated)
    await edge.writer.settle()

    assert len(known) >= 20
    assert list(owner.writer._done) == known
    assert accepted
    assert edge.writer.room.seq == before


async def test_a_gateway_that_was_off_copies_what_it_missed(
    pair: tuple[Replica, Replica], nodes: list[Node], tmp_path: Path
) -> None:
    owner, _ = pair
    for number in range(50):
        await owner.say(f"message {number}")
    late = Replica(nodes[0], tmp_path / "late")
    await late.open(owner.seat._room)
    found = late.journal
    await late.close()

    assert found == owner.journal
    assert late.writer.journal.room_id == owner.writer.journal.room_id


async def test_a_journal_that_differs_from_the_log_is_refused(
    pair: tuple[Replica, Replica], nodes: list[Node], tmp_path: Path
) -> None:
    owner, _ = pair
    await owner.say("hello")
    other = tmp_path / "other"
    other.mkdir()
    (other / "journal.jsonl").write_bytes(owner.journal.replace(b"hello", b"HELLO"))
    replica = Replica(nodes[0], other)
    with pytest.raises(Broken, match="differs"):
        await replica.open(owner.seat._room)
    await replica.close()


async def test_a_journal_that_is_longer_than_the_log_is_refused(nodes: list[Node], tmp_path: Path) -> None:
    journal = JsonlJournal.open(tmp_path / "own")
    journal.append(lines_to(3), 1)
    journal.commit()
    journal.close()
    replica = Replica(nodes[0], tmp_path / "own")
    with pytest.raises(Broken, match="ends at 3") as refused:
        await replica.open(f"new-{time.time_ns()}")
    await replica.close()

    assert "csp journal copy" in refused.value.hint


async def test_a_mirror_that_cannot_be_written_ends_its_gateway_only(
    pair: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, edge = pair

    def fail(*args: object) -> None:
        raise StorageFull("full")

    monkeypatch.setattr(edge.writer.journal, "append", fail)
    await owner.say("one")
    await wait_until(edge.writer.broken.done)
    await owner.say("two")

    assert isinstance(edge.writer.broken.exception(), StorageFailed)


async def test_a_command_without_an_owner_is_refused_after_a_while(
    pair: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, edge = pair
    monkeypatch.setattr(writer_module, "PATIENCE_S", 0.2)
    # It would claim the room of an owner that nobody hears.
    edge.node.rounds.discard(edge.seat)
    edge.seat._calls.redirect("nobody")
    with pytest.raises(LogLost) as refused:
        await edge.say("x")

    assert refused.value.status == 503
    assert refused.value.after_s


# --- the fence -----------------------------------------------------------------------------------


async def fence(pair: tuple[Replica, Replica], rounds: int) -> None:
    """Let an owner that is blind go on after another has claimed: nothing of it may enter the log."""
    owner, other = pair
    for number in range(rounds):
        await fence_once(owner, other, f"late {number}")
        owner, other = other, owner


async def fence_once(owner: Replica, other: Replica, text: str) -> None:
    await owner.say("calm")
    await wait_until(lambda: other.writer.place == owner.writer.place)
    # The owner does not read the log any more, as if it had been stopped with a batch in its hands.
    sighted = owner.seat._receive
    owner.seat._receive = nothing  # type: ignore[method-assign]  # it is blind
    await other.seat._claim()
    assert owner.writer.is_leading
    assert other.writer.is_leading
    before = other.writer.room.seq
    late = owner.writer.submit(Send(sender=HUMAN, to=ALL, text=text))
    await wait_until(lambda: not owner.writer.is_leading)
    refused_at = other.writer.room.seq
    owner.seat._receive = sighted  # type: ignore[method-assign]  # it sees again
    await owner.seat._catch_up(owner.writer.place)
    events = await late
    await wait_until(lambda: other.journal == owner.journal)
    texts = [msgspec.json.decode(line)["text"] for line in other.journal.splitlines()]

    # What the blind owner had decided was not written; its command went to the new owner.
    assert refused_at == before
    assert len(events) == 1
    assert texts.count(text) == 1


async def nothing(place: Any, batch: Any) -> None:
    """Read nothing."""


async def test_a_blind_owner_is_refused_after_another_has_claimed(pair: tuple[Replica, Replica]) -> None:
    await fence(pair, 10)


@pytest.mark.full
async def test_a_blind_owner_is_refused_a_hundred_times(pair: tuple[Replica, Replica]) -> None:
    await fence(pair, 100)
