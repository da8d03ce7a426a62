"""People and agents that talk while their gateway dies, and what they were promised meanwhile.

Each sender numbers its messages and sends the next one when the last was acknowledged; one of which it heard
nothing is sent again with the same id. So in the end every number stands in the history once and in order.
"""

import contextlib
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from csp.errors import CspError
from csp.events import decode_event, is_intact
from csp.oneshot import oldest
from tests.chaos.room import HANGS_S, ChaosRoom, is_away

AGENTS: Final = ("ann", "ben")
_PAUSE_S: Final = 0.01
_SPOKEN: Final = "human_message,agent_call,agent_response"


@dataclass
class Promises:
    """What was acknowledged."""

    messages: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    #: What each recipient was given, in the order in which it was given first.
    given: dict[str, list[int]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complain(self, what: str) -> None:
        """Note a broken promise."""
        with self.lock:
            self.wrong.append(what)


class Talk:
    """Everybody in one room; `start` after the room has come up once."""

    def __init__(self, room: ChaosRoom, seed: str) -> None:
        self._room = room
        self._seed = seed
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []
        self.promises = Promises()
        self.tokens = {agent: self._register(agent) for agent in AGENTS}

    def _register(self, agent: str) -> str:
        return str(self._room.client().post("/register", {"agentId": agent})["token"])

    def start(self) -> None:
        """Let them talk."""
        works: list[tuple[Callable[..., None], tuple[str, ...]]] = [
            (self._speak, ("human",)),
            (self._speak, (AGENTS[0],)),
            (self._write, ()),
        ]
        works += [(self._read, (agent,)) for agent in AGENTS]
        self._threads = [threading.Thread(target=work, args=given, daemon=True) for work, given in works]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Let everybody hear of what they last sent; the room must be up."""
        self._ends.set()
        for thread in self._threads:
            thread.join(HANGS_S)
            if thread.is_alive():
                self.promises.complain("somebody waits for an answer for ever")

    @property
    def acknowledged(self) -> int:
        return len(self.promises.messages) + len(self.promises.notes)

    # --- what they do ----------------------------------------------------------------------------

    def _ask(self, token: str, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Ask until there is an answer; None if the talk ends before."""
        deadline = 0.0
        while True:
            try:
                client = self._room.client(token)
                return client.post(path, body) if method == "POST" else client.get(path)
            except CspError as error:
                if error.status == 409 and "from expired" in error.message:
                    # A jump of the clock has made it too old meanwhile, which its sender is told.
                    return None
                if not is_away(error):
                    self.promises.complain(f"{path} was refused: {error.status} {error.message}")
                    return None
            if self._ends.is_set():
                deadline = deadline or time.monotonic() + HANGS_S
                if time.monotonic() > deadline:
                    self.promises.complain(f"{path} is not answered")
                    return None
            time.sleep(_PAUSE_S)

    def _speak(self, sender: str) -> None:
        draw = random.Random(f"{self._seed}/{sender}")
        for number in itertools.count():
            if self._ends.is_set():
                return
            to = draw.choice([one for one in (*AGENTS, "all") if one != sender])
            text = f"{sender}:{number} " + "x" * draw.choice((0, 40, 3000))
            body = {"to": to, "content": text, "id": f"{sender}:{number}"}
            if self._ask(self.tokens.get(sender, ""), "POST", "/message", body) is not None:
                self.promises.messages.add(f"{sender}:{number}")

    def _write(self) -> None:
        for number in itertools.count():
            if self._ends.is_set():
                return
            body = {"text": f"note:{number} about_thing_{number}", "id": f"note:{number}"}
            if self._ask("", "POST", "/board", body) is not None:
                self.promises.notes.add(f"note:{number}")

    def _read(self, agent: str) -> None:
        given = self.promises.given.setdefault(agent, [])
        settled: set[str] = set()
        while not self._ends.is_set():
            answer = self._ask(self.tokens[agent], "GET", f"/inbox/{agent}?wait=0.1")
            items = answer["items"] if answer else []
            for item in items[:20]:
                if item["id"] in settled:
                    self.promises.complain(f"{agent} was given {item['id']} again after it was confirmed")
                if item["seq"] not in given:
                    given.append(item["seq"])
                for state in ("submitted", "confirmed"):
                    self._ask(self.tokens[agent], "POST", "/delivery", {"id": item["id"], "state": state})
                settled.add(item["id"])

    # --- what must hold --------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Return every promise that the room, which is up, does not keep."""
        found = self.promises.wrong
        client = self._room.client()
        spoken = [item["text"].split()[0] for item in oldest(client, types=_SPOKEN)]
        notes = [item["text"].split()[0] for item in all_notes(client)]
        found += _lost_or_doubled("message", self.promises.messages, spoken)
        found += _lost_or_doubled("note", self.promises.notes, notes)
        for sender in ("human", AGENTS[0]):
            numbers = [int(one.partition(":")[2]) for one in spoken if one.startswith(f"{sender}:")]
            if numbers != list(range(len(numbers))):
                found.append(f"messages of {sender} are out of order: {numbers[:50]}")
        for agent, seqs in self.promises.given.items():
            if seqs != sorted(seqs):
                found.append(f"{agent} was given messages out of order: {seqs[:50]}")
        return found + _journal_problems(self._room)


def all_notes(client: Any) -> list[dict[str, Any]]:
    """Return every note of a room, oldest first."""
    notes: list[dict[str, Any]] = []
    after = 0
    while items := client.get("/board", after=after, limit=500)["items"]:
        notes += items
        after = int(items[-1]["id"].removeprefix("n-"))
    return notes


def _lost_or_doubled(what: str, promised: set[str], found: list[str]) -> list[str]:
    counts = Counter(found)
    lost = sorted(promised - set(counts))
    doubled = sorted(one for one, count in counts.items() if count > 1)
    problems = [f"lost: {what} {', '.join(lost[:5])}"] if lost else []
    return problems + ([f"doubled: {what} {', '.join(doubled[:5])}"] if doubled else [])


def _journal_problems(room: ChaosRoom) -> list[str]:
    """Return what is wrong with the journal itself, read without the product's own reader."""
    lines = (room.folder / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    seqs = [decode_event(line).seq if is_intact(line) else -1 for line in lines]
    expected = list(range(seqs[0], seqs[0] + len(seqs))) if seqs else []
    with contextlib.suppress(StopIteration):
        at = next(n for n, (one, other) in enumerate(zip(seqs, expected, strict=True)) if one != other)
        return [f"journal line {at + 1} has the number {seqs[at]}, expected {expected[at]}"]
    return []
