"""The actions of the human pane's commands."""

import asyncio
import json
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from csp.errors import BadInput, NotFound, Refused
from csp.fast_start.child_environment import USER, child_environment, identity
from csp.fast_start.failure_report import FailurePipe
from csp.http_client import field, objects, segment
from csp.human.message_text import broken_at_words
from csp.human.questions import about_topic, yes_or_no
from csp.human.safe_text import one_line, visible
from csp.human.status_lines import DONE, PROVED
from csp.panes.pane_borders import HUMAN, MARK
from csp.protocol.enums import DeliveryState
from csp.room import human_input
from csp.session_status import SessionStatus, session_of
from csp.terminal.pane_layout import LayoutName

if TYPE_CHECKING:
    from csp.human.chat import Chat

_WITHDRAWABLE: Final = (DeliveryState.QUEUED, DeliveryState.HELD)
_FAREWELL: Final = "the room keeps running; resume: csp up · stop: csp down"
_STEERED: Final = {"pause": "paused", "resume": "resumed", "extend": "extended", "skip": "skipped a turn of"}
#: The states in which a session can be steered by each verb.
_BEFORE: Final = {"pause": "running", "resume": "paused"}
_NO_SESSION: Final = "no mode is running"
_START: Final = 'start one: /mode debate "topic"'
#: The option of /down after the user has confirmed.
SURE: Final = "yes"
#: Allstop ends a mode; without one, it is unclear which of the agents' own work to stop.
_NOTHING: Final = "No mode is running. To stop an agent: /interrupt AGENT"
#: The word that also ends the program of a removed agent.
END: Final = "end"
_NOT_HERE: Final = "start it again where it ran: csp sidecar --name {agent} -- COMMAND"


def _report(chat: "Chat", text: str) -> None:
    """Show a command's result, broken between words."""
    chat.out.put(broken_at_words(text, chat.look.columns(), further=2))


# --- agents --------------------------------------------------------------------------------------


async def press(chat: "Chat", verb: str, words: list[str]) -> None:
    """Press a button of an agent; the result is shown as a tick."""
    agent = words[0]
    body = {"choice": int(words[1])} if len(words) > 1 else {}
    answer = await chat.ask("POST", f"/agents/{segment(agent)}/{verb}", body)
    pressed = answer.get("id") if isinstance(answer, dict) else None
    if pressed:
        now = time.monotonic()
        chat.ticks.expect(str(pressed), now, label=verb)
        chat.ticks.accept(str(pressed), 0, (agent,), now)
    if verb not in PROVED:
        _report(chat, f"{DONE[verb]} {chat.look.name(agent)}")
        chat.ticks.keep_quiet(str(pressed))


async def restart(chat: "Chat", words: list[str]) -> None:
    """Restart an agent's CLI; if its pane has ended, start the agent in a new one."""
    agent = words[0]
    if any(item.get("id") == agent and item.get("online") for item in await chat.agents()):
        return await press(chat, "restart", words)
    if MARK not in chat.order.env:
        raise Refused(f"{agent} has ended", _NOT_HERE.format(agent=agent))
    _report(chat, f"starting {chat.look.name(agent)} again")
    await _csp(chat, "up", "--detach", "--agents", agent)
    _report(chat, f"{chat.look.name(agent)} is here again")
    return None


async def remove(chat: "Chat", words: list[str]) -> None:
    """Remove an agent from the room; close its pane if its program has ended or should be ended."""
    agent, *rest = words
    if rest not in ([], [END]):
        raise BadInput(f"expected nothing or {END}, got {rest[0]!r}", f"/remove {agent} {END}")
    if MARK in chat.order.env:
        from csp.panes.down import RemovedPane

        done = json.loads(await _csp(chat, "remove", agent, "--json", *(["--end"] if rest else [])))
        if done["pane"] == RemovedPane.RUNNING:
            _report(
                chat, f"{chat.look.name(agent)} still runs in its pane; end it with: /remove {agent} {END}"
            )
    else:
        await chat.ask("DELETE", f"/agents/{segment(agent)}")
    if chat.target == agent:
        chat.aim("all")


async def add(chat: "Chat", words: list[str]) -> None:
    """Start another agent, as `csp add` does."""
    try:
        given = shlex.split(words[0])
    except ValueError as exc:
        raise BadInput(f"the command cannot be read: {str(exc).lower()}", "check its quotes") from exc
    # Without a `--`, everything after the name is the command.
    name, *rest = given if "--" in given else [*given[:1], "--", *given[1:]]
    said = await _csp(chat, "add", name, *rest)
    _report(chat, visible(one_line(said, 200)))


async def focus(chat: "Chat", words: list[str]) -> None:
    """Switch to an agent's pane."""
    if "TMUX" not in chat.order.env:
        raise Refused("this pane is not in tmux, so it cannot go to another one", "attach with: csp up")
    code, listed, _ = await _run(chat, "tmux", "list-panes", "-s", "-F", "#{pane_id} #{@csp_agent}")
    rows = [line.partition(" ") for line in listed.splitlines()]
    panes = {agent: pane for pane, _, agent in rows}
    pane = panes.get(words[0])
    if code or pane is None:
        raise NotFound(f"no pane of {words[0]} is in this tmux session", "see: /agents")
    for verb in ("select-window", "select-pane"):
        code, _, said = await _run(chat, "tmux", verb, "-t", pane)
        if code:
            raise Refused(f"tmux could not go to the pane of {words[0]}: {one_line(said, 200)}")


async def zoom(chat: "Chat", words: list[str]) -> None:
    """Toggle the zoom of a pane."""
    if "TMUX" not in chat.order.env:
        raise Refused("this pane is not in tmux, so it cannot be enlarged", "attach with: csp up")
    if words:
        await focus(chat, words)
    code, _, said = await _run(chat, "tmux", "resize-pane", "-Z")
    if code:
        raise Refused(f"tmux could not enlarge the pane: {one_line(said, 200)}")


async def lay_out(chat: "Chat", words: list[str]) -> None:
    """Arrange the room's panes."""
    if not words:
        _report(chat, f"layout {chat.borders.form.name}; choose with /layout {' | '.join(LayoutName)}")
        return
    if words[0] not in set(LayoutName):
        raise BadInput(f"unknown layout {words[0]!r}, expected one of: {', '.join(LayoutName)}")
    if MARK not in chat.order.env:
        raise Refused("this pane is not in the room's tmux session", "attach with: csp up")
    chat.borders.choose(LayoutName(words[0]))


async def leave(chat: "Chat", words: list[str]) -> None:
    """Close the pane; in the room's own session, keep it and return viewers to their previous session."""
    pane = chat.order.env.get("TMUX_PANE", "")
    is_of_room = False
    if pane and MARK in chat.order.env:
        # Somebody may have opened a second pane next to the one that belongs to the room.
        code, agent, _ = await _run(chat, "tmux", "display-message", "-p", "-t", pane, "#{@csp_agent}")
        is_of_room = code == 0 and agent.strip() == HUMAN
    if not is_of_room:
        chat.out.leave()
        return
    form = "#{client_control_mode} #{client_activity} #{client_name} #{client_last_session}"
    _, listed, _ = await _run(chat, "tmux", "list-clients", "-t", pane, "-F", form)
    people = sorted(row.split(" ", 3)[1:] for row in listed.splitlines() if row.startswith("0 "))
    _report(chat, _FAREWELL)
    if people:
        _, client, before = (*people[-1], "")[:3]
        # A client from another session on this server returns there; any other client leaves tmux.
        code = 1
        if before:
            code, _, _ = await _run(chat, "tmux", "switch-client", "-c", client, "-t", f"={before}")
            if not code:
                await _run(chat, "tmux", "display-message", "-c", client, _FAREWELL)
        if code:
            await _run(chat, "tmux", "detach-client", "-t", client)


# --- items that need the user ----------------------------------------------------------------------


async def answer(chat: "Chat", words: list[str]) -> None:
    """Answer the newest item that needs the user."""
    chat.answer(words[0].lower() if words else "y")


async def allow(chat: "Chat", words: list[str]) -> None:
    """Allow an agent to run a command without approval."""
    added = await chat.ask("POST", "/rules", {"agent": words[0], "pattern": words[1]})
    rule = field(added, "rule", dict)
    _report(
        chat, visible(f"{rule.get('agent')} may run: {rule.get('pattern')} (/unallow {rule.get('number')})")
    )
    if rule.get("problem"):
        chat.out.talk(visible(str(rule["problem"])))


async def unallow(chat: "Chat", words: list[str]) -> None:
    """Remove an approval rule."""
    if not words:
        raise BadInput("expected the number of a rule", "see: /rules")
    removed = await chat.ask("DELETE", f"/rules/{segment(words[0])}")
    rule = field(removed, "rule", dict)
    _report(chat, visible(f"{rule.get('agent')} has to ask again for: {rule.get('pattern')}"))


async def decide(chat: "Chat", words: list[str]) -> None:
    """Decide a tie, or how to handle a limit."""
    if len(words) != 2:
        raise BadInput("expected a session and a choice", "/decide SESSION CHOICE; see: /needs")
    await chat.ask("POST", f"/sessions/{segment(words[0])}/decide", {"choice": words[1]})
    _report(chat, visible(f"decided {words[0]}: {words[1]}"))


# --- messages ------------------------------------------------------------------------------------


async def forward(chat: "Chat", words: list[str]) -> None:
    """Forward an agent's last message to another agent."""
    said = await chat.last_words(words[0])
    chat.say(words[1], human_input.forwarded(words[0], said, words[2] if len(words) > 2 else ""))


async def act_on_message(chat: "Chat", action: str, words: list[str]) -> None:
    """Act on a sent message; without an id, act on the user's last one."""
    if action == "cancel" and not words:
        message = await _newest_waiting(chat)
    else:
        message = await message_id(chat, words[0] if words else "")
    answer = await chat.ask("POST", f"/messages/{segment(message)}/{action}")
    sent, seq = field(answer, "id", str), field(answer, "seq", int)
    if action == "resend":
        now = time.monotonic()
        chat.ticks.expect(sent, now)
        chat.ticks.accept(sent, seq, tuple(field(answer, "recipients", list)), now)
    if not (action == "cancel" and chat.ticks.is_own(message)):
        _report(chat, f"{DONE[action]} #{seq}")


async def _newest_waiting(chat: "Chat") -> str:
    """Return the id of the user's newest message that can still be withdrawn."""
    # Wait a moment for messages in transit.
    with suppress(BadInput):
        await chat.last_own()
    waiting = objects(field(await chat.ask("GET", "/queue"), "items", list))
    own = [item for item in waiting if item.get("sender") == HUMAN and item.get("state") in _WITHDRAWABLE]
    if not own:
        raise NotFound("no message of yours can be cancelled any more", "see: /queue")
    return field(max(own, key=lambda item: field(item, "seq", int)), "id", str)


async def release(chat: "Chat", words: list[str]) -> None:
    """Release the given message from the loop guard, or the only held one."""
    if words:
        return await act_on_message(chat, "continue", words)
    waiting = objects(field(await chat.ask("GET", "/queue"), "items", list))
    held = {field(item, "id", str): item for item in waiting if item.get("reason") == "loop"}
    if not held:
        raise NotFound("the loop guard isn't holding any message", "see: /queue")
    if len(held) > 1:
        numbers = ", ".join(f"#{item.get('seq')}" for item in held.values())
        raise BadInput(f"the loop guard holds several messages: {numbers}", "name one: /continue N")
    return await act_on_message(chat, "continue", list(held))


async def message_id(chat: "Chat", given: str) -> str:
    """Return the given name of a message, or the id of the user's last one."""
    # The room identifies a message by its number as well as by its id.
    return given or await chat.last_own()


async def item_at(chat: "Chat", seq: int) -> dict[str, Any]:
    """Return the message with a number."""
    items = await chat.page(after=max(0, seq - 1), before=seq + 1, limit=1)
    if not items or items[0].get("seq") != seq:
        raise NotFound(f"there is no message #{seq}", "see: /history")
    return items[0]


# --- modes ---------------------------------------------------------------------------------------


async def has_questions(chat: "Chat", wish: human_input.ModeLine) -> bool:
    """Ask for information needed before a mode starts; raise for a script, which cannot answer."""
    if wish.needs_topic:
        if not chat.order.is_person:
            raise BadInput(f"{wish.mode} needs a topic", f'/mode {wish.mode} "topic"')
        chat.pose(about_topic(human_input.TOPIC_QUESTION, wish))
        return True
    if wish.mode == human_input.FREEFORM or wish.replaces:
        return False
    running = session_of(await chat.ask("GET", "/mode"))
    if not running.is_running:
        return False
    if not chat.order.is_person:
        raise Refused(f"{running.mode} is running", "add --replace to stop it and start the new one")
    meant = replace(wish, flags=(*wish.flags, "replace"))
    prompt = f"stop {human_input.mode_words(running.mode)}"
    chat.pose(yes_or_no(human_input.replace_question(running.mode), meant, prompt))
    return True


async def set_mode(chat: "Chat", wish: human_input.ModeLine) -> None:
    """Start a mode; the room posts the notice."""
    if wish.mode == human_input.FREEFORM:
        return await end(chat, [])
    for agent in (*wish.names.values(), *(wish.agents or ())):
        chat.known(agent)
    body: dict[str, Any] = human_input.mode_fields(wish)
    await chat.ask("POST", "/mode", body)
    _done(chat, f"began {wish.mode}")
    return None


async def _running(chat: "Chat") -> SessionStatus:
    """Return the running mode, or raise with a hint on how to start one."""
    session = session_of(await chat.ask("GET", "/mode"))
    if not session.is_running:
        raise Refused(_NO_SESSION, _START)
    return session


def _done(chat: "Chat", text: str) -> None:
    """Print the outcome for a script; a person sees the room's own notice."""
    chat.roster.wake()
    if not chat.order.is_person:
        _report(chat, text)


async def end(chat: "Chat", words: list[str]) -> None:
    """End the running mode in an orderly way."""
    await _running(chat)
    await chat.ask("POST", "/mode", {"mode": human_input.FREEFORM})
    _done(chat, "back in freeform")


async def stop(chat: "Chat", words: list[str]) -> None:
    """Stop all running work immediately."""
    if words and words != ["all"]:
        raise BadInput(f"{words[0]!r} cannot be stopped", "/stop, /stop all or /interrupt AGENT")
    answer = await chat.ask("POST", "/stop", {"all": True} if words else {})
    stopped = field(answer, "stopped", list)
    if stopped:
        _done(chat, f"stopped {', '.join(map(str, stopped))}")
    else:
        _report(chat, _NOTHING)


async def next_turn(chat: "Chat", words: list[str]) -> None:
    """Pass the turn on."""
    await _running(chat)
    answer = await chat.ask("POST", "/turn/next", {})
    current = answer.get("currentTurn") if isinstance(answer, dict) else None
    _done(chat, f"it is the turn of {visible(str(current))}" if current else "that was the last turn")


async def steer(chat: "Chat", verb: str, words: list[str]) -> None:
    """Steer the running mode."""
    session = await _running(chat)
    if session.status != _BEFORE.get(verb, session.status):
        _report(chat, f"{visible(session.mode)} is {visible(session.status)} already")
        return
    body: dict[str, Any] = {}
    if words:
        body = {"agent": words[0]} if verb == "skip" else {"rounds": int(words[0])}
    await chat.ask("POST", f"/sessions/{segment(session.id)}/{verb}", body)
    _done(chat, f"{_STEERED[verb]} {session.mode}")


async def report(chat: "Chat", words: list[str]) -> None:
    """Run `csp report`."""
    lines = (await _csp(chat, "report", *(words[0].split() if words else ()))).splitlines()
    await chat.out.page(" ".join(["/report", *words]), [visible(line) for line in lines])


async def review(chat: "Chat", words: list[str]) -> None:
    """Run `csp review`."""
    try:
        args = shlex.split(words[0]) if words else []
    except ValueError as exc:
        raise BadInput(
            f"a quote is not closed: {exc}", "/review start 'GOAL' --builder a --reviewer b"
        ) from exc
    lines = (await _csp(chat, "review", *args)).splitlines()
    await chat.out.page(" ".join(["/review", *words]), [visible(line) for line in lines])


# --- other programs ------------------------------------------------------------------------------


async def export(chat: "Chat", words: list[str]) -> None:
    """Write the complete history to a new file, or into a folder."""
    path = chat.order.cwd / Path(words[0] if words else ".").expanduser()
    if path.is_dir():
        room = chat.order.address.room or "room"
        path /= time.strftime(f"csp-{room}-%Y%m%d-%H%M%S.md")
    if path.exists():
        raise Refused(f"{str(path)!r} already exists", "name a new one: /export FILE.md")
    text = await _csp(chat, "export", "--format", "json" if path.suffix == ".json" else "md")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        hint = "name another one: /export FILE.md"
        raise Refused(f"{str(path)!r} cannot be written: {(exc.strerror or '').lower()}", hint) from exc
    _report(chat, f"wrote {visible(str(path))}")


async def web(chat: "Chat", words: list[str]) -> None:
    """Print a one-time link to the room's page, and links for other machines if they can reach it."""
    for url in (await _csp(chat, "web", "--no-open")).split():
        chat.out.put(visible(url))


async def rooms(chat: "Chat", words: list[str]) -> None:
    """List the rooms on this machine."""
    answer = await _csp(chat, "rooms", room="")
    await chat.out.page("/rooms", [visible(line) for line in answer.splitlines()])


async def down(chat: "Chat", words: list[str]) -> None:
    """Stop the room, including this pane, once the user has confirmed."""
    if chat.order.is_person and words != [SURE]:
        text = "Stop the room with its panes, agents and gateway?"
        meant = human_input.CommandLine(name="down", rest=SURE)
        return chat.pose(yes_or_no(text, meant, "stop the room"))
    # It must outlive the pane that it ends.
    await _csp(chat, "down", is_apart=True)
    return None


async def _csp(chat: "Chat", verb: str, *words: str, is_apart: bool = False, room: str | None = None) -> str:
    """Run a csp command in this room; return its output, or raise its error."""
    name = chat.order.address.room if room is None else room
    of_room = ("--room", name) if name else ()
    # -P, because a folder named csp in the user's directory must not shadow our package.
    with FailurePipe() as pipe:
        argv = (sys.executable, "-P", "-m", "csp.cli", verb, *of_room, *words)
        code, out, said = await _run(chat, *argv, pipe=pipe, is_apart=is_apart)
        message, hint = pipe.read()
    if code:
        problem = one_line(message or said, 500) or f"csp {verb} failed with code {code}"
        raise Refused(problem, one_line(hint, 500))
    return out or said


async def _run(
    chat: "Chat", *command: str, pipe: FailurePipe | None = None, is_apart: bool = False
) -> tuple[int, str, str]:
    """Run a program without the terminal; return its exit code, stdout and stderr."""
    own = identity(chat.order.env) | (pipe.variables if pipe else {})
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=chat.order.cwd,
            # The user of the pane issues these commands, including those that start more agents.
            env=child_environment(USER, chat.order.env, own),
            pass_fds=(pipe.fd,) if pipe else (),
            start_new_session=is_apart,
        )
    except OSError as exc:
        raise Refused(f"{command[0]!r} cannot be run: {(exc.strerror or '').lower()}") from exc
    out, said = await process.communicate()
    return process.returncode or 0, out.decode("utf-8", "replace"), said.decode("utf-8", "replace")
