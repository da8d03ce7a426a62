"""OpenAI's Chat Completions, as servers that imitate it speak it."""

import json
import time
from collections.abc import Mapping
from typing import Any

from tests.models.dialect import sse
from tests.models.exchange import Ask
from tests.models.responses import Responses
from tests.models.rules import Call, Fail, Shell, Used


class Chat:
    """Reads requests to /chat/completions; writes server-sent events or one JSON body."""

    def read(self, path: str, body: dict[str, Any]) -> Ask:
        messages = body.get("messages", [])
        said = tuple(str(message["content"]) for message in messages if message.get("role") == "user")
        return Ask(
            dialect="chat",
            kind="main",
            conversation=said,
            texts=said[-1:],
            governing=said[-1] if said else "",
            rounds=0,
            results=(),
            tools=(),
            is_stream=bool(body.get("stream")),
            tokens=len(json.dumps(messages)) // 4,
        )

    def encoder(self, ask: Ask, body: dict[str, Any], number: int) -> "ChatEncoder":
        has_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return ChatEncoder(str(body.get("model", "")), number, ask.tokens, has_usage=has_usage)

    def shell(self, shell: Shell, ask: Ask) -> Call:
        return Call(name="shell", arguments={"command": shell.command})

    def error(self, fail: Fail) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        return Responses().error(fail)


class ChatEncoder:
    """One answer as chat.completion.chunk events, with [DONE] at its end."""

    def __init__(self, model: str, number: int, input_tokens: int, *, has_usage: bool) -> None:
        self._id = f"chatcmpl-scripted{number:06d}"
        self._model = model
        self._text = ""
        self._input_tokens = max(1, input_tokens)
        self._has_usage = has_usage
        self.used: Used | None = None

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def open_text(self) -> bytes:
        return b""

    def text(self, chunk: str) -> bytes:
        self._text += chunk
        return self._chunk({"content": chunk})

    def close_text(self) -> bytes:
        return b""

    def call(self, call: Call) -> bytes:
        raise NotImplementedError("nobody here calls tools in this language")

    def fail(self, fail: Fail) -> bytes:
        return sse(Chat().error(fail)[1])

    def end(self) -> bytes:
        last = self._chunk({}, "stop")
        usage = self._head() | {"choices": [], "usage": self._usage()}
        return last + (sse(usage) if self._has_usage else b"") + b"data: [DONE]\n\n"

    def whole(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self._text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return self._head() | {"object": "chat.completion", "choices": [choice], "usage": self._usage()}

    def _head(self) -> dict[str, Any]:
        created = int(time.time())
        return {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": self._model,
        }

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return sse(self._head() | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def _usage(self) -> dict[str, Any]:
        used = self.used or Used(fresh=self._input_tokens, output=max(1, len(self._text) // 4))
        return {
            "prompt_tokens": used.input,
            "prompt_tokens_details": {"cached_tokens": used.cached},
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
        }
