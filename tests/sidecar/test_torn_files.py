"""Half lines, half files, nonsense between them: nothing of a run is lost or doubled, the reader lives."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from csp.sidecar.capture.follower import Follower
from csp.terminal.reply_tracker import CapturedReply
from tests.sidecar.test_transcripts_follow import RECORDS, Written, check
from tests.waiting import wait_until_sync

NONSENSE: Final = (
    *(b"", b"null", b"7", b"[]", b"{}", b'"text"', b'{"type":', b'{"type": 7}', b'{"message": []}'),
    *(b"\x00" * 40, b"\xff\xfe", "日本".encode()[:4], b'{"type": "user", "message": {"content": 9}}'),
    *(b'{"payload": "x", "type": "response_item"}', b'{"$set": 3}', b'{"timestamp": []}', b"{" * 2000),
)


class Torn(Written):
    """Writes a run in pieces, with nonsense in between, as after crashes or on a disk that was full."""

    def __init__(self, record: Path, folder: Path, chance: random.Random) -> None:
        super().__init__(record, folder)
        self._chance = chance
        self._raw: dict[str, int] = {}

    def pieces(self, entry: dict[str, Any]) -> Iterator[None]:
        """Write an entry; yield after each piece."""
        for path, line in entry["lines"]:
            yield from self._write_line(path, line.encode())
        for at, hook in entry["hooks"]:
            yield from self._write_hook(at, json.dumps(hook).encode())

    def _write_line(self, path: str, line: bytes) -> Iterator[None]:
        if path not in self._raw:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._raw[path] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        elif self._chance.random() < 0.5:
            # Not before the first line, by which a rollout of Codex is known.
            line = self._chance.choice(NONSENSE) + b"\n" + line
        for piece in self._cut(line + b"\n"):
            os.write(self._raw[path], piece)
            yield

    def _write_hook(self, at: float, event: bytes) -> Iterator[None]:
        """Write nonsense, half of the event under a name that is not read, under one that is, all of it."""
        self._count += 1
        (self.spool / f"{self._count}0.json").write_bytes(self._chance.choice(NONSENSE))
        yield
        half = event[: self._chance.randrange(len(event))]
        (self.spool / f".{self._count}").write_bytes(half)
        yield
        whole = self.spool / f"{self._count}1.json"
        whole.write_bytes(half)
        yield
        fresh = self.spool / f".{self._count}"
        fresh.write_bytes(event)
        os.utime(fresh, (at, at))
        fresh.rename(whole)
        yield

    def _cut(self, data: bytes) -> Iterator[bytes]:
        cuts = sorted(self._chance.choices(range(len(data) + 1), k=self._chance.choice([0, 1, 3])))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            yield data[start:end]

    def close(self) -> None:
        for fd in self._raw.values():
            os.close(fd)


@pytest.fixture(params=RECORDS, ids=[f"{path.parent.name}-{path.name}" for path in RECORDS])
def torn(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Torn]:
    torn = Torn(request.param, tmp_path, random.Random(request.param.name))
    yield torn
    torn.close()


def let_go(follower: Follower) -> None:
    """Close its files as the end of its process would; a rollout is found by who holds it open."""
    for tail in follower._tails.values():
        tail.close()


@pytest.mark.parametrize("kills", [pytest.param(0.0, marks=pytest.mark.full), 0.3])
def test_a_torn_record_gives_the_replies_that_the_model_sent(torn: Torn, kills: float) -> None:
    chance = random.Random(kills)
    follower = Follower(torn.run())
    replies: list[CapturedReply] = []

    def catch_up() -> None:
        follower.look()
        replies.extend(one for one in follower.catch_up() if isinstance(one, CapturedReply))

    for entry in torn.entries:
        for _ in torn.pieces(entry):
            catch_up()
            if chance.random() < kills:
                dumped = follower.dump()
                if chance.random() < 0.5:
                    follower.settle()
                let_go(follower)
                follower = Follower(torn.run(), dumped)

    def is_whole() -> bool:
        catch_up()
        return len(replies) >= len(torn.meta["replies"])

    wait_until_sync(is_whole, 60, what=f"{len(torn.meta['replies'])} replies")
    catch_up()
    let_go(follower)

    check(torn, replies)
