"""What a person does at a real CLI: wait for its composer, paste, press Enter until it is taken."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.clis.bringup import RealCli, SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.clis.terminal import ENTER, Terminal
from tests.models.rules import Rule
from tests.models.server import ModelServer
from tests.waiting import wait_until_sync

# An empty composer; Codex and Gemini show a placeholder in it, Claude after a failure.
IDLE: Final = {
    "claude": r"^❯\s*(?:Once fixed, resend your message\s*|Try \".*)?$",
    "codex": r"^› Ask Codex",
    "gemini": r"^ >   Type your message",
}
BUSY: Final = r"esc to (interrupt|cancel)"
DIALOG: Final = {
    "claude": r"Do you want to proceed\?",
    "codex": r"Would you like to run the following command\?",
    "gemini": r"Allow execution of",
}
_ENTER_TRIES: Final = 30
_ENTER_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Driven:
    """A real CLI that runs, with the model server it talks to."""

    cli: RealCli
    server: ModelServer
    terminal: Terminal

    def wait_idle(self) -> None:
        """Wait until no answer is under way and the composer is empty."""
        name, client = self.cli.name, self.cli.client
        wait_until_sync(
            lambda: all(exchange.ended != "open" for exchange in self.server.exchanges(client)),
            120.0,
            "the end of the answer",
        )
        wait_until_sync(self._are_turns_over, 120.0, "the end of the turn")
        self.terminal.wait_gone(BUSY)
        self.terminal.wait_for(IDLE[name])

    def _are_turns_over(self) -> bool:
        """Tell what the screen of Codex does not: it drops what is typed while a turn is being closed."""
        if self.cli.name != "codex":
            return True
        told = "".join(path.read_text("utf-8") for path in self.cli.transcripts())
        ended = told.count('"type":"task_complete"') + told.count('"type":"turn_aborted"')
        return told.count('"type":"task_started"') == ended

    def submit(self, text: str) -> None:
        """Paste a text, then press Enter until the model has it: an Enter too early is swallowed."""
        self.wait_idle()
        before = len(self.server.prompts(self.cli.client))
        self.terminal.paste(text)
        self.terminal.wait_gone(IDLE[self.cli.name])
        self.press_until(ENTER, lambda: len(self.server.prompts(self.cli.client)) > before)

    def press_until(self, key: bytes, is_done: Callable[[], bool]) -> None:
        for _ in range(_ENTER_TRIES):
            self.terminal.send(key)
            if _comes_true(is_done):
                return
            # A slow CLI that reads two Enters at once may submit twice.
            wait_until_sync(self.terminal.has_read, 120.0, "the CLI to read its keys")
        raise AssertionError(f"{key!r} had no effect; the screen shows:\n{self.terminal.screen()}")

    def wait_replies(self, count: int) -> list[str]:
        return wait_until_sync(
            lambda: replies if len(replies := self.server.replies(self.cli.client)) >= count else [],
            120.0,
            f"{count} replies",
        )


@contextmanager
def driven(name: str, folder: Path, *rules: Rule, set_up: SetUp | None = None) -> Iterator[Driven]:
    """Start one CLI in a terminal against a model server of its own."""
    with Loopback() as loopback, ModelServer(rules, listener=loopback.listener) as server:
        cli = bring_up(name, server, loopback, folder, set_up)
        with Terminal(cli.argv, cli.env, cli.cwd) as terminal:
            yield Driven(cli=cli, server=server, terminal=terminal)


def _comes_true(condition: Callable[[], bool]) -> bool:
    try:
        return wait_until_sync(condition, _ENTER_S)
    except AssertionError:
        return False
