"""Tokens and keys stay where they belong."""

import json
import logging
import stat
from pathlib import Path

import pytest

from tests.gateway.served import ServedRoom, served


async def _live_a_little(room: ServedRoom) -> list[str]:
    """Use the room with many tokens; return all of them."""
    claude, codex = await room.join("claude"), await room.join("codex", capabilities={"tools": True})
    message = await room.send("claude", "hello")
    await room.post("/agent-output", {"content": "hi", "replyTo": message}, claude.token)
    await room.send("all", "hello again", codex.token)
    await room.call("DELETE", "/agents/codex")
    again = await room.join("codex")
    for token in ("wrong", codex.token):
        assert (await room.call("GET", "/agents", token=token)).status == 401
    await room.call("GET", "/history?limit=nonsense", token=claude.token)
    await room.call("POST", "/message", data=b"nonsense", token=again.token)
    await room.post(f"/messages/{message}/redact")
    page, left = await room.enter(), await room.enter()
    await room.send("claude", "from a page", page)
    await room.post("/page/leave", {}, left)
    return [room.token, claude.token, codex.token, again.token, page, left]


def _forms(room: ServedRoom, tokens: list[str]) -> list[bytes]:
    """Return everything that must not leak, in the forms it might have."""
    secret = (room.folder / "secret").read_bytes()
    signatures = [token.rpartition(".")[2].encode() for token in tokens]
    return [*signatures, secret, secret.hex().encode(), repr(secret)[2:-1].encode()]


async def test_no_answer_and_no_event_holds_a_token(room: ServedRoom) -> None:
    tokens = await _live_a_little(room)
    claude = tokens[1]
    sockets = [await room.connect(token, 0) for token in (room.token, claude)]
    await room.send("all", "the end")
    for socket in sockets:
        await socket.until_seq(room.gateway.writer.safe_seq)
    answers = [
        (await room.call("GET", path, token=token)).raw
        for token in (room.token, claude)
        for path in ("/history?after=0", "/agents", "/health", "/openapi.json", "/mode", "/queue", "/metrics")
    ]
    frames = [json.dumps([*socket.events, *socket.delivers]).encode() for socket in sockets]

    for form in _forms(room, tokens):
        assert not any(form in said for said in [*answers, *frames])


async def test_no_file_but_the_secret_holds_a_token(room: ServedRoom) -> None:
    tokens = await _live_a_little(room)
    room.gateway.index.catch_up()
    forms = _forms(room, tokens)
    await room.restart()

    for path in room.folder.iterdir():
        assert path.name == "secret" or not any(form in path.read_bytes() for form in forms), path


async def test_no_log_record_holds_a_token(room: ServedRoom, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = await _live_a_little(room)
    await room.restart()

    said = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records).encode()
    assert not any(form in said for form in _forms(room, tokens))


async def test_only_the_owner_may_read_the_room(room: ServedRoom) -> None:
    await _live_a_little(room)
    room.gateway.index.catch_up()
    await room.restart()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in room.folder.iterdir()}

    assert modes["secret"] == 0o600
    assert {"secret", "journal.jsonl", "journal.lock", "search.sqlite"} <= set(modes)
    assert any(name.startswith("snapshot-") for name in modes)
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}
    assert stat.S_IMODE(room.folder.stat().st_mode) == 0o700


async def test_every_room_has_a_secret_of_its_own(room: ServedRoom, tmp_path: Path) -> None:
    claude = await room.join("claude")
    async with served(tmp_path / "other") as other:
        await other.join("claude")

        for token in (room.token, claude.token):
            assert (await other.call("GET", "/agents", token=token)).status == 401
