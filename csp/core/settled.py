"""What a program has written between two looks at its output."""

import re
from difflib import SequenceMatcher


def settled_text(before: list[str], after: list[str], furniture: re.Pattern[str] | None = None) -> str:
    """Give the lines that `after` has and `before` had not, in order, without furniture or blank ends."""
    start = _common(before, after)
    old, new = before[start:], after[start:]
    added: list[str] = []
    for tag, _, _, low, high in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("insert", "replace"):
            added.extend(new[low:high])
    lines = [line.rstrip() for line in added if not (furniture and furniture.search(line))]
    return "\n".join(lines).strip("\n")


def _common(before: list[str], after: list[str]) -> int:
    """Count the lines that both begin with; they are most of a long history."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return count
