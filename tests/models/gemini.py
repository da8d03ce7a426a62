"""The Gemini API, as Gemini CLI uses it."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

from tests.models.dialect import sse
from tests.models.exchange import Ask
from tests.models.rules import Call, Fail, Shell, Used

# Texts that Gemini CLI itself writes in the user's role.
_OWN: Final = re.compile(
    r"\s*(<(session_context|hook_context|state_snapshot)>"
    r"|System: Potential loop|You have stopped calling tools )"
)


class Gemini:
    """Reads requests to .../models/NAME:streamGenerateContent; writes events or one JSON body."""

    def read(self, path: str, body: dict[str, Any]) -> Ask:
        contents = body.get("contents", [])
        tools = tuple(
            str(declaration.get("name", ""))
            for tool in body.get("tools") or ()
            for declaration in tool.get("functionDeclarations") or ()
        )
        last_answer = max(
            (at for at, content in enumerate(contents) if content.get("role") == "model"), default=-1
        )
        texts = [text for content in contents[last_answer + 1 :] for text in _texts(content)]
        governing, rounds = _governing(contents)
        return Ask(
            dialect="gemini",
            kind=_kind(path, body, tools),
            conversation=tuple(text for content in contents for text in _texts(content)),
            texts=tuple(texts),
            governing=governing,
            rounds=rounds,
            results=tuple(
                json.dumps(part["functionResponse"].get("response", {}), ensure_ascii=False)
                for content in contents[last_answer + 1 :]
                for part in content.get("parts", ())
                if "functionResponse" in part
            ),
            tools=tools,
            is_stream="stream" in path,
            tokens=len(json.dumps(contents)) // 4,
        )

    def encoder(self, ask: Ask, body: dict[str, Any], number: int) -> "GeminiEncoder":
        return GeminiEncoder(number, ask.tokens)

    def shell(self, shell: Shell, ask: Ask) -> Call:
        return Call(
            name="run_shell_command", arguments={"command": shell.command, "description": "Run a command"}
        )

    def error(self, fail: Fail) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        status, kind, text = {
            "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
            "server": (500, "INTERNAL", "An internal error has occurred."),
            "rate": (429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
            "limit": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan."),
            "auth": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "invalid": (400, "INVALID_ARGUMENT", "The input token count exceeds the maximum allowed."),
        }[fail.kind]
        error: dict[str, Any] = {"code": status, "message": text, "status": kind}
        if fail.kind == "limit":
            seconds = int((fail.until or time.time() + 3600) - time.time())
            violation = {
                "quotaMetric": "generativelanguage.googleapis.com/generate_requests_per_model_per_day",
                "quotaId": "GenerateRequestsPerDayPerProjectPerModel",
            }
            error["details"] = [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"},
            ]
        return status, {"error": error}, {}


class GeminiEncoder:
    """One answer as a row of GenerateContentResponse objects."""

    def __init__(self, number: int, input_tokens: int) -> None:
        self._number = number
        self._parts: list[dict[str, Any]] = []
        self._input_tokens = max(1, input_tokens)
        self.used: Used | None = None

    def begin(self) -> bytes:
        return b""

    def open_text(self) -> bytes:
        self._parts.append({"text": ""})
        return b""

    def text(self, chunk: str) -> bytes:
        self._parts[-1]["text"] += chunk
        return self._chunk([{"text": chunk}])

    def close_text(self) -> bytes:
        return b""

    def call(self, call: Call) -> bytes:
        number = f"call-{self._number}-{len(self._parts)}"
        part = {"functionCall": {"name": call.name, "args": call.arguments, "id": number}}
        self._parts.append(part)
        return self._chunk([part])

    def fail(self, fail: Fail) -> bytes:
        return sse(Gemini().error(fail)[1])

    def end(self) -> bytes:
        return sse(self._response([{"text": ""}]))

    def whole(self) -> dict[str, Any]:
        return self._response(self._parts)

    def _chunk(self, parts: list[dict[str, Any]]) -> bytes:
        return sse({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})

    def _response(self, parts: list[dict[str, Any]]) -> dict[str, Any]:
        guess = max(1, sum(len(json.dumps(part)) for part in self._parts) // 4)
        used = self.used or Used(fresh=self._input_tokens, output=guess)
        content = {"role": "model", "parts": parts}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": used.input,
                "cachedContentTokenCount": used.cached,
                "candidatesTokenCount": used.output,
                "totalTokenCount": used.input + used.output,
            },
            "modelVersion": "gemini-scripted",
        }


def _kind(path: str, body: dict[str, Any], tools: tuple[str, ...]) -> str:
    if "distilling chat history" in json.dumps(body.get("systemInstruction", "")):
        return "compact"
    if "complete_task" in tools:
        return "sub"
    return "main" if tools and "stream" in path else "side"


def _texts(content: dict[str, Any]) -> list[str]:
    if content.get("role") != "user":
        return []
    texts = [part["text"] for part in content.get("parts", ()) if "text" in part]
    return [text for text in texts if text and not _OWN.match(text)]


def _governing(contents: list[dict[str, Any]]) -> tuple[str, int]:
    rounds = 0
    for content in reversed(contents):
        rounds += any("functionResponse" in part for part in content.get("parts", ()))
        if texts := _texts(content):
            return texts[-1], rounds
    return "", rounds
