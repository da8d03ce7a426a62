"""A verb called in this process, with a gateway that notes what it is asked and answers from a table."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from csp.cli.parser import parse
from csp.cli.verb_call import VerbCall
from csp.config import Settings
from csp.http_client import GatewayClient
from csp.room_registry import Address


class Recorded(GatewayClient):
    """Answers by path: a value each time, or the next of a list; an exception is raised."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__("http://127.0.0.1:9", "token")
        self._answers = dict(answers)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        #: Where something was asked for that must not be done twice.
        self.once: list[str] = []
        #: How often somebody has looked for it again.
        self.reconnects = 0

    def get(self, path: str, **query: Any) -> Any:
        return self._note("GET", path, {name: value for name, value in query.items() if value is not None})

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._note("POST", path, body or {})

    def post_once(self, path: str, body: dict[str, Any] | None = None) -> Any:
        self.once.append(path)
        return self._note("POST", path, body or {})

    def delete(self, path: str) -> Any:
        return self._note("DELETE", path, {})

    def _note(self, method: str, path: str, what: dict[str, Any]) -> Any:
        self.asked.append((method, path, what))
        answer = self._answers[path]
        if isinstance(answer, Several):
            answer = answer.next()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was asked for, without where."""
        return [what for _, _, what in self.asked]


class Several:
    """Answers that come one after the other; the last of them stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def next(self) -> Any:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class RecordedCall(VerbCall):
    """A call in a room that is only recorded; after a failure it finds the same gateway again."""

    recorded: Recorded

    @cached_property
    def gateway(self) -> GatewayClient:
        return self.recorded

    @cached_property
    def address(self) -> Address:
        return Address(url=self.recorded.url, token="token", room="default")

    def reconnect(self) -> GatewayClient:
        self.recorded.reconnects += 1
        return self.recorded


def call_of(*words: str, cwd: Path = Path("/"), gateway: Recorded | None = None) -> VerbCall:
    """Return the call that a command line makes, of a room that answers nothing by default."""
    _, args = parse(words)
    call = RecordedCall(args=args, settings=Settings(), cwd=cwd)
    call.__dict__["recorded"] = gateway or Recorded({})
    return call


def with_settings(call: VerbCall, **fields: Any) -> VerbCall:
    """Return the same call with other settings."""
    found = type(call)(args=call.args, settings=replace(call.settings, **fields), cwd=call.cwd)
    found.__dict__["recorded"] = call.__dict__["recorded"]
    return found


def run(gateway: Recorded, *words: str, cwd: Path = Path("/")) -> int:
    """Run a verb to its exit code; what it raises is not caught."""
    verb, _ = parse(words)
    return verb.load()(call_of(*words, cwd=cwd, gateway=gateway))


class Clock:
    """A clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now, self.looks = 100.0, 0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        self.looks += 1
        assert self.looks < 1000, "nobody waits for ever"
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
