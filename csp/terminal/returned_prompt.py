"""Recognise one of our prompts that a CLI has put back into its composer, because its turn was stopped.

Such a text must be removed, or it would be submitted with the next message; a person's draft must stay. A
CLI may show the whole prompt, or collapse it into a marker such as `[Pasted text #8 +16 lines]`. A marker
does not name its prompt. It is ours if it has as many line breaks, and if the person has inserted nothing
since we pasted the prompt: a person who only types cannot produce a marker.
"""

import math
import re
from collections.abc import Iterable

import msgspec

from csp.terminal.gates import DraftTracker
from csp.terminal.prompt_builder import tag_at_end, tag_in, tags_in


class PastedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a prompt of ours that its marker can be compared with."""

    tag: str
    line_breaks: int
    pasted_at: float


def returned_tag(
    text: str,
    marker: re.Pattern[str] | None,
    pasted: Iterable[PastedPrompt],
    keys: DraftTracker,
    *,
    stopped_at: float,
) -> str | None:
    """Return the tag of our prompt if it is all of the composer's `text`, or None if that may be a draft.

    `pasted` are the prompts of the turn that was stopped at `stopped_at`; only they can be behind a marker.
    """
    if keys.last_edit is not None and keys.last_edit > stopped_at:
        return None
    found = marker.fullmatch(" ".join(text.split())) if marker is not None else None
    if found is not None:
        breaks = found.groupdict().get("breaks")
        inserted = -math.inf if keys.last_insert is None else keys.last_insert
        is_ours = (each for each in pasted if each.pasted_at > inserted)
        return next((each.tag for each in is_ours if str(each.line_breaks) == breaks), None)
    # The header may have scrolled off the top of the composer. If it is shown, nothing may be above it.
    return tag_in(text) or (None if tags_in(text) else tag_at_end(text))
