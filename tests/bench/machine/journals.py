"""Write a journal of any length, as a room that ran for long would have left it."""

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from csp.journal import JsonlJournal, snapshots
from csp.journal.search_index import SearchIndex
from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, AgentId, JoinRole, MessageId, ParticipantKind
from csp.protocol.events import AgentCall, AgentResponse, HumanMessage, Joined, KnownEvent, encode_event
from csp.room.room_reducer import WINDOW, apply
from csp.room.room_state import Room, dump
from tests.bench.machine.process import ROOM

#: Stands in every second message, in one of about fifty thousand, in none, in one of a thousand, likewise.
COMMON: Final = "parser"
RARE: Final = "zugzwang"
MISSING: Final = "xylophone"
CJK: Final = "解析器"
EMOJI: Final = "🚀"

_AGENTS: Final = (AgentId("claude"), AgentId("codex"))
_VOCABULARY: Final = """
the a to and of it in is that this test file line code error value type name call list change commit branch
review build check write read open close start stop function module import return argument option default
message agent room turn reply send queue window journal event index search latency memory thread lock socket
frame header token parse encode decode because however instead
"""
_SENTENCES: Final = 4096
_BATCH_LINES: Final = 20_000
_INDEX_LINES: Final = 20_000


def make_journal(folder: Path, lines: int) -> None:
    """Write journal, snapshot and search index of a room with this many events into `folder`."""
    journal = JsonlJournal.open(folder / ROOM)
    room = Room()
    batch: list[bytes] = []
    for event in _events(lines):
        # Nothing waits in this room, so only the messages it still remembers matter to its state.
        if isinstance(event, Joined) or event.seq > lines - WINDOW:
            room = apply(room, event)
        batch.append(encode_event(event))
        if len(batch) == _BATCH_LINES or event.seq == lines:
            journal.append(batch, journal.last_seq + 1)
            batch = []
    journal.sync()
    journal.commit()
    snapshots.save(journal.folder, room.seq, dump(room), view=journal.view)
    index = SearchIndex(journal)
    while index.catch_up(_INDEX_LINES):
        pass
    index.close()
    journal.close()


def _events(lines: int) -> Iterator[KnownEvent]:
    chance = random.Random(7)
    sentences = [_sentence(chance) for _ in range(_SENTENCES)]
    began = time.time() - lines
    for seq, agent in enumerate(_AGENTS, start=1):
        yield Joined(
            seq, began, MessageId(f"e-{seq}"), agent, ALL, DEFAULT_THREAD, f"{agent} joined", agent,
            ParticipantKind.CLI, JoinRole.AGENT, 1,
        )  # fmt: skip
    kinds = (HumanMessage, AgentCall, AgentResponse)
    for seq in range(len(_AGENTS) + 1, lines + 1):
        kind = kinds[seq % 3]
        sender = HUMAN if kind is HumanMessage else _AGENTS[seq % 2]
        text = _spiced(sentences[chance.randrange(_SENTENCES)], seq)
        yield kind(seq, began + seq, MessageId(f"m-{seq}"), sender, ALL, DEFAULT_THREAD, text, ())


def _sentence(chance: random.Random) -> str:
    """Return a text as people and agents write them: most are short, a few are long."""
    vocabulary = _VOCABULARY.split()
    size = min(200, 3 + int(chance.expovariate(1 / 14)))
    words = [chance.choice(vocabulary) for _ in range(size)]
    if chance.random() < 0.5:
        words[chance.randrange(size)] = COMMON
    return " ".join(words)


def _spiced(text: str, seq: int) -> str:
    if seq % 50_000 == 777:
        return f"{text} {RARE}"
    if seq % 1000 == 333:
        return f"{text} {CJK}"
    return f"{text} {EMOJI}" if seq % 1000 == 666 else text
