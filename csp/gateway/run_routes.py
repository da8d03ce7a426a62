"""Routes for review runs: start, show, post messages, and decide."""

import asyncio
import hashlib

from csp.errors import BadInput, Forbidden, NotFound, Refused
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import AnyCall, Posted, answered, fill
from csp.protocol import review_messages
from csp.protocol.codec import check_text, encode
from csp.protocol.enums import DEFAULT_THREAD, Mode, Role
from csp.protocol.events import RunStarted
from csp.room.commands import ActOnRun, SayInRun, SetMode
from csp.room.runs.run_commands import is_plan_open, known_run
from csp.room.runs.run_protocol import run_detail, run_view, stats
from csp.room.runs.run_state import ReviewRun


async def list_runs(gateway: Gateway, call: AnyCall) -> review_messages.RunsView:
    await gateway.writer.settle()
    runs = gateway.writer.room.runs.by_id.values()
    return review_messages.RunsView(items=tuple(map(run_view, runs)), stats=stats(runs))


async def start_run(
    gateway: Gateway, call: Posted[review_messages.RunBody]
) -> review_messages.RunStartedView:
    body = call.body
    before = await answered(gateway, call)
    if before is not None:
        return review_messages.RunStartedView(success=True, run=run_view(_known(gateway, before)))
    if not gateway.hosts_runs:
        what = "a run needs the files of one machine, and this room is served by several"
        raise Refused(what, "start one gateway with --host-runs, and ask that one")
    check_text(body.goal)
    if body.run_id is not None and gateway.run_worker.folders.path(body.run_id).exists():
        # The room may have forgotten a run whose files still exist.
        raise Refused(f"a folder of run {body.run_id!r} already exists", "choose another id or omit it")
    command = SetMode(
        **call.once,
        sender=call.caller.id,
        mode=Mode.REVIEW,
        topic=body.goal,
        agents=(body.builder, body.reviewer),
        max_revisions=body.max_revisions,
        on_limit=body.on_limit,
        terms=fill(review_messages.RunTerms, body),
        thread=thread_for_run(gateway, body.thread),
    )
    events = await gateway.submit(command)
    started = next((event for event in events if isinstance(event, RunStarted)), None)
    if started is None:
        raise NotFound("the same call was carried out before", "repeat it to get its answer")
    return review_messages.RunStartedView(success=True, run=run_view(_known(gateway, started.run)))


def thread_for_run(gateway: Gateway, wanted: str | None) -> str | None:
    """Return the thread for a run: the requested one, else the default one if free, else a new one.

    Unlike a mode, a run does not replace another session, because that session's work would be lost silently.
    """
    thread = wanted or DEFAULT_THREAD
    live = gateway.writer.room.sessions.live_in(thread)
    if live is None:
        return thread
    if wanted is not None:
        what = f"session {live.id} ({live.setup.mode}) is running in thread {wanted}"
        raise Refused(what, "stop it first, or omit the thread")
    return None


async def get_run(gateway: Gateway, call: AnyCall) -> review_messages.RunDetail:
    await gateway.writer.settle()
    run = _known(gateway, call.path["id"])
    return run_detail(run, str(gateway.run_worker.folders.path(run.id)))


async def say_in_run(
    gateway: Gateway, call: Posted[review_messages.RunMessageBody]
) -> review_messages.RunSaidView:
    body = call.body
    if call.caller.role is Role.ROOM:
        hint = "a person's actions are: go, decide, halt, resume, abort, finding, defect"
        raise Forbidden("the room's token has no role in a run", hint)
    if body.run_id != call.path["id"]:
        raise BadInput(f"run_id is {body.run_id!r}, but the path names {call.path['id'][:80]!r}")
    key = hashlib.sha256(body.sender.encode() + b"\0" + encode(body)).hexdigest()[:32]
    command = SayInRun(
        sender=call.caller.id,
        run=body.run_id,
        body=review_messages.read_body(body.message_type, body.body),
        role=body.sender,
        origin="http",
        key=key,
    )
    events = await gateway.submit(command)
    return review_messages.RunSaidView(
        success=True, run=run_view(_known(gateway, body.run_id)), repeated=not events
    )


async def act_on_run(
    gateway: Gateway, call: Posted[review_messages.RunActionBody]
) -> review_messages.RunStartedView:
    action = call.choice("act", review_messages.RunAction)
    run_id, plan = call.path["id"], call.body.plan
    run = _known(gateway, run_id)
    if plan is None and (
        action is review_messages.RunAction.GO
        or (action is review_messages.RunAction.RESUME and is_plan_open(run))
    ):
        # Continue with the plan in the file, because it may have been edited.
        plan = await asyncio.to_thread(gateway.run_worker.folders.edited_plan, run.id)
    sender = call.caller.id
    await gateway.submit(
        fill(ActOnRun, call.body, sender=sender, run=run_id, action=action, plan=plan, **call.once)
    )
    return review_messages.RunStartedView(success=True, run=run_view(_known(gateway, run_id)))


def _known(gateway: Gateway, run_id: str) -> ReviewRun:
    return known_run(gateway.writer.room.runs.by_id, run_id)
