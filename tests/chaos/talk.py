"""People and agents that talk while their gateway dies, and what they were promised meanwhile.

Each sender numbers its messages and sends the next one when the last was acknowledged; one of which it heard
nothing is sent again with the same id. So in the end every number stands in the history once and in order.
Two agents ask for what waits for them, one listens as a sidecar does, two hold debates, and a person takes
secrets out of the history.
"""

import asyncio
import contextlib
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from csp.client import Client
from csp.errors import CspError
from csp.http_client import oldest
from csp.journal.rewrite import REDACTED
from csp.protocol.enums import ReportedState
from csp.protocol.events import decode_event, is_intact
from csp.protocol.responses import Deliver
from tests.chaos.room import HANGS_S, ChaosRoom, is_away

AGENTS: Final = ("ann", "ben")
LISTENER: Final = "cid"
DEBATERS: Final = ("dee", "eve")
_DEBATE: Final = "debate"
_PAUSE_S: Final = 0.01
#: A removal writes the whole journal again.
_SECRET_EVERY_S: Final = 0.3
_SPOKEN: Final = "human_message,agent_call,agent_response"


@dataclass
class Promises:
    """What was acknowledged."""

    messages: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    #: What each recipient was given, in the order in which it was given first.
    given: dict[str, list[int]] = field(default_factory=dict)
    #: Words that were taken out of the history.
    removed: set[str] = field(default_factory=set)
    debates: int = 0
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def complain(self, what: str) -> None:
        """Note a broken promise."""
        with self.lock:
            self.wrong.append(what)


class Talk:
    """Everybody in one room; `start` after the room has come up once."""

    def __init__(self, room: ChaosRoom, seed: str, patience_s: float = HANGS_S) -> None:
        self._room = room
        self._seed = seed
        #: How long nothing may come before somebody complains.
        self._patience_s = patience_s
        self._ends = threading.Event()
        self._threads: list[threading.Thread] = []
        self.promises = Promises()
        self.tokens = {agent: self._register(agent) for agent in (*AGENTS, LISTENER, *DEBATERS)}

    def _register(self, agent: str) -> str:
        return str(self._room.client().post("/register", {"agentId": agent})["token"])

    def start(self) -> None:
        """Let them talk."""
        works: list[tuple[Callable[..., None], tuple[str, ...]]] = [
            (self._speak, ("human",)),
            (self._speak, (AGENTS[0],)),
            (self._write, ()),
            (self._remove, ()),
            (self._debate, ()),
            (self._listen, ()),
        ]
        works += [(self._read, (agent,)) for agent in AGENTS]
        self._threads = [threading.Thread(target=work, args=given, daemon=True) for work, given in works]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Let everybody hear of what they last sent; the room must be up."""
        self._ends.set()
        for thread in self._threads:
            thread.join(self._patience_s)
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
                if _is_over(error):
                    return None
                if not is_away(error):
                    self.promises.complain(f"{path} was refused: {error.status} {error.message}")
                    return None
            if self._ends.is_set():
                deadline = deadline or time.monotonic() + self._patience_s
                if time.monotonic() > deadline:
                    self.promises.complain(f"{path} is not answered")
                    return None
            time.sleep(_PAUSE_S)

    def _speak(self, sender: str) -> None:
        draw = random.Random(f"{self._seed}/{sender}")
        for number in itertools.count():
            if self._ends.is_set():
                return
            to = draw.choice([one for one in (*AGENTS, LISTENER, "all") if one != sender])
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

    def _remove(self) -> None:
        """Say secrets to an agent and take them out again."""
        draw = random.Random(f"{self._seed}/secrets")
        for number in itertools.count():
            if self._ends.wait(_SECRET_EVERY_S):
                return
            word = f"secret{draw.getrandbits(64):016x}"
            body = {"to": AGENTS[1], "content": f"{word} is not for you", "id": f"secret:{number}"}
            sent = self._ask("", "POST", "/message", body)
            if sent is not None and self._ask("", "POST", f"/messages/{sent['id']}/redact") is not None:
                self.promises.removed.add(word)

    def _debate(self) -> None:
        """Hold one debate after the other; each turn is answered once."""
        for number in itertools.count():
            if self._ends.is_set():
                return
            terms = {"mode": "debate", "topic": "tabs", "rounds": 2, "agents": list(DEBATERS)}
            body = terms | {"thread": _DEBATE, "id": f"debate:{number}"}
            if self._ask("", "POST", "/mode", body) is None:
                return
            while (view := self._ask("", "GET", f"/mode?thread={_DEBATE}")) and view["status"] == "running":
                if self._ends.is_set():
                    return
                self._take_turn(view)
            self.promises.debates += 1
            if view is not None and view["reason"] != "done":
                self.promises.complain(f"a debate ended as {view['reason']}")

    def _take_turn(self, view: dict[str, Any]) -> None:
        agent, turn = view["currentTurn"], view["turn"]
        if agent is None or turn is None:
            time.sleep(_PAUSE_S)
            return
        word = f"{agent}:{turn}"
        body = {"content": f"{word} is my view", "turn": turn, "id": word}
        if self._ask(self.tokens[agent], "POST", "/agent-output", body) is not None:
            self.promises.messages.add(word)

    def _listen(self) -> None:
        asyncio.run(self._listen_to_the_end())

    async def _listen_to_the_end(self) -> None:
        """Take deliveries over a WebSocket, through every end of the gateway, until nothing waits."""
        given = self.promises.given.setdefault(LISTENER, [])
        async with Client(self._room.url, self.tokens[LISTENER]) as client:
            reading = asyncio.ensure_future(self._confirm_all(client, given))
            await asyncio.to_thread(self._ends.wait)
            ask = (self.tokens[LISTENER], "GET", f"/inbox/{LISTENER}")
            deadline = time.monotonic() + self._patience_s
            while (answer := await asyncio.to_thread(self._ask, *ask)) and answer["items"]:
                if time.monotonic() > deadline:
                    waits = [item["id"] for item in answer["items"][:5]]
                    self.promises.complain(f"{LISTENER} is never given {', '.join(waits)}")
                    break
                await asyncio.sleep(10 * _PAUSE_S)
            reading.cancel()
            await asyncio.wait([reading])
            if not reading.cancelled() and (error := reading.exception()) is not None:
                self.promises.complain(f"{LISTENER} was cut off: {type(error).__name__}: {error}")

    async def _confirm_all(self, client: Client, given: list[int]) -> None:
        async for item in client:
            if isinstance(item, Deliver):
                if item.seq in given:
                    self.promises.complain(f"doubled: {LISTENER} was given {item.id} twice")
                given.append(item.seq)
                for state in (ReportedState.SUBMITTED, ReportedState.CONFIRMED):
                    await self._report(client, item.id, state)

    async def _report(self, client: Client, id: str, state: ReportedState) -> None:
        while True:
            try:
                await client.report(id, state)
                return
            except CspError as error:
                if not is_away(error):
                    if not _is_over(error):
                        self.promises.complain(f"{state} of {id} was refused: {error.message}")
                    return
            await asyncio.sleep(_PAUSE_S)

    # --- what must hold --------------------------------------------------------------------------

    def check(self) -> list[str]:
        """Return every promise that the room, which is up, does not keep."""
        found = self.promises.wrong
        client = self._room.client()
        words = [item["text"].split()[0] for item in oldest(client, types=_SPOKEN)]
        spoken = [word for word in words if word != REDACTED]
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
        found += _left_of(self.promises.removed, self._room)
        return found + _journal_problems(self._room)


def _is_over(error: CspError) -> bool:
    """Tell whether a delivery ended meanwhile: by a jump of the clock, or because its text was removed."""
    return error.status == 409 and any(f"from {end}" in error.message for end in ("expired", "withdrawn"))


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


def _left_of(removed: set[str], room: ChaosRoom) -> list[str]:
    """Return the files in which a word still stands that was taken out."""
    found = []
    for path in sorted(room.folder.rglob("*")):
        # SQLite removes its side files as it goes along.
        with contextlib.suppress(FileNotFoundError):
            data = path.read_bytes() if path.is_file() else b""
            words = [word for word in sorted(removed) if word.encode() in data]
            found += [f"{path.name} still has {len(words)} removed texts"] if words else []
    return found


def _journal_problems(room: ChaosRoom) -> list[str]:
    """Return what is wrong with the journal itself, read without the product's own reader."""
    lines = (room.folder / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    seqs = [decode_event(line).seq if is_intact(line) else -1 for line in lines]
    expected = list(range(seqs[0], seqs[0] + len(seqs))) if seqs else []
    with contextlib.suppress(StopIteration):
        at = next(n for n, (one, other) in enumerate(zip(seqs, expected, strict=True)) if one != other)
        return [f"journal line {at + 1} has the number {seqs[at]}, expected {expected[at]}"]
    return []
