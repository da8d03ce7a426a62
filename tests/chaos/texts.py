"""Give a room long texts of every kind by every way in, start it again, and see how long it is ever silent.

python -m tests.chaos.texts                        # every text by every carrier
python -m tests.chaos.texts --only token --carriers note,reply --repeat 3
python -m tests.chaos.texts --share 3/20           # the third of twenty parts
"""

import argparse
import asyncio
import contextlib
import gzip
import itertools
import json
import os
import random
import shutil
import socket
import string
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import aiohttp

from csp.fast_start.fast_http import Url, exchange
from tests.chaos import beats
from tests.chaos.cases import Outcome
from tests.chaos.room import ChaosRoom
from tests.forks import Forked
from tests.long_texts import texts
from tests.review.repository import make_repository
from tests.waiting import wait_until_sync

#: As long as a text may be in bytes; characters of several bytes are fewer.
BYTES: Final = 250 * 1024
AGENTS: Final = ("ann", "ben")
#: Texts of one room; all of them together would make a journal of hundreds of megabytes.
BATCH: Final = 12
_HALF_OPEN: Final = 400
_DEEP: Final = 200_000
_POLL_S: Final = 0.005
_TIMEOUT_S: Final = 60.0
#: What stands before a text that is typed.
_TYPED: Final = (
    "",
    "@ann ",
    "!ann,ben ",
    "/debate ",
    "/mode round_robin ",
    "/allow ann ",
    "/review decide r ",
)
#: The room may be silent for so long, of its own CPU time.
LIMIT_S: Final = 0.1


def all_texts() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of every kind, each as long as the wire takes it."""
    seen = set()
    for name, text in itertools.chain(texts(BYTES), _more_texts(BYTES)):
        if name not in seen:
            seen.add(name)
            yield name, text.encode(errors="replace")[:BYTES].decode(errors="ignore")


def _more_texts(size: int) -> Iterator[tuple[str, str]]:
    for sign in string.ascii_letters + string.digits:
        yield f"many {sign!r}", sign * size
    by_category = {unicodedata.category(chr(code)): chr(code) for code in range(0xA0, 0x3000)}
    for category, sign in sorted(by_category.items()):
        if category != "Cs":
            yield f"many {sign!r} ({category})", sign * size
    for part in (
        "@handoff.ann x\n",
        "@handoff.ann ",
        "@ann ",
        "[end #1]",
        "[from ann #1]",
        "VOTE: [A]",
        "VOTE: A\n",
        "AGREE\n",
        "I agree. ",
        "FINAL: x\n",
        "PLAN: x\n",
        "1. x\n",
        "FINDING: major - x\n",
        "RISK: low\n",
        "METRIC: a = 1\n",
        "DONE: x\n",
        "RATIONALE: x\n",
        "API_KEY=",
        "api_key: '",
        'password: "a1',
        "secret",
        "SECRET_",
        "SECRET",
        "token=a1",
        "token is ",
        "TOKEN=",
        "AKIA1234567890123456 ",
        "pwd:\n",
        "key = ",
        "x-api-key: ",
        "authorization: bearer ",
        "https://a:b@",
        "sk-ant-",
        "csp-page_",
        "#link=",
        "eyJaaaaaaaa.",
        "a.1.",
        "-----END PRIVATE KEY-----\n",
        "hooks.slack.com/services/T",
        "{ann.last}",
        "{{",
        "}}",
        "camelCase",
        "snake_case_",
        "a.b.c.",
        "A::b::",
        "don't stop ",
        "aé",
        "אב ",
        "\u200d",
        "\u202eab",
        "e\u0301",
        "\u0301",
        "👩\u200d👩\u200d👧 ",
        "日本",
        "<b>",
        "&amp;",
        "<script>",
        "*a*",
        "_a_",
        "# a\n",
        "- a\n",
        "  - a\n",
        "    a\n",
        "> > ",
        "|a|b|\n",
        "[a]: b\n",
        "\\*",
        "\\",
        "a\\\n",
        "!!",
        "#!",
        "\\u0000",
    ):
        yield f"many {part!r}", (part * (size // len(part) + 1))[:size]
    yield "many short lines", "a\n" * (size // 2)
    yield "lines of words", "\n".join(f"word{n} is {n}" for n in range(size // 12))[:size]
    yield "many names", " ".join(f"name_{n}" for n in range(size // 9))[:size]
    yield "many keys", "\n".join(f"API_KEY_{n}=abc{n}def" for n in range(size // 20))[:size]
    yield "nested quotes", "'\"" * (size // 2)
    yield "nested fences", "".join("`" * (3 + n % 40) + "x\n" for n in range(size // 25))[:size]
    yield "nested lists", "\n".join(" " * (n % 200) + "- a" for n in range(size // 100))[:size]
    yield "a deep list", "\n".join("  " * n + "- a" for n in range(480))[:size]
    yield "JSON", json.dumps([{"name": f"n{n}", "value": [n, str(n)]} for n in range(size // 35)])[:size]
    yield "brackets that open", "[" * size
    yield "a hidden secret", ("x " * size)[: size // 2] + " sk-ant-abcdefghij0123456789 " + "y " * (size // 5)


class Carrier(NamedTuple):
    """A way in; `send` does all that it takes and yields the statuses of the answers."""

    name: str
    send: Callable[["Scene", str], Iterator[int]]


class Scene:
    """A room with two agents and a run; everything in it blocks."""

    def __init__(self, room: ChaosRoom) -> None:
        self.room = room
        self.dir = make_repository(room.dir)
        self.tokens = {name: room.client().post("/register", {"agentId": name})["token"] for name in AGENTS}
        self.count = itertools.count()
        self.run_id = ""

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> tuple[int, bytes]:
        """Return the status and the body of an answer; status 0 if there was none."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return self.raw(method, path, data, {"X-Auth-Token": self.room.token if token is None else token})

    def raw(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            return exchange(Url(self.room.url), method, path, headers, data, _TIMEOUT_S, lambda: None)
        except OSError:
            return 0, b""

    def post(self, path: str, body: Any, token: str | None = None) -> int:
        return self.ask("POST", path, body, token)[0]

    def get(self, path: str) -> int:
        return self.ask("GET", path)[0]

    def begin_run(self) -> None:
        """Begin a run and bring it to where a person looks at its plan."""
        body = {"goal": "x", "builder": "ann", "reviewer": "ben", "dir": str(self.dir), "approve": True}
        self.run_id = self.room.client().post("/runs", body)["run"]["id"]
        self._answer_run("ben", "ACK: ready")
        self._answer_run("ann", "PLAN: mend it\n1. write it")
        self._answer_run("ben", "RISK: low")
        wait_until_sync(lambda: self._run()["run"]["phase"] == "approval", what="the approval")

    def _run(self) -> Any:
        return self.room.client().get(f"/runs/{self.run_id}")

    def _answer_run(self, agent: str, text: str) -> None:
        turn = wait_until_sync(lambda: self.room.client().get("/mode")["turns"].get(agent), what="a turn")
        self.room.client(self.tokens[agent]).post("/agent-output", {"content": text, "turn": turn})


def _message(scene: Scene, text: str) -> Iterator[int]:
    yield scene.post("/message", {"to": "all", "content": text})
    yield scene.post("/message", {"to": "ben", "content": text}, scene.tokens["ann"])
    yield scene.post("/message", {"to": "human", "content": text, "urgent": True}, scene.tokens["ben"])
    yield scene.get("/history?limit=3")
    yield scene.get("/history?q=zebra")
    yield scene.get("/queue")
    # What is read and confirmed does not fill the room.
    for agent, token in scene.tokens.items():
        status, raw = scene.ask("GET", f"/inbox/{agent}", token=token)
        yield status
        for item in json.loads(raw)["items"] if status == 200 else ():
            yield scene.post("/delivery", {"id": item["id"], "state": "submitted"}, token)
            yield scene.post("/delivery", {"id": item["id"], "state": "confirmed"}, token)


def _note(scene: Scene, text: str) -> Iterator[int]:
    status, raw = scene.ask("POST", "/board", {"text": text}, scene.tokens["ann"])
    yield status
    yield scene.get("/board/search?q=zebra%20the_name")
    yield scene.get("/board?limit=3")
    if status == 200:
        yield scene.get(f"/board/{json.loads(raw)['note']['id']}")


def _reply(scene: Scene, text: str) -> Iterator[int]:
    thread = f"t{next(scene.count)}"
    body = {"mode": "debate", "topic": "tabs or spaces", "agents": AGENTS, "thread": thread, "ballot": True}
    yield scene.post("/sessions", body)
    yield from _answer_turns(scene, thread, text)
    yield scene.post("/stop", {"thread": thread})


def _answer_turns(scene: Scene, thread: str, text: str) -> Iterator[int]:
    for _ in range(6):
        status, raw = scene.ask("GET", f"/mode?thread={thread}")
        yield status
        turns = json.loads(raw).get("turns", {}) if status == 200 else {}
        for agent, turn in turns.items():
            yield scene.post("/agent-output", {"content": text, "turn": turn}, scene.tokens[agent])
        if not turns:
            return


def _activity(scene: Scene, text: str) -> Iterator[int]:
    yield scene.post("/agent-output", {"content": text}, scene.tokens["ann"])
    yield scene.post("/agent-output", {"content": text, "activity": True}, scene.tokens["ann"])
    yield scene.post("/state", {"state": "busy", "detail": text[:2000]}, scene.tokens["ann"])
    dialog = {"tool": text[:500], "arguments": text[:8000], "question": text[:2000]}
    yield scene.post("/state", {"state": "needs_approval", "dialog": dialog}, scene.tokens["ann"])
    yield scene.post("/turn/working", {"note": text[:2000]}, scene.tokens["ann"])
    yield scene.post("/state", {"state": "idle"}, scene.tokens["ann"])


def _line(scene: Scene, text: str) -> Iterator[int]:
    """Type it: alone, and behind what begins a command."""
    for before in _TYPED:
        yield scene.post("/line", {"line": f"{before}{text}", "to": "ann", "confirmed": True})
        yield scene.post("/stop", {"all": True})


def _dialog(scene: Scene, text: str) -> Iterator[int]:
    """Ask for it as a command, name the choices by it, and make it an approval rule."""
    choices = [{"number": number, "label": text[:500]} for number in range(1, 31)]
    for dialog in (
        {"tool": "Bash", "runs": text[:8000], "question": text[:2000], "choices": choices},
        {"tool": "Bash", "arguments": text[:8000], "question": text[-2000:]},
        {"tool": "Bash", "arguments": json.dumps({"command": text[:1500]}), "choices": choices[:1]},
    ):
        yield scene.post("/state", {"state": "needs_approval", "dialog": dialog}, scene.tokens["ann"])
        yield scene.get("/attention")
    status, raw = scene.ask("POST", "/rules", {"agent": "ann", "pattern": text[:500]})
    yield status
    yield scene.get("/rules")
    if status == 200:
        yield scene.ask("DELETE", f"/rules/{json.loads(raw)['rule']['number']}")[0]
    yield scene.post("/state", {"state": "idle"}, scene.tokens["ann"])


def _drawn(scene: Scene, text: str) -> Iterator[int]:
    """Have it drawn by a page: as messages, as a note, and on a screen."""
    seqs = []
    for sender in ("ann", "ben"):
        status, raw = scene.ask("POST", "/message", {"to": "human", "content": text}, scene.tokens[sender])
        yield status
        seqs += [str(json.loads(raw)["seq"])] if status == 200 else []
    status, raw = scene.ask("POST", "/board", {"text": text[:60_000]}, scene.tokens["ann"])
    yield status
    seqs += [json.loads(raw)["note"]["id"]] if status == 200 else []
    if seqs:
        yield scene.get(f"/markdown?ids={','.join(seqs)}")


def _mcp(scene: Scene, text: str) -> Iterator[int]:
    """Give it to the tools of an agent."""
    headers = {
        "X-Auth-Token": scene.tokens["ann"],
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    for tool, arguments in (
        ("send_message", {"to": "ben", "text": text}),
        ("send_message", {"to": text, "text": "x"}),
        ("board_add", {"text": text, "tags": [text]}),
        ("board_search", {"query": text}),
        ("query_log", {"search": text}),
        ("vote", {"label": text, "reason": text}),
        (text, {text: text[:100]}),
    ):
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        yield scene.raw("POST", "/mcp", json.dumps(call).encode(), headers)[0]


def _name(scene: Scene, text: str) -> Iterator[int]:
    yield scene.post("/register", {"agentId": text})
    status, raw = scene.ask(
        "POST", "/register", {"agentId": text[:128], "capabilities": {text[:200]: text[:200]}}
    )
    yield status
    if status == 201:
        yield scene.ask("DELETE", f"/agents/{quote(json.loads(raw)['agentId'], safe='')}")[0]
    yield scene.post("/agents", {"name": text, "provider": text, "model": text})
    yield scene.get(f"/inbox/{quote(text[:9000], safe='')}")


def _topic(scene: Scene, text: str) -> Iterator[int]:
    for mode in ("debate", "consensus", "autopilot"):
        thread = f"t{next(scene.count)}"
        yield scene.post("/sessions", {"mode": mode, "topic": text, "agents": AGENTS, "thread": thread})
        yield from itertools.islice(_answer_turns(scene, thread, "I agree."), 4)
        yield scene.post("/stop", {"thread": thread})
    yield scene.post("/sessions", {"mode": text, "topic": "x", "thread": text})


def _tags(scene: Scene, text: str) -> Iterator[int]:
    yield scene.post("/board", {"text": "x", "tags": [text]})
    yield scene.post("/board", {"text": "x", "tags": [text[n : n + 64] for n in range(0, 1280, 64)]})
    yield scene.post("/board", {"text": "x", "tags": [text[n : n + 5] for n in range(0, 200_000, 5)]})
    yield scene.post("/board", {"text": "x", "session": text})
    yield scene.get(f"/board?tag={quote(text[:64], safe='')}")


def _searches(scene: Scene, text: str) -> Iterator[int]:
    for most in (1000, 100_000):
        given = quote(text[:most], safe="")
        yield scene.get(f"/board/search?q={given}")
        yield scene.get(f"/board/search?q=x&tag={given}&author={given}")
        yield scene.get(f"/history?q={given}")
        yield scene.get(f"/history?agent={given}&types={given}&session={given}")
        yield scene.get(f"/sessions/{given}")
        yield scene.get(f"/{given}")


def _recipients(scene: Scene, text: str) -> Iterator[int]:
    yield scene.post("/message", {"to": text, "content": "x"})
    yield scene.post("/message", {"to": text[:128], "content": "x"})
    yield scene.post("/message", {"to": "all", "content": "x", "thread": text, "id": text, "replyTo": text})
    body = {"mode": "debate", "topic": "x", "agents": [text[n : n + 100] for n in range(0, 100_000, 100)]}
    yield scene.post("/sessions", body)
    yield scene.post("/turn/handoff", {"to": text[:128], "task": text[:500]}, scene.tokens["ann"])
    yield scene.post("/turn/vote", {"label": "A", "reason": text[:2000]}, scene.tokens["ann"])


def _plan(scene: Scene, text: str) -> Iterator[int]:
    pieces = [text[n : n + 2000] for n in range(0, min(len(text), 100_000), 2000)]
    body = {"steps": pieces, "summary": text[:2000], "tools": pieces}
    run = scene.run_id
    place = scene.room.folder / "runs" / run / "plan.json"
    for data in (text.encode(errors="replace"), json.dumps({"steps": [text]}).encode()):
        place.write_bytes(data)
        yield scene.post(f"/runs/{run}/go", {})
        yield scene.get(f"/runs/{run}")
    yield scene.post(f"/runs/{run}/go", {"plan": body | {"steps": [*pieces, "x"] * 2}})
    yield scene.post(f"/runs/{run}/message", _run_message(run, "plan_proposed", body), scene.tokens["ann"])
    yield scene.post(f"/runs/{run}/message", _run_message(run, text, {text: text}), scene.tokens["ann"])
    yield scene.post("/runs", {"goal": text, "builder": "ann", "reviewer": text[:128], "dir": text[:4096]})


def _run_message(run: str, kind: str, body: Any) -> dict[str, Any]:
    return {
        "schema_version": "0.1",
        "timestamp": "2026-01-01T00:00:00Z",
        "sender": "builder",
        "run_id": run,
        "message_type": kind,
        "body": body,
    }


def _mailbox(scene: Scene, text: str) -> Iterator[int]:
    folder = scene.room.folder / "mailbox" / "builder"
    pieces = [text[n : n + 2000] for n in range(0, min(len(text), 100_000), 2000)]
    alert = {"level": "info", "text": text[:2000]}
    contents = [
        text.encode(errors="replace"),
        json.dumps(text).encode(),
        json.dumps(_run_message(scene.run_id, "plan_proposed", {"steps": [text], text: text})).encode(),
        json.dumps(_run_message(scene.run_id, "plan_proposed", {"steps": pieces, "notes": pieces})).encode(),
        json.dumps(_run_message(scene.run_id, "plan_proposed", {"plan_path": text})).encode(),
        json.dumps(_run_message(scene.run_id, "execution_alert", alert)).encode(),
    ]
    number = next(scene.count)
    for at, data in enumerate(contents):
        (folder / f".{number}").write_bytes(data)
        os.replace(folder / f".{number}", folder / f"{number}-{at}.json")
    wait_until_sync(lambda: not list(folder.glob("*.json")), 120.0, "the mailbox")
    yield scene.get(f"/runs/{scene.run_id}")


def _bodies(scene: Scene, text: str) -> Iterator[int]:
    """Send a text where JSON is expected, and as names of fields."""
    data = text.encode(errors="replace")
    for path in ("/message", "/board", "/mcp", "/register"):
        yield scene.post(path, data)
        yield scene.post(path, json.dumps({text: 1}).encode())
    yield scene.raw("POST", "/message", data, {"X-Auth-Token": "x", "Content-Encoding": "gzip"})[0]
    yield scene.raw("GET", "/health", None, {"X-Auth-Token": quote(text[:5000])})[0]


def _socket(scene: Scene, text: str) -> Iterator[int]:
    yield asyncio.run(_over_socket(scene, text))


async def _over_socket(scene: Scene, text: str) -> int:
    url = f"{scene.room.url}/ws"
    headers = {"X-Auth-Token": scene.tokens["ann"]}
    async with aiohttp.ClientSession(headers=headers) as session:
        for one in (
            text,
            json.dumps({"op": text}),
            json.dumps({"op": "message", "to": "ben", "content": text}),
            json.dumps({"op": "live", "text": text}),
            json.dumps({"op": "live", "screen": {"rows": [[[text[:100_000]]]], "cols": 100}}),
        ):
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
                async with session.ws_connect(url, max_msg_size=0) as peer, asyncio.timeout(_TIMEOUT_S):
                    await peer.send_str(one.encode(errors="replace").decode())
                    await peer.receive()
    return 200


CARRIERS: Final = (
    Carrier("message", _message),
    Carrier("note", _note),
    Carrier("reply", _reply),
    Carrier("other words of an agent", _activity),
    Carrier("line", _line),
    Carrier("dialog", _dialog),
    Carrier("drawn", _drawn),
    Carrier("mcp", _mcp),
    Carrier("name", _name),
    Carrier("topic", _topic),
    Carrier("tag", _tags),
    Carrier("search", _searches),
    Carrier("recipient", _recipients),
    Carrier("plan", _plan),
    Carrier("mailbox", _mailbox),
    Carrier("body", _bodies),
    Carrier("socket", _socket),
)


def _shapes() -> Iterator[tuple[str, bytes]]:
    """Yield request bodies that are expensive to parse."""
    yield "deep lists", b"[" * _DEEP
    yield "deep closed lists", b"[" * _DEEP + b"]" * _DEEP
    yield "deep objects", b'{"a":' * _DEEP + b"1" + b"}" * _DEEP
    yield "deep content", b'{"to":"all","content":' + b"[" * _DEEP + b"]" * _DEEP + b"}"
    yield "deep unknown field", b'{"to":"all","content":"x","y":' + b"[" * _DEEP + b"]" * _DEEP + b"}"
    yield "many keys", json.dumps({f"k{n}": n for n in range(90_000)}).encode()
    yield "one key often", b"{" + b'"to":"all",' * 100_000 + b'"content":"x"}'
    yield "a long number", b'{"to":"all","content":' + b"9" * 1_000_000 + b"}"
    yield "a long fraction", b'{"to":"all","content":0.' + b"9" * 1_000_000 + b"}"
    yield "a huge exponent", b'{"to":"all","content":1e' + b"9" * 1_000_000 + b"}"
    yield "escapes", b'{"to":"all","content":"' + b"\\u0000" * 250_000 + b'"}'
    yield "halves of characters", b'{"to":"all","content":"' + b"\\ud83d" * 250_000 + b'"}'
    yield "no UTF-8", b'{"to":"all","content":"' + b"\xff" * 1_000_000 + b'"}'
    yield "spaces", b" " * 1_500_000
    yield (
        "capabilities",
        json.dumps({"agentId": "z", "capabilities": {f"k{n}": n for n in range(60_000)}}).encode(),
    )
    yield "a compressed body", gzip.compress(b'{"to":"all","content":"' + b"x" * 50_000_000 + b'"}')


def _odd_requests(scene: Scene, outcome: Outcome) -> Iterator[tuple[str, Callable[[], None]]]:
    for name, data in _shapes():
        for path in ("/message", "/board", "/register", "/mcp", f"/runs/{scene.run_id}/message"):
            headers = {"X-Auth-Token": scene.room.token}
            if "compressed" in name:
                headers["Content-Encoding"] = "gzip"

            def send(path: str = path, data: bytes = data, headers: dict[str, str] = headers) -> None:
                _count(outcome, scene.raw("POST", path, data, headers)[0])

            yield f"{name} to {path.replace(scene.run_id, 'X')}", send
    yield f"{_HALF_OPEN} half-open requests", lambda: _half_open(scene, outcome)


def _half_open(scene: Scene, outcome: Outcome) -> None:
    parts = Url(scene.room.url)
    starts = (
        b"",
        b"GET /hea",
        b"POST /message HTTP/1.1\r\nContent-Length: 9000\r\n\r\n{",
        b"GET / HTTP/1.1\r\nA: ",
    )
    with contextlib.ExitStack() as stack:
        for number in range(_HALF_OPEN):
            with contextlib.suppress(OSError):
                peer = stack.enter_context(socket.create_connection((parts.host, parts.port), 10.0))
                peer.sendall(starts[number % len(starts)])
        for _ in range(20):
            _count(outcome, scene.get("/health"))


def _count(outcome: Outcome, status: int) -> None:
    outcome.counts[f"answers {status // 100}xx" if status else "unanswered"] += 1


# --- measuring -------------------------------------------------------------------------------------


class Step(NamedTuple):
    """Something that was done to the room."""

    what: str
    began: float
    ended: float


class Measured(NamedTuple):
    """How long a room was silent in a step: of its CPU time, of its loop's, and as a caller saw it."""

    what: str
    cpu_s: float
    loop_s: float
    health_s: float


class Watch:
    """Ask for the room's health all the time; keep how long each answer took."""

    def __init__(self, url: str) -> None:
        self._url = Url(url)
        self._ends = threading.Event()
        self.answers: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        while not self._ends.wait(_POLL_S):
            began = time.monotonic()
            with contextlib.suppress(OSError):
                exchange(self._url, "GET", "/health", {}, None, _TIMEOUT_S, lambda: None)
                self.answers.append((began, time.monotonic()))

    def end(self) -> None:
        self._ends.set()
        self._thread.join(_TIMEOUT_S)


class _BeatingRoom(ChaosRoom):
    """A room whose loop writes its pauses down."""

    profile: str = ""
    stacks: str = ""

    @property
    def beats(self) -> Path:
        return self.home.parent / "beats"

    def begin(self, plan: object = None) -> None:
        before = (
            "tests.chaos.beats",
            {"into": str(self.beats), "profile": self.profile, "stacks": self.stacks},
        )
        words = ["gateway", "--port", str(self.port)]
        with self.log.open("ab") as log, open(os.devnull, "rb") as nothing:
            self._process = Forked(
                words,
                self.dir,
                self.env,
                stdin=nothing.fileno(),
                output=log.fileno(),
                is_leader=True,
                before=before,
            )


def measure(
    folder: Path,
    given: list[tuple[str, str]],
    carriers: list[Carrier],
    outcome: Outcome,
    profile: str = "",
    stacks: str = "",
) -> list[Measured]:
    """Give these texts to a new room; return how long it was silent in each step."""
    room = _BeatingRoom(folder)
    room.profile, room.stacks = profile, stacks
    try:
        room.start()
        scene = Scene(room)
        scene.begin_run()
        watch = Watch(room.url)
        steps = list(_steps(scene, given, carriers, outcome))
        watch.end()
        answers = watch.answers
        outcome.check(room.end() == 0, "the room does not end in order")
        room.start()
        began = time.monotonic()
        watch = Watch(room.url)
        # Everything that a start leaves for later is done before a search is answered.
        for path in ("/board/search?q=zebra", "/history?q=zebra", "/history?limit=5", "/agents", "/queue"):
            _count(outcome, scene.get(path))
        time.sleep(1.0)
        watch.end()
        steps.append(Step("after a restart", began, time.monotonic()))
        answers += watch.answers
        outcome.check(room.end() == 0, "the room does not end in order after a restart")
        outcome.check(not room.traceback(), f"there is a traceback in the log: {room.traceback()}")
        return _assign(steps, list(beats.read(room.beats)), answers)
    finally:
        room.stop()


def _steps(
    scene: Scene, given: list[tuple[str, str]], carriers: list[Carrier], outcome: Outcome
) -> Iterator[Step]:
    began = time.monotonic()
    time.sleep(1.0)
    yield Step("idle", began, time.monotonic())
    for name, text in given:
        for carrier in carriers:
            began = time.monotonic()
            for status in carrier.send(scene, text):
                _count(outcome, status)
                if status >= 500 or not status:
                    outcome.wrong.append(f"{carrier.name} of {name}: {status or 'no answer'}")
            yield Step(f"{carrier.name}: {name}", began, time.monotonic())
    if not given:
        for what, act in _odd_requests(scene, outcome):
            began = time.monotonic()
            act()
            yield Step(what, began, time.monotonic())


def _assign(
    steps: list[Step], pauses: list[beats.Beat], answers: list[tuple[float, float]]
) -> list[Measured]:
    found = []
    for step in steps:
        mine = [beat for beat in pauses if step.began <= beat.ended and beat.began <= step.ended]
        worst = max(mine, key=lambda beat: beat.process_s, default=beats.Beat(0, 0, 0, 0))
        slow = max((end - start for start, end in answers if step.began <= start <= step.ended), default=0.0)
        found.append(Measured(step.what, worst.process_s, worst.loop_s, slow))
    return found


def play(folder: Path, seed: str, *, count: int = BATCH) -> Outcome:
    """Give a room some texts, drawn by the seed, by every carrier, and odd requests; start it again."""
    outcome = Outcome()
    drawn = random.Random(seed).sample(list(all_texts()), count)
    found = measure(folder / "texts", drawn, list(CARRIERS), outcome)
    found += measure(folder / "odd", [], [], outcome)
    outcome.add(texts=count, text_requests=sum(outcome.counts.values()))
    idle = max(one.cpu_s for one in found if one.what == "idle")
    outcome.times["silence, idle"] = [idle]
    outcome.times["silence under long texts"] = [one.cpu_s for one in found if one.what != "idle"]
    outcome.wrong += [f"silent for {one.cpu_s:.3f} s: {one.what}" for one in found if one.cpu_s > LIMIT_S]
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.chaos.texts", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="texts whose name contains this")
    parser.add_argument("--carriers", default="", help=f"some of: {', '.join(one.name for one in CARRIERS)}")
    parser.add_argument("--share", default="1/1", help="which part of the texts, such as 3/20")
    parser.add_argument("--repeat", type=int, default=1, help="rooms for the same texts; the least counts")
    parser.add_argument("--odd", action="store_true", help="odd requests instead of texts")
    parser.add_argument(
        "--profile", default="", help="write a profile of the room's loop here; the figures suffer"
    )
    parser.add_argument(
        "--stacks",
        default="",
        help="write here where all threads were in long pauses; this may crash the room",
    )
    parser.add_argument("--top", type=int, default=25)
    options = parser.parse_args()
    part, parts = map(int, options.share.split("/"))
    given = [] if options.odd else [one for one in all_texts() if options.only in one[0]][part - 1 :: parts]
    wanted = options.carriers.split(",") if options.carriers else [one.name for one in CARRIERS]
    carriers = [one for one in CARRIERS if one.name in wanted]
    outcome = Outcome()
    found: dict[str, Measured] = {}
    batches = [given[at : at + BATCH] for at in range(0, len(given), BATCH)] or [[]]
    for number, batch in enumerate(batches):
        best: dict[str, Measured] = {}
        for _ in range(options.repeat):
            folder = Path(tempfile.mkdtemp(prefix="texts-"))
            try:
                for one in measure(
                    folder / "room", batch, carriers, outcome, options.profile, options.stacks
                ):
                    best[one.what] = min(best.get(one.what, one), one, key=lambda each: each.cpu_s)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        for one in best.values():
            found[one.what] = max(found.get(one.what, one), one, key=lambda each: each.cpu_s)
        worst = max(found.values(), key=lambda one: one.cpu_s)
        print(f"{number + 1} of {len(batches)}: {worst.cpu_s * 1000:.0f} ms, {worst.what}", file=sys.stderr)
    print("   cpu  loop health (ms)")
    for one in [*sorted(found.values(), key=lambda each: -each.cpu_s)[: options.top], found["idle"]]:
        print(f"{one.cpu_s * 1000:6.0f}{one.loop_s * 1000:6.0f}{one.health_s * 1000:7.0f}  {one.what}")
    print(dict(outcome.counts), *outcome.wrong[:20], sep="\n")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
