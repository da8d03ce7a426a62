"""The output of the human pane's commands."""

import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from csp.errors import BadInput
from csp.http_client import Object, field, note_path, objects
from csp.human.command_actions import item_at
from csp.human.delivery_ticks import why_held
from csp.human.event_lines import END_WORDS, history_lines, is_part_of_message, said_line, spoken_in
from csp.human.needs import list_lines
from csp.human.safe_text import columns, count, minutes, one_line, visible, wrapped
from csp.human.status_bar import session_text
from csp.human.status_lines import agent_row, models_of, rule_lines, spent_lines, vote_lines
from csp.session_status import SessionStatus, bracketed, session_of

if TYPE_CHECKING:
    from csp.human.chat import Chat

_HISTORY: Final = 20
_MAX_PAGE: Final = 1000
_DETAIL: Final = 80
_TEXT: Final = 60
_NOTE: Final = 200
_BOARD_FORM: Final = "/board [add TEXT | search WORDS | summarise AGENT | NOTE]"
_BOARD_WORDS: Final = {"add": "what to write", "search": "what to look for", "summarise": "who writes it"}


async def agents(chat: "Chat", words: list[str]) -> None:
    """List the agents with what each does."""
    session, usage = session_of(await chat.ask("GET", "/mode")), await chat.ask("GET", "/usage")
    lines = _agent_lines(await chat.agents(), session, usage)
    await chat.out.page("/agents", lines)


def _agent_lines(found: list[Object], session: SessionStatus, usage: object) -> list[str]:
    if not found:
        return ["no agents yet; start one with /add NAME -- COMMAND"]
    words = [session.word_for(field(item, "id", str), field(item, "state", str)) for item in found]
    models = models_of(usage)
    rows = [
        list(
            map(
                visible,
                agent_row(
                    item, bracketed(word).replace("_", " "), _DETAIL, models.get(str(item.get("id")), "")
                ),
            )
        )
        for item, word in zip(found, words, strict=True)
    ]
    return columns(rows)


async def status(chat: "Chat", words: list[str]) -> None:
    """Show the mode, the current turn, the agents and their usage."""
    answer = await chat.ask("GET", "/mode")
    session = session_of(answer)
    topic = answer.get("topic") if isinstance(answer, dict) else None
    lines: list[str] = []
    if session.is_running:
        lines.append(session_text(session, chat.look.signs, time.time()))
        if topic:
            lines.append(f"  topic: {visible(one_line(str(topic), 300))}")
        phase = f"{visible(session.phase)}, " if session.phase else ""
        lines.append(f"  {phase}waiting for {visible(', '.join(session.waiting_for)) or 'nobody'}")
    else:
        ended = answer.get("reason") if isinstance(answer, dict) else None
        why = END_WORDS.get(str(ended), str(ended))
        lines.append("no mode is running" + (f" (the last one: {visible(why)})" if ended else ""))
    if not words:
        usage = await chat.ask("GET", "/usage")
        lines += _agent_lines(await chat.agents(), session, usage)
        lines += spent_lines(usage)
    await chat.out.page("/status", lines)


async def queue(chat: "Chat", words: list[str]) -> None:
    """Show undelivered messages, with reasons."""
    lines = []
    for item in objects(field(await chat.ask("GET", "/queue"), "items", list)):
        agent, state = field(item, "agent", str), field(item, "state", str)
        reason = str(item.get("reason") or "")
        why = why_held(reason, agent) if reason else state
        age = minutes(time.time() - field(item, "at", float))
        head = f"#{item.get('seq')} {field(item, 'sender', str)} to {agent}, {age}"
        lines.append(visible(f"{head}: {why}: {one_line(field(item, 'text', str), _TEXT)}"))
    await chat.out.page("/queue", lines or ["no queued messages"])


async def needs(chat: "Chat", words: list[str]) -> None:
    """List the items that need the user, with the commands that answer each."""
    await chat.needs.look()
    lines = [row for line in list_lines(chat.look, chat.needs.items) for row in line.split("\n")]
    await chat.out.page("/needs", lines)


async def rules(chat: "Chat", words: list[str]) -> None:
    """List the commands that agents may run without approval."""
    items = objects(field(await chat.ask("GET", "/rules"), "items", list))
    lines = rule_lines(items) or ["no rules yet; /allow AGENT COMMAND adds one"]
    await chat.out.page("/rules", [visible(line) for line in lines])


async def history(chat: "Chat", words: list[str]) -> None:
    """Show the newest messages, from one agent if given."""
    numbers = [int(word) for word in words if word.isascii() and word.isdigit()]
    named = [chat.known(word) for word in words if not (word.isascii() and word.isdigit())]
    limit = max(1, min(numbers[0], _MAX_PAGE)) if numbers else _HISTORY
    found = await chat.page(limit=limit, agent=named[0] if named else None)
    await _show_items(chat, " ".join(["/history", *words]), found, "no messages yet")


async def search(chat: "Chat", words: list[str]) -> None:
    """Find messages that contain a text."""
    found = await chat.page(q=words[0], limit=_HISTORY)
    await _show_items(chat, f"/search {words[0]}", found, f"no messages match {words[0]!r}")


async def _show_items(chat: "Chat", title: str, items: list[dict[str, Any]], nothing: str) -> None:
    items = [item for item in items if not is_part_of_message(item)]
    lines = [row for line in history_lines(chat.look, items) for row in line.split("\n")]
    end = chat.look.faint(f"--- {count(len(items), 'message')} ---") if items else visible(nothing)
    await chat.out.page(visible(title), [*lines, end])


async def show(chat: "Chat", words: list[str]) -> None:
    """Show a full message."""
    number = words[0].removeprefix("#").removeprefix("m-") if words else ""
    if words and not (number.isascii() and number.isdigit()):
        raise BadInput(f"expected the number of a message, got {words[0]!r}", "/show 12")
    if words:
        item = await item_at(chat, int(number))
    else:
        found = [item for item in await chat.page(limit=200) if item.get("type") != "system"]
        # The last long message, which was folded.
        long = [item for item in found if f"/show {item.get('seq')}" in said_line(chat.look, spoken_in(item))]
        item = max(long or found, key=lambda item: item.get("seq") or 0, default={})
    if not item:
        raise BadInput("no messages yet", "/show 12")
    lines = said_line(chat.look, spoken_in(item), is_whole=True).split("\n")
    await chat.out.page(f"/show {item.get('seq')}", lines)


async def votes(chat: "Chat", words: list[str]) -> None:
    """Show the tally, the proposals and the reasons, as far as they are unsealed."""
    answer = await chat.ask("GET", "/mode")
    lines = vote_lines(answer if isinstance(answer, dict) else {})
    await chat.out.page("/votes", [wrapped(line, 0, chat.look.columns()) for line in lines])


async def board(chat: "Chat", words: list[str]) -> None:
    """Show the newest whiteboard notes or a single one, or add, search or summarise notes."""
    form, _, rest = (words[0] if words else "").partition(" ")
    form, rest = (rest.strip(), "") if form == "show" else (form, rest.strip())
    if form in _BOARD_WORDS and not rest:
        raise BadInput(f"expected {_BOARD_WORDS[form]}", _BOARD_FORM)
    if form == "add":
        answer = await chat.ask("POST", "/board", {"text": rest})
        chat.out.put(visible(f"wrote {field(field(answer, 'note', dict), 'id', str)}"))
    elif form == "search":
        answer = await chat.ask("GET", f"/board/search?q={quote(rest)}")
        notes = [field(hit, "note", dict) for hit in objects(field(answer, "items", list))]
        await _show_notes(chat, f"/board search {rest}", notes, f"no notes match {rest!r}")
    elif form == "summarise":
        answer = await chat.ask("POST", "/board/summarise", {"by": rest})
        many = len(field(answer, "stands_for", list))
        chat.out.put(visible(f"{field(answer, 'by', str)} was asked to sum up {many} notes"))
    elif form:
        note = await chat.ask("GET", note_path(form))
        text = visible(f"{_note_head(note)}: {field(note, 'text', str)}")
        await chat.out.page(f"/board {form}", wrapped(text, 0, chat.look.columns()).split("\n"))
    else:
        notes = objects(field(await chat.ask("GET", f"/board?limit={_HISTORY}"), "items", list))
        await _show_notes(chat, "/board", notes, "the board is empty; /board add TEXT writes on it")


async def _show_notes(chat: "Chat", title: str, notes: list[Object], nothing: str) -> None:
    lines = [f"{_note_head(note)}: {one_line(field(note, 'text', str), _NOTE)}" for note in notes]
    await chat.out.page(visible(title), [visible(line) for line in lines or [nothing]])


def _note_head(note: Object) -> str:
    kind = "" if note.get("kind") == "note" else f" ({note.get('kind')})"
    return f"{note.get('id')} {note.get('session')} {note.get('author')}{kind}"
