"""A run played by hand: a builder, a reviewer, CSP's own hands, a person."""

from collections.abc import Callable
from typing import Any

from csp.protocol.enums import HUMAN, ParticipantKind
from csp.protocol.events import KnownEvent, RunMoved
from csp.protocol.review_messages import MAILBOX, RunAction, RunContext, RunPhase, RunRole, RunTerms
from csp.room.commands import ActOnRun, CheckRun, DeliverRun, PrepareRun, SayInRun
from csp.room.runs.run_commands import read_message
from csp.room.runs.run_state import ReviewRun
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import Play

PLAN = "PLAN: two steps\n1. write it\n2. test it"
P = RunPhase


class Reviewing(Play):
    """Claude builds, codex reviews, unless somebody else is named."""

    def __init__(
        self,
        *agents: str,
        max_revisions: int | None = None,
        kind: ParticipantKind = ParticipantKind.CLI,
        **terms: Any,
    ) -> None:
        super().__init__(CLAUDE, CODEX, kind=kind)
        names = agents or ("claude", "codex")
        chosen = RunTerms(**terms) if terms else None
        self.start("review", agents=names, max_revisions=max_revisions, terms=chosen, topic="mend it")

    @property
    def run(self) -> ReviewRun:
        return list(self.room.runs.by_id.values())[-1]

    @property
    def phases(self) -> list[str]:
        return [event.phase.value for event in self.all(RunMoved)]

    def prepare(self, worktree: str = "/w", note: str = "") -> list[KnownEvent]:
        context = RunContext(dir="/d", worktree=worktree, note=note)
        return self.do(PrepareRun(run=self.run.id, context=context))

    def check(self, **fields: Any) -> list[KnownEvent]:
        update = self.run.update
        assert update is not None
        known: dict[str, Any] = {"cycle": self.run.cycle, "step": self.run.steps, "update": update}
        return self.do(CheckRun(run=self.run.id, **(known | fields)))

    def deliver_branch(self, **fields: Any) -> list[KnownEvent]:
        return self.do(DeliverRun(run=self.run.id, **fields))

    def act(self, action: RunAction, **fields: Any) -> list[KnownEvent]:
        return self.do(ActOnRun(sender=HUMAN, run=self.run.id, action=action, **fields))

    def refused_act(self, action: RunAction, **fields: Any) -> str:
        return self.refused(ActOnRun(sender=HUMAN, run=self.run.id, action=action, **fields))

    def message(self, role: RunRole, text: str, **fields: Any) -> SayInRun:
        """Return the command of a file or a request with what `text` says."""
        body = read_message(text, role, self.run.id)
        known: dict[str, Any] = {"sender": MAILBOX, "run": self.run.id, "role": role, "origin": "mailbox"}
        return SayInRun(body=body, **(known | fields))

    def by_file(self, role: RunRole, text: str, **fields: Any) -> list[KnownEvent]:
        return self.do(self.message(role, text, **fields))

    # --- as far as a phase ---

    def to(self, phase: RunPhase, ack: str = "ACK: ready") -> "Reviewing":
        """Play the shortest way to a phase."""
        steps: list[tuple[RunPhase, Callable[[], object]]] = [
            (P.SETUP, self.prepare),
            (P.START, lambda: self.reply(CODEX, ack)),
            (P.PLAN, lambda: self.reply(CLAUDE, PLAN)),
            (P.FEEDBACK, lambda: self.reply(CODEX, "RISK: low")),
            (P.EXECUTION, lambda: self.reply(CLAUDE, "DONE: all of it\nMETRIC: lines = 3")),
            (P.CHECKS, self.check),
            (P.DECISION, lambda: self.reply(CODEX, "DECISION: accept\nRATIONALE: fine")),
            (P.CLOSING, lambda: self.reply(CLAUDE, "END: it works")),
        ]
        for at, go in steps:
            if self.run.phase is phase:
                break
            if self.run.phase is at:
                go()
        assert self.run.phase is phase
        return self

    def revise(self, finding: str = "FINDING: major - wrong") -> None:
        self.reply(CODEX, f"DECISION: revise\n{finding}")

    def submit(self) -> None:
        self.reply(CLAUDE, "DONE: mended")
        self.check()
