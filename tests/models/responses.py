"""The OpenAI Responses API, as Codex uses it."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.models.dialect import sse
from tests.models.exchange import Ask
from tests.models.rules import Call, Fail, Shell, Used

# Messages that Codex itself writes in the user's role.
_OWN: Final = re.compile(
    r"\s*(<(environment_context|user_instructions|turn_aborted|user_shell_command|subagent_notification)>"
    r"|# AGENTS\.md instructions|<INSTRUCTIONS>)"
)
_COMPACT: Final = "You are performing a CONTEXT CHECKPOINT COMPACTION"
_CALLS: Final = ("function_call", "custom_tool_call", "local_shell_call")


class Responses:
    """Reads requests to /v1/responses; writes server-sent events or one JSON body."""

    def read(self, path: str, body: dict[str, Any]) -> Ask:
        items = body.get("input", [])
        tools = tuple(str(tool.get("name", tool.get("type", ""))) for tool in body.get("tools") or ())
        last_answer = max((at for at, item in enumerate(items) if _is_answer(item)), default=-1)
        texts = [text for item in items[last_answer + 1 :] for text in _texts(item)]
        governing, rounds = _governing(items)
        return Ask(
            dialect="responses",
            kind=_kind(path, body, tools, texts),
            conversation=tuple(text for item in items for text in _texts(item)),
            texts=tuple(texts),
            governing=governing,
            rounds=rounds,
            results=tuple(
                _output(item)
                for item in items[last_answer + 1 :]
                if str(item.get("type", "")).endswith("_output")
            ),
            tools=tools,
            is_stream=bool(body.get("stream", True)),
            tokens=len(json.dumps(items)) // 4,
        )

    def encoder(self, ask: Ask, body: dict[str, Any], number: int) -> "ResponsesEncoder":
        return ResponsesEncoder(str(body.get("model", "")), number, ask.tokens)

    def shell(self, shell: Shell, ask: Ask) -> Call:
        arguments: dict[str, Any] = {}
        if shell.escalate:
            arguments = {"sandbox_permissions": "require_escalated", "justification": "The test asks for it"}
        if "exec_command" in ask.tools:
            return Call(name="exec_command", arguments={"cmd": shell.command} | arguments)
        if "shell_command" in ask.tools:
            return Call(name="shell_command", arguments={"command": shell.command} | arguments)
        return Call(name="shell", arguments={"command": ["bash", "-lc", shell.command]} | arguments)

    def error(self, fail: Fail) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        status, kind, text = {
            "overloaded": (503, "server_is_overloaded", "The server is currently overloaded"),
            "server": (500, "server_error", "The server had an error while processing your request"),
            "rate": (429, "rate_limit_exceeded", "Rate limit reached. Please try again in 1s."),
            "limit": (429, "usage_limit_reached", "The usage limit has been reached"),
            "auth": (401, "invalid_api_key", "Incorrect API key provided"),
            "invalid": (
                400,
                "context_length_exceeded",
                "Your input exceeds the context window of this model",
            ),
        }[fail.kind]
        error: dict[str, Any] = {"type": kind, "code": kind, "message": text}
        if fail.kind == "limit":
            until = int(fail.until or time.time() + 3600)
            error |= {"plan_type": "plus", "resets_at": until, "resets_in_seconds": int(until - time.time())}
        return status, {"error": error}, {}


class ResponsesEncoder:
    """One answer as the events response.created ... response.completed."""

    def __init__(self, model: str, number: int, input_tokens: int) -> None:
        self._id = f"resp_scripted{number:06d}"
        self._number = number
        self._model = model
        self._items: list[dict[str, Any]] = []
        self._input_tokens = max(1, input_tokens)
        self.used: Used | None = None

    def begin(self) -> bytes:
        return sse({"type": "response.created", "response": self.whole() | {"status": "in_progress"}})

    def open_text(self) -> bytes:
        item = {
            "type": "message",
            "id": f"msg_scripted{self._number:05d}{len(self._items):02d}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "", "annotations": []}],
        }
        self._items.append(item)
        return self._item("added", item | {"content": []}) + self._part("added")

    def text(self, chunk: str) -> bytes:
        self._items[-1]["content"][0]["text"] += chunk
        return sse({"type": "response.output_text.delta", "delta": chunk} | self._place())

    def close_text(self) -> bytes:
        text = self._items[-1]["content"][0]["text"]
        done = sse({"type": "response.output_text.done", "text": text} | self._place())
        return done + self._part("done") + self._item("done", self._items[-1])

    def call(self, call: Call) -> bytes:
        number = f"{self._number:05d}{len(self._items):02d}"
        item = {
            "type": "function_call",
            "id": f"fc_scripted{number}",
            "call_id": f"call_scripted{number}",
            "name": call.name,
            "arguments": json.dumps(call.arguments),
        }
        if call.namespace:
            item["namespace"] = call.namespace
        self._items.append(item)
        return self._item("added", item | {"arguments": ""}) + self._item("done", item)

    def fail(self, fail: Fail) -> bytes:
        error = Responses().error(fail)[1]["error"]
        response = self.whole() | {"status": "failed", "error": error}
        return sse({"type": "response.failed", "response": response})

    def end(self) -> bytes:
        return sse({"type": "response.completed", "response": self.whole()})

    def whole(self) -> dict[str, Any]:
        guess = max(1, sum(len(json.dumps(item)) for item in self._items) // 4)
        used = self.used or Used(fresh=self._input_tokens, output=guess)
        return {
            "id": self._id,
            "object": "response",
            "created_at": int(time.time()),
            "model": self._model,
            "status": "completed",
            "output": self._items,
            "usage": {
                "input_tokens": used.input,
                "input_tokens_details": {"cached_tokens": used.cached},
                "output_tokens": used.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": used.input + used.output,
            },
        }

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._items[-1]["id"], "output_index": len(self._items) - 1, "content_index": 0}

    def _item(self, what: str, item: dict[str, Any]) -> bytes:
        index = len(self._items) - 1
        return sse({"type": f"response.output_item.{what}", "output_index": index, "item": item})

    def _part(self, what: str) -> bytes:
        part = self._items[-1]["content"][0] if what == "done" else {"type": "output_text", "text": ""}
        return sse({"type": f"response.content_part.{what}", "part": part} | self._place())


def _kind(path: str, body: dict[str, Any], tools: tuple[str, ...], texts: list[str]) -> str:
    if path.endswith("/compact") or (texts and texts[-1].startswith(_COMPACT)):
        return "compact"
    if "x-openai-subagent" in body.get("client_metadata", {}):
        return "sub"
    return "main" if tools else "side"


def _is_answer(item: dict[str, Any]) -> bool:
    return item.get("type") in _CALLS or item.get("role") == "assistant"


def _texts(item: dict[str, Any]) -> list[str]:
    if item.get("role") != "user":
        return []
    content = item.get("content", [])
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    return [part for part in parts if part and not _OWN.match(part)]


def _output(item: dict[str, Any]) -> str:
    output = item.get("output", "")
    return output if isinstance(output, str) else json.dumps(output)


def _governing(items: list[dict[str, Any]]) -> tuple[str, int]:
    rounds, was_call = 0, False
    for item in reversed(items):
        is_call = item.get("type") in _CALLS
        rounds += is_call and not was_call
        was_call = is_call
        if texts := _texts(item):
            return texts[-1], rounds
    return "", rounds
