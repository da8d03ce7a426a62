"""The Anthropic Messages API, as Claude Code uses it."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.models.dialect import sse
from tests.models.exchange import Ask
from tests.models.rules import Call, Fail, Shell, Used

# Blocks that Claude Code itself puts into the user's messages.
_OWN: Final = re.compile(
    r"\s*(<(system-reminder|command-name|command-message|command-args|local-command-\w+|bash-\w+)>"
    r"|\[Request interrupted by user|This session is being continued from a previous conversation)"
)
# What Claude Code puts around a long paste.
_PASTED: Final = re.compile(r'\n*<pasted_content id="[^"]*">\n(.*?)\n</pasted_content>\n?', re.DOTALL)
_COMPACT: Final = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
_SUBAGENT: Final = "cc_is_subagent=true"


class Anthropic:
    """Reads requests to /v1/messages; writes server-sent events or one JSON body."""

    def read(self, path: str, body: dict[str, Any]) -> Ask:
        messages = body.get("messages", [])
        tools = tuple(tool.get("name", "") for tool in body.get("tools") or ())
        last_answer = max(
            (at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1
        )
        conversation = _user_texts(messages)
        texts = _user_texts(messages[last_answer + 1 :])
        governing, rounds = _governing(messages)
        return Ask(
            dialect="anthropic",
            kind=_kind(body, tools, texts),
            conversation=tuple(conversation),
            texts=tuple(texts),
            governing=governing,
            rounds=rounds,
            results=tuple(result for message in messages[last_answer + 1 :] for result in _results(message)),
            tools=tools,
            is_stream=bool(body.get("stream")),
            tokens=len(json.dumps(messages)) // 4,
        )

    def encoder(self, ask: Ask, body: dict[str, Any], number: int) -> "AnthropicEncoder":
        return AnthropicEncoder(str(body.get("model", "")), number, ask.tokens)

    def shell(self, shell: Shell, ask: Ask) -> Call:
        return Call(name="Bash", arguments={"command": shell.command, "description": "Run a command"})

    def error(self, fail: Fail) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        status, kind, text = {
            "overloaded": (529, "overloaded_error", "Overloaded"),
            "server": (500, "api_error", "Internal server error"),
            "rate": (429, "rate_limit_error", "This request would exceed your organization's rate limit"),
            "limit": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
            "auth": (401, "authentication_error", "invalid x-api-key"),
            "invalid": (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum"),
        }[fail.kind]
        body = {"type": "error", "error": {"type": kind, "message": text}, "request_id": "req_scripted"}
        headers: dict[str, str] = (
            {} if fail.kind not in ("auth", "invalid", "limit") else {"x-should-retry": "false"}
        )
        if fail.kind == "limit":
            reset = str(int(fail.until or time.time() + 3600))
            headers |= {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-reset": reset,
                "anthropic-ratelimit-unified-representative-claim": "five_hour",
                "anthropic-ratelimit-unified-5h-status": "rejected",
                "anthropic-ratelimit-unified-5h-reset": reset,
            }
        return status, body, headers


class AnthropicEncoder:
    """One answer as the events message_start ... message_stop."""

    def __init__(self, model: str, number: int, input_tokens: int) -> None:
        self._id = f"msg_scripted{number:06d}"
        self._number = number
        self._model = model
        self._blocks: list[dict[str, Any]] = []
        self._usage = {"input_tokens": max(1, input_tokens), "output_tokens": 1}
        self.used: Used | None = None

    def begin(self) -> bytes:
        message = self.whole() | {"content": [], "stop_reason": None}
        return sse({"type": "message_start", "message": message}, "message_start")

    def open_text(self) -> bytes:
        self._blocks.append({"type": "text", "text": ""})
        return self._block_start({"type": "text", "text": ""})

    def text(self, chunk: str) -> bytes:
        self._blocks[-1]["text"] += chunk
        return self._delta({"type": "text_delta", "text": chunk})

    def close_text(self) -> bytes:
        return sse({"type": "content_block_stop", "index": len(self._blocks) - 1}, "content_block_stop")

    def call(self, call: Call) -> bytes:
        index = len(self._blocks)
        block = {"type": "tool_use", "id": f"toolu_scripted{self._number:05d}{index:02d}", "name": call.name}
        self._blocks.append(block | {"input": call.arguments})
        start = self._block_start(block | {"input": {}})
        delta = self._delta({"type": "input_json_delta", "partial_json": json.dumps(call.arguments)})
        return start + delta + self.close_text()

    def fail(self, fail: Fail) -> bytes:
        return sse(Anthropic().error(fail)[1], "error")

    def end(self) -> bytes:
        whole = self.whole()
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        return sse({"type": "message_delta", "delta": delta, "usage": whole["usage"]}, "message_delta") + sse(
            {"type": "message_stop"}, "message_stop"
        )

    def whole(self) -> dict[str, Any]:
        is_call = any(block["type"] == "tool_use" for block in self._blocks)
        size = sum(len(json.dumps(block)) for block in self._blocks)
        usage = self._usage | {"output_tokens": max(1, size // 4)}
        if self.used is not None:
            usage = {
                "input_tokens": self.used.fresh,
                "cache_creation_input_tokens": self.used.written,
                "cache_read_input_tokens": self.used.cached,
                "output_tokens": self.used.output,
            }
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": self._blocks,
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }

    def _block_start(self, block: dict[str, Any]) -> bytes:
        index = len(self._blocks) - 1
        return sse(
            {"type": "content_block_start", "index": index, "content_block": block}, "content_block_start"
        )

    def _delta(self, delta: dict[str, Any]) -> bytes:
        index = len(self._blocks) - 1
        return sse({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")


def _kind(body: dict[str, Any], tools: tuple[str, ...], texts: list[str]) -> str:
    if texts and texts[-1].startswith(_COMPACT):
        return "compact"
    if not tools or body.get("max_tokens") == 1:
        return "side"
    return "sub" if _SUBAGENT in json.dumps(body.get("system", "")) else "main"


def _content(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _texts(message: dict[str, Any]) -> list[str]:
    return [
        _PASTED.sub(r"\1", block["text"])
        for block in _content(message)
        if block.get("type") == "text" and not _OWN.match(block["text"])
    ]


def _user_texts(messages: list[dict[str, Any]]) -> list[str]:
    texts = [text for message in messages if message["role"] == "user" for text in _texts(message)]
    # Claude Code ends each of several user texts in a row with a line break, but not the last.
    return [text.removesuffix("\n") for text in texts[:-1]] + texts[-1:]


def _results(message: dict[str, Any]) -> list[str]:
    results = [block.get("content", "") for block in _content(message) if block.get("type") == "tool_result"]
    return [
        result if isinstance(result, str) else "".join(part.get("text", "") for part in result)
        for result in results
    ]


def _governing(messages: list[dict[str, Any]]) -> tuple[str, int]:
    rounds = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            rounds += any(block.get("type") == "tool_use" for block in _content(message))
        elif message["role"] == "user" and (texts := _texts(message)):
            return texts[-1], rounds
    return "", rounds
