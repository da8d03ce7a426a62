"""The routes of runs: begin one, see it, speak in it, decide about it."""

import asyncio
import hashlib

from csp.errors import BadInput, Forbidden, Refused
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call, answered
from csp.protocol.codec import check_text, encode
from csp.protocol.enums import DEFAULT_THREAD, Mode, Role
from csp.protocol.events import RunStarted
from csp.protocol.review_messages import (
    Plan,
    RunAction,
    RunActionBody,
    RunBody,
    RunMessageBody,
    RunSaidView,
    RunStartedView,
    RunsView,
    RunTerms,
    read_body,
)
from csp.room.commands import ActOnRun, SayInRun, SetMode
from csp.room.runs.run_commands import is_plan_open, known_run
from csp.room.runs.run_state import ReviewRun
from csp.room.runs.run_views import run_detail, run_view, stats


async def list_runs(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    runs = gateway.writer.room.runs.by_id.values()
    return RunsView(items=tuple(map(run_view, runs)), stats=stats(runs))


async def start_run(gateway: Gateway, call: Call) -> Answer:
    body: RunBody = call.body
    before = await answered(gateway, call)
    if before is not None:
        return RunStartedView(success=True, run=run_view(_known(gateway, before)))
    check_text(body.goal)
    terms = RunTerms(
        run_id=body.run_id,
        test=body.test,
        test_timeout_s=body.test_timeout_s,
        on_accept=body.on_accept,
        approve=body.approve,
        dir=body.dir,
    )
    if body.run_id is not None and gateway.hands.folders.path(body.run_id).exists():
        # The room may have forgotten a run whose files are still there.
        raise Refused(
            f"there is a folder of a run {body.run_id!r} already", "choose another id, or leave it out"
        )
    command = SetMode(
        **call.once,
        sender=call.caller.id,
        mode=Mode.REVIEW,
        topic=body.goal,
        agents=(body.builder, body.reviewer),
        max_revisions=body.max_revisions,
        terms=terms,
        thread=_thread(gateway, body.thread),
    )
    events = await gateway.submit(command)
    started = next(event for event in events if isinstance(event, RunStarted))
    return RunStartedView(success=True, run=run_view(_known(gateway, started.run)))


def _thread(gateway: Gateway, wanted: str | None) -> str | None:
    """Return where a run goes on: where it is wanted, else in the default thread, else in one of its own.

    Unlike a mode it takes no thread from another session: work would be given up without a word.
    """
    thread = wanted or DEFAULT_THREAD
    live = gateway.writer.room.sessions.live_in(thread)
    if live is None:
        return thread
    if wanted is not None:
        what = f"session {live.id} ({live.setup.mode}) goes on in thread {wanted}"
        raise Refused(what, "end it first, or leave the thread out")
    return None


async def get_run(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    run = _known(gateway, call.path["id"])
    return run_detail(run, str(gateway.hands.folders.path(run.id)))


async def say_in_run(gateway: Gateway, call: Call) -> Answer:
    body: RunMessageBody = call.body
    if call.caller.role is Role.ROOM:
        hint = "a person acts by: go, decide, halt, resume, abort, finding, defect"
        raise Forbidden("the room's token plays no role in a run", hint)
    if body.run_id != call.path["id"]:
        raise BadInput(f"run_id is {body.run_id!r}, but the path names {call.path['id'][:80]!r}")
    key = hashlib.sha256(body.sender.encode() + b"\0" + encode(body)).hexdigest()[:32]
    command = SayInRun(
        sender=call.caller.id,
        run=body.run_id,
        body=read_body(body.message_type, body.body),
        role=body.sender,
        origin="http",
        key=key,
    )
    events = await gateway.submit(command)
    return RunSaidView(success=True, run=run_view(_known(gateway, body.run_id)), repeated=not events)


async def act_on_run(gateway: Gateway, call: Call) -> Answer:
    action = call.chosen("act", RunAction)
    body: RunActionBody = call.body
    command = ActOnRun(
        **call.once,
        sender=call.caller.id,
        run=call.path["id"],
        action=action,
        plan=await _plan(gateway, call.path["id"], action, body.plan),
        decision=body.decision,
        rationale=body.rationale,
        finding=body.finding,
        verdict=body.verdict,
        defect=body.defect,
        severity=body.severity,
    )
    await gateway.submit(command)
    return RunStartedView(success=True, run=run_view(_known(gateway, call.path["id"])))


async def _plan(gateway: Gateway, run_id: str, action: RunAction, given: Plan | None) -> Plan | None:
    """Return the plan to go on with: the one that is given, else that of the file, which may be edited."""
    run = _known(gateway, run_id)
    is_due = action is RunAction.GO or (action is RunAction.RESUME and is_plan_open(run))
    if given is not None or not is_due:
        return given
    return await asyncio.to_thread(gateway.hands.folders.edited_plan, run.id)


def _known(gateway: Gateway, run_id: str) -> ReviewRun:
    return known_run(gateway.writer.room.runs.by_id, run_id)
