"""What a person on the host asks an agent of the laptop, and that each answer comes once."""

from typing import Final

from csp.protocol.events import MessageEvent
from tests.rooms import Room
from tests.waiting import wait_until_sync

#: A link is made again after seconds, but a busy machine takes longer.
BACK_S: Final = 120.0


def say(room: Room, *texts: str) -> None:
    """Send texts to the laptop's agent."""
    for text in texts:
        room.gateway.post_once("/message", {"to": "ada", "content": text})


def answered(room: Room, *texts: str) -> None:
    """Wait until each text was typed once and answered once."""

    def counts() -> dict[str, int]:
        said = [event for event in room.journal() if isinstance(event, MessageEvent)]
        asked = {event.id: event.text for event in said if event.sender == "human"}
        replies = [asked[event.reply_to] for event in said if event.reply_to in asked]
        return {text: replies.count(text) for text in texts}

    wait_until_sync(lambda: all(counts().values()), BACK_S, "the answers")
    assert counts() == dict.fromkeys(texts, 1)
