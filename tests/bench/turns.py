"""Turns of the real CLIs behind a sidecar, beside the same CLI alone in a terminal.

The times are of the one clock that all have in common: of the model server, of the files that the user's own
hooks write, of the lines of Codex's rollout, of the events that a watcher of the room gets.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from csp.clis.profile import load_profile
from csp.errors import NotFound
from tests.bench.machine.figures import short
from tests.bench.machine.scene import Ear, answered, delivered
from tests.bench.results import Rounds, Taken
from tests.bench.setting import Setting
from tests.clis.bringup import RealCli, SetUp, bring_up
from tests.clis.driving import IDLE, Driven
from tests.clis.install import CLIS, PINS, missing
from tests.clis.loopback import Loopback
from tests.clis.terminal import ENTER, Terminal
from tests.models.exchange import Exchange
from tests.models.rules import Rule, slow
from tests.models.server import ModelServer
from tests.sidecar.stage import Seat, Stage
from tests.waiting import wait_until_sync

#: Messages in a round, of which the median counts.
TURNS: Final = 3
#: The answer takes this long, so that the end of the turn is apart from its beginning.
ANSWER_S: Final = 0.5
#: A CLI is left alone for this long before the next message, so that no gate has to be waited for.
REST_S: Final = 1.5
ENTER_S: Final = 1.0
PATIENCE_S: Final = 60.0
#: The user's own hooks, which tell first that a prompt was taken, that a turn has ended.
PROOF_HOOK: Final = {"claude": "UserPromptSubmit", "gemini": "BeforeAgent"}
END_HOOK: Final = {"claude": "Stop", "gemini": "AfterAgent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message to a CLI behind a sidecar, in seconds."""

    #: From the POST to the word that the CLI has taken it.
    confirmed_s: float
    #: From the end of the model's stream to the reply in the room, or to the CLI's own first signal.
    reply_s: float
    signal_s: float


class Signs:
    """What a CLI itself leaves on the disk."""

    def __init__(self, cli: RealCli) -> None:
        self._cli = cli

    def count(self, hook: str) -> int:
        """Return how often a hook of the user's has fired."""
        path = self._file(hook)
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def _file(self, hook: str) -> Path:
        return self._cli.user_hooks / f"{hook}.jsonl"

    def hooked_at(self, hook: str, before: int) -> float:
        """Return when a hook of the user's fired that had fired so often before; 0 if it has not."""
        return self._file(hook).stat().st_mtime if self.count(hook) > before else 0.0

    def told_at(self, kind: str, text: str, since: float) -> float:
        """Return the time of the first such event in Codex's rollout; 0 if there is none."""
        for path in self._cli.transcripts()[-1:]:
            for line in path.read_text("utf-8").splitlines(keepends=True):
                record = json.loads(line) if line.endswith("\n") and text in line else {}
                if record.get("type") == "event_msg" and record["payload"]["type"] == kind:
                    at = datetime.fromisoformat(record["timestamp"]).timestamp()
                    if at >= since:
                        return at
        return 0.0

    def watch_proof(self, text: str) -> Callable[[], float]:
        """Return what says when the CLI took a prompt with this text, from now on."""
        name = self._cli.name
        if name == "codex":
            return partial(self.told_at, "item_completed", text, time.time())
        hook = PROOF_HOOK[name]
        before = self.count(hook)
        return lambda: self.hooked_at(hook, before)

    def watch_end(self) -> Callable[[], float]:
        """Return what says when the CLI ended its next turn."""
        if self._cli.name == "codex":
            return partial(self.told_at, "task_complete", "", time.time())
        hook = END_HOOK[self._cli.name]
        before = self.count(hook)
        return lambda: self.hooked_at(hook, before)


class Pair:
    """One CLI twice: behind a sidecar in a room, alone in a terminal."""

    def __init__(self, stage: Stage, seat: Seat, cli: RealCli, alone: Driven, ear: Ear) -> None:
        self._stage, self._seat, self._cli, self._alone, self._ear = stage, seat, cli, alone, ear
        self._delivery = load_profile(cli.name).delivery
        self._numbers = iter(range(1000, 9999))
        self._rested_at = 0.0
        self.turns: list[list[Turn]] = []

    def floor_s(self) -> float:
        """Return the CLI's own floor: the gap after a paste, then its time from Enter to its first proof."""
        return median(self._submit_alone() for _ in range(TURNS))

    def confirmed_s(self) -> float:
        """Return how long a message takes from its POST to the word that the CLI has taken it."""
        self.turns.append([self._send() for _ in range(TURNS)])
        return median(turn.confirmed_s for turn in self.turns[-1])

    def replies(self) -> Taken:
        """Return how much later than the CLI's own first signal the room has a reply."""
        ratios = [median(turn.reply_s / turn.signal_s for turn in turns) for turns in self.turns]
        every = [turn for turns in self.turns for turn in turns]
        reply_ms, signal_ms = (
            median(getattr(turn, name) for turn in every) * 1e3 for name in ("reply_s", "signal_s")
        )
        return Taken(ratios, f"sidecar {short(reply_ms)} ms, {self._cli.name} alone {short(signal_ms)} ms")

    def _rest(self) -> None:
        """Let the CLI be at rest for a while."""
        self._rested_at = time.monotonic() + REST_S
        wait_until_sync(lambda: time.monotonic() >= self._rested_at)

    def _text(self) -> str:
        return f"bench {next(self._numbers)}, please answer"

    def _submit_alone(self) -> float:
        driven, text = self._alone, self._text()
        terminal, prompt = driven.terminal, f"[from human #1000]\n{text}\n[end #1000]"
        driven.wait_idle()
        self._rest()
        proof = Signs(driven.cli).watch_proof(text)
        gap_s = self._delivery.gap_s(len(prompt.encode()))
        terminal.paste(prompt)
        terminal.wait_gone(IDLE[driven.cli.name])
        pressed = shown = time.time()
        wait_until_sync(lambda: time.time() >= shown + gap_s)
        for _ in range(len(self._delivery.enter_retry_ms)):
            pressed = time.time()
            terminal.send(ENTER)
            if proven := _soon(proof):
                driven.wait_replies(1)
                return gap_s + proven - pressed
        raise AssertionError(f"{driven.cli.name} took no Enter:\n{terminal.screen()}")

    def _send(self) -> Turn:
        self._seat.wait_ready()
        self._rest()
        text, end = self._text(), Signs(self._cli).watch_end()
        posted = time.time()
        message = self._stage.send(self._cli.name, text)
        confirmed = self._ear.wait(delivered(message, "confirmed"), timeout_s=PATIENCE_S)
        replied = self._ear.wait(answered(message), timeout_s=PATIENCE_S)
        signalled = wait_until_sync(end, PATIENCE_S, "the CLI's own signal")
        ended = _exchange(self._alone.server, self._cli.client, text).ended_at
        return Turn(
            confirmed_s=confirmed - posted, reply_s=replied - ended, signal_s=max(signalled - ended, 1e-3)
        )


def _soon(proof: Callable[[], float]) -> float:
    try:
        return wait_until_sync(proof, ENTER_S)
    except AssertionError:
        return 0.0


def _exchange(server: ModelServer, client: str, text: str) -> Exchange:
    return next(found for found in server.exchanges(client, "main") if text in found.ask.governing)


@contextmanager
def _pair(name: str, folder: Path) -> Iterator[Pair]:
    rules = [Rule(match="bench", reply=[slow("An answer of some words, in several pieces.", ANSWER_S)])]
    # Codex tells by its rollout; hooks of the user's would only slow it.
    set_up = SetUp(has_user_hooks=name != "codex")
    with (
        Loopback() as loopback,
        ModelServer(rules, listener=loopback.listener) as server,
        Stage(folder / "stage") as stage,
    ):
        cli = bring_up(name, server, loopback, folder, set_up)
        other = bring_up(name, server, loopback, folder, set_up, client=f"{name}-alone")
        seat = stage.seat(name, cli.argv, env=cli.env, cwd=cli.cwd)
        ear = Ear(stage.room.port, stage.room.token)
        with Terminal(other.argv, other.env, other.cwd) as terminal:
            yield Pair(stage, seat, cli, Driven(cli=other, server=server, terminal=terminal), ear)
        ear.close()


def turns(name: str, setting: Setting) -> list[Taken]:
    """Send messages to a CLI behind a sidecar; type the same into one that is alone."""
    if missing(PINS, CLIS):
        raise NotFound("the real CLIs are not installed", "run: python -m tests.clis.install")
    with _pair(name, setting.fresh()) as pair:
        setting.on_step("the first turns, which count for nothing")
        pair.floor_s()
        pair.confirmed_s()
        pair.turns.clear()
        alone, seated = f"{name} alone", "sidecar"
        rounds = Rounds({alone: pair.floor_s, seated: pair.confirmed_s}, setting.rounds, setting.on_step)
        return [rounds.difference(seated, alone, "s"), pair.replies()]
