"""A real CLI with our wiring in a terminal, followed as the brain follows it."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

from csp.clis.adapter import CliRun, Wired
from csp.clis.wiring import unwire, wire
from csp.protocol.enums import Ending
from csp.sidecar.capture.follower import FollowedRun, Follower
from csp.terminal.reply_tracker import CapturedReply, Confirmed, Ended, Outcome, Switched, TurnState
from tests.clis.bringup import RealCli, SetUp, bring_up
from tests.clis.loopback import Loopback
from tests.clis.terminal import ENTER, Terminal
from tests.models.rules import Rule
from tests.models.server import ModelServer
from tests.waiting import comes_true, wait_until

T = TypeVar("T")

READY: Final = {"claude": r"^❯", "codex": r"Ask Codex", "gemini": r"Type your message"}
#: How long the proof of an Enter is waited for before it is pressed again.
_PROOF_S: Final = 1.0
_TRIES: Final = 60


class Room:
    """The scripted model in a network of its own, for the CLIs of one test."""

    def __init__(self, rules: Sequence[Rule], folder: Path) -> None:
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self.loopback = self._stack.enter_context(Loopback())
        self.server = self._stack.enter_context(ModelServer(rules, listener=self.loopback.listener))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def bring_up(
        self, name: str, set_up: SetUp | None = None, client: str = "", cwd: Path | None = None
    ) -> RealCli:
        return bring_up(name, self.server, self.loopback, self.folder, set_up, client=client, cwd=cwd)


class WiredCli:
    """One run of a CLI: `outcomes` grows by itself while it is entered."""

    def __init__(
        self,
        cli: RealCli,
        folder: Path,
        rules_text: str = "",
        *,
        is_settling: bool = True,
        server: Sequence[str] = (),
    ) -> None:
        """Without settling the hook events stay on disk, as after a brain that died at once."""
        self.cli = cli
        self._is_settling = is_settling
        self.folder = folder / f"run-{cli.client}"
        self.folder.mkdir(parents=True)
        self.since = time.time()
        run = CliRun(
            *(self.folder, cli.argv, cli.env, str(uuid.uuid4()), rules_text),
            cwd=str(cli.cwd),
            server=server,
        )
        self.wired: Wired = wire(cli.name, run)
        self.outcomes: list[Outcome] = []
        self.follower: Follower
        self.terminal: Terminal
        self._task: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self.terminal = Terminal(self.wired.argv, self.wired.env, self.cli.cwd).__enter__()
        self.follower = self.new_follower()
        self._task = asyncio.create_task(self._follow())
        await asyncio.to_thread(self.terminal.wait_for, READY[self.cli.name], 180.0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_following()
        await asyncio.to_thread(self.terminal.__exit__)
        unwire(self.folder)

    def new_follower(self, dumped: bytes = b"") -> Follower:
        run = FollowedRun(
            kind=self.cli.name,
            child_pid=self.terminal.process.pid,
            since=self.since,
            session_id=self.wired.session_id,
            transcript_hint=self.wired.transcript_hint,
            spool_dir=self.wired.spool_dir,
        )
        return Follower(run, dumped)

    async def stop_following(self) -> bytes:
        """End the follower as a crash would; return what a new one needs to go on."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        return self.follower.dump()

    def follow_again(self, dumped: bytes) -> None:
        self.follower = self.new_follower(dumped)
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for outcomes in self.follower.outcomes():
            self.outcomes += outcomes
            if self._is_settling:
                self.follower.settle()

    def tell_interrupted(self) -> None:
        """Say what the CLI does not: it was interrupted before its first word."""
        self.outcomes += self.follower.feed(Ended(how=Ending.INTERRUPTED))

    async def type(self, text: str) -> None:
        """Paste a text, wait until it is drawn, press Enter once: it may be too soon for the CLI."""
        before = self.terminal.screen()
        self.terminal.paste(text)
        await wait_until(lambda: self.terminal.screen() != before, 60.0)
        self.terminal.send(ENTER)
        self.follower.look()

    async def say(self, tag: str, text: str) -> None:
        """Type a message of ours until the CLI says that it has it."""
        await self.submit(f"[from human #{tag}]\n{text}\n[end #{tag}]", Confirmed(tag=tag))

    async def submit(self, text: str, proof: Outcome) -> None:
        await self.type(text)
        for _ in range(_TRIES):
            if await comes_true(lambda: proof in self.outcomes, _PROOF_S):
                return
            # A slow CLI that reads two Enters at once may submit twice.
            await self.wait(self.terminal.has_read)
            self.terminal.send(ENTER)
        raise AssertionError(f"no {proof}; the screen shows:\n{self.terminal.screen()}")

    async def wait(self, condition: Callable[[], T], timeout_s: float = 120.0) -> T:
        try:
            return await wait_until(condition, timeout_s)
        except AssertionError as error:
            shown = "\n".join(map(str, self.outcomes))
            raise AssertionError(f"{error}\n{shown}\n{self.terminal.screen()}") from None

    async def reply(self, tag: str | None, timeout_s: float = 120.0) -> CapturedReply:
        """Wait for the reply with that tag."""
        found = lambda: next((one for one in self.replies() if one.tag == tag), None)  # noqa: E731
        reply = await self.wait(found, timeout_s)
        assert reply is not None
        return reply

    async def idle(self) -> None:
        await self.wait(lambda: [one for one in self.outcomes if isinstance(one, TurnState)][-1:] == [IDLE])

    def sessions(self) -> list[str]:
        """Return the ids of the sessions that the run has been in, the first one first."""
        switches = [one.session for one in self.outcomes if isinstance(one, Switched)]
        return switches if self.cli.name == "codex" else [self.wired.session_id, *switches]

    def replies(self) -> list[CapturedReply]:
        return [one for one in self.outcomes if isinstance(one, CapturedReply)]


IDLE: Final = TurnState(is_open=False)
