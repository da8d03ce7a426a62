"""Take part in the room as its human."""

import asyncio
import logging
import re
import sys
from pathlib import Path
from typing import Final

from csp.cli.arguments import takes
from csp.cli.output import is_terminal
from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.errors import BadInput, Forbidden
from csp.room_registry import running_rooms

_NO_TERMINAL: Final = ("", "dumb", "unknown")
_OTHER: Final = re.compile(r"[^a-z0-9-]+")


@takes(examples=("csp chat",))
def chat(call: VerbCall) -> int:
    """Open the human pane, or a plain line loop if there is no terminal to draw on."""
    from csp.client.client import owner_of
    from csp.human.chat import ChatOrder
    from csp.human.saved_state import SavedState
    from csp.human.theme import look_for

    address, env = call.address, process_environment()
    if (owner := owner_of(address.token)) is not None:
        problem = f"csp chat acts as the human, but this token belongs to {owner}"
        raise Forbidden(problem, "run it outside an agent's pane, or unset CSP_AGENT and CSP_AUTH_TOKEN")
    if sys.stdin is None or sys.stdout is None:
        raise BadInput("csp chat needs stdin and stdout, but one of them is closed")
    if not call.args.verbose:
        # A log record on stderr would appear in the pane.
        logging.getLogger().addHandler(logging.NullHandler())
    is_drawn = is_terminal(sys.stdin) and is_terminal(sys.stdout) and env.get("TERM", "") not in _NO_TERMINAL
    order = ChatOrder(
        address=address,
        memory=SavedState(memory_folder(call)),
        env=env,
        cwd=call.cwd,
        is_person=is_terminal(sys.stdin),
    )
    look = look_for(env, sys.stdout.encoding, is_terminal=is_terminal(sys.stdout))
    if is_drawn:
        from csp.human.chat_pane import run_pane

        return asyncio.run(run_pane(order, look))
    from csp.human.plain_chat import run_plain

    return asyncio.run(run_plain(order, look))


def memory_folder(call: VerbCall) -> Path:
    """Return the folder for the human pane's state: next to the history, or else named by address."""
    address, state_dir = call.address, call.settings.state_dir
    for room in running_rooms(state_dir):
        if room.url == address.url:
            return room.history / "human"
    # Not *.json, because those files announce running rooms.
    return state_dir / f"{_OTHER.sub('-', address.url.lower()).strip('-')[:80]}.human"
