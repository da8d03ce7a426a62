"""Build a request to a model from one of the room's deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from csp.room.commands import DEFAULT_WINDOW, WindowSize
from csp.room.sessions.session_state import WindowItem, tokens_in
from csp.room.sessions.turn_prompt import newest, render, visible_items

#: The name of the schema, for providers that require one.
SCHEMA_NAME: Final = "reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMessage:
    """One message in a conversation with a model; `by_model` marks the model's own messages."""

    text: str
    by_model: bool = False

    @property
    def role(self) -> str:
        return "assistant" if self.by_model else "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call to a model; a reply has at most `max_output` tokens and, without a schema, is plain text."""

    system: str
    said: tuple[ModelMessage, ...]
    schema: Mapping[str, Any] | None = None
    max_output: int | None = None

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation in a format that all providers accept."""
        return [{"role": one.role, "content": one.text} for one in self.said]

    @property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return tokens_in(self.system) + sum(tokens_in(one.text) for one in self.said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The last request in a thread and the reply to it."""

    asked: str
    answered: str


def ask_for(
    item: Deliver,
    system: str,
    prompts: Mapping[str, str],
    window: Sequence[WindowItem] = (),
    before: Exchange | None = None,
    size: WindowSize = DEFAULT_WINDOW,
) -> ModelRequest:
    """Return the request for a delivery: a turn's prompt, or a message with its context window.

    A repair includes the previous exchange `before`, because the model has no memory.
    """
    if item.kind is not DeliverKind.TURN:
        known = newest([one for one in window if one.id != item.id], size)
        values = {"window": visible_items(known, size), "sender": item.sender, "text": item.text}
        return ModelRequest(system=system, said=(ModelMessage(text=render(prompts, "talk", values)),))
    asked: tuple[ModelMessage, ...] = (ModelMessage(text=item.text),)
    if item.is_repair and before is not None and before.answered:
        asked = (ModelMessage(text=before.asked), ModelMessage(text=before.answered, by_model=True), *asked)
    schema = reply_schema(item.handoff_to)
    return ModelRequest(system=system, said=asked, schema=schema, max_output=item.max_output)


def reply_schema(handoff_to: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema for a reply in a turn.

    Strict schemas require every property, so optional ones are nullable. They cannot limit the length of
    texts.
    """
    final = {"type": ["boolean", "null"], "description": "true if all of the work is done"}
    properties: dict[str, Any] = {"message": {"type": "string", "description": "text for everyone"}}
    if handoff_to:
        task = {"type": "string", "description": "one sentence, 500 characters at most"}
        handoff = _object({"to": {"type": "string", "enum": list(handoff_to)}, "task": task})
        properties["handoff"] = {"anyOf": [handoff, {"type": "null"}]}
    properties["final"] = final
    return _object(properties)


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
