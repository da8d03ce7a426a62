"""What the whiteboard has for those who are asked next, as the gateway gathers it."""

from typing import Any

import pytest

from tests.gateway.served import ServedRoom


async def begun(room: ServedRoom) -> tuple[str, str]:
    """Have one agent collaborate; return its token, the handle."""
    joined = await room.join("gpt", kind="api")
    answer = await room.post("/collaborations", {"objective": "move the piano", "models": ["gpt"]})
    return joined.token, str(answer["handle"])


async def ask_of(room: ServedRoom, token: str) -> dict[str, Any]:
    """Return the turn that waits for the agent."""
    answer = await room.call("GET", "/inbox/gpt?wait=20", token=token)
    (item,) = answer.data["items"]
    return dict(item)


async def reply(room: ServedRoom, token: str, text: str) -> None:
    item = await ask_of(room, token)
    await room.call("POST", "/agent-output", {"content": text, "turn": item["turn"]}, token=token)


async def test_notes_of_the_room_come_with_the_first_turn(room: ServedRoom) -> None:
    await room.post("/board", {"text": "the piano weighs 400 kg"})
    token, _ = await begun(room)

    assert "human: the piano weighs 400 kg" in (await ask_of(room, token))["text"]


async def test_without_notes_nothing_is_looked_for(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("there is nothing to find")

    monkeypatch.setattr(room.gateway.board, "search", search)
    token, _ = await begun(room)
    await reply(room, token, "first")

    assert "gpt: first" in (await ask_of(room, token))["text"]


async def test_note_that_comes_later_is_found_with_the_next_reply(room: ServedRoom) -> None:
    token, handle = await begun(room)
    await room.post("/board", {"text": "the stairs are narrow for a piano", "session": handle})
    await room.post("/board", {"text": "nothing to do with it: a recipe"})
    await reply(room, token, "how are the stairs?")
    text = (await ask_of(room, token))["text"]

    assert "human: the stairs are narrow for a piano" in text
    assert "a recipe" not in text


async def test_board_that_cannot_be_read_does_not_stop_the_room(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    token, _ = await begun(room)
    await room.post("/board", {"text": "the piano weighs 400 kg"})
    monkeypatch.setattr(room.gateway.board, "search", search)
    await reply(room, token, "first")

    assert "gpt: first" in (await ask_of(room, token))["text"]
