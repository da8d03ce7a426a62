"""What is shown of what was said while nobody looked."""

from typing import Any

import pytest

from csp.http_client import GatewayClient
from csp.human import catch_up
from csp.human.catch_up import missed_lines
from csp.human.theme import UNICODE, Theme

NOW = "--- now ---"


class History:
    """A history of messages with these numbers, of which the newest are asked for."""

    def __init__(self, *seqs: int) -> None:
        self.items: list[dict[str, Any]] = [
            {"seq": seq, "ts": 0.0, "sender": "ada", "text": f"word {seq}."} for seq in seqs
        ]
        self.asked: list[tuple[int, int]] = []

    def newest(self, gateway: GatewayClient, limit: int, before: int) -> list[dict[str, Any]]:
        self.asked.append((limit, before))
        return [item for item in self.items if item["seq"] < before][-limit:]


async def missed_in(
    history: History, seq: int, seen: int | None, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.setattr(catch_up, "newest", history.newest)
    lines = await missed_lines(
        GatewayClient("http://127.0.0.1:9", "t"), Theme(UNICODE, has_colour=False), seq, seen
    )
    return [line.rpartition(": ")[2] if "word" in line else line for line in lines]


async def test_who_was_never_here_sees_the_end_of_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(*range(1, 21))
    lines = await missed_in(history, 15, None, monkeypatch)

    assert lines == ["--- the last words here (8 messages) ---", *(f"word {n}." for n in range(8, 16)), NOW]


async def test_who_comes_back_sees_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(*range(1, 21))

    assert await missed_in(history, 12, 10, monkeypatch) == [
        "--- since you were away (2 messages) ---",
        "word 11.",
        "word 12.",
        NOW,
    ]
    assert await missed_in(history, 12, 11, monkeypatch) == [
        "--- since you were away (1 message) ---",
        "word 12.",
        NOW,
    ]
    assert await missed_in(history, 12, 12, monkeypatch) == []
    assert await missed_in(history, 2, 0, monkeypatch) == [
        "--- since you were away (2 messages) ---",
        "word 1.",
        "word 2.",
        NOW,
    ]


async def test_a_vote_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(1, 2, 3)
    history.items[1] |= {"type": "vote", "message": "m-1"}
    history.items[2] |= {"type": "vote"}
    assert await missed_in(history, 3, 0, monkeypatch) == [
        "--- since you were away (2 messages) ---",
        "word 1.",
        "word 3.",
        NOW,
    ]


async def test_nothing_said_is_nothing_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await missed_in(History(), 0, None, monkeypatch) == []


@pytest.mark.parametrize(
    ("new", "heading", "first"),
    [
        (30, "--- since you were away (30 messages) ---", 1),
        (31, "--- since you were away (30 messages, the newest of more; /history shows older ones) ---", 2),
    ],
)
async def test_of_much_the_newest_are_shown(
    monkeypatch: pytest.MonkeyPatch, new: int, heading: str, first: int
) -> None:
    lines = await missed_in(History(*range(1, new + 1)), new, 0, monkeypatch)

    assert (lines[0], lines[1], lines[-2]) == (heading, f"word {first}.", f"word {new}.")
    assert len(lines) == 32


async def test_a_room_that_has_gone_back_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = await missed_in(History(1, 2), 2, 500, monkeypatch)

    assert lines == ["--- the last words here (2 messages) ---", "word 1.", "word 2.", NOW]
