"""Take apart what a mode asks of an agent in its turn.

Such a prompt has parts in a fixed order: who you are, the goal, what the others hold or propose, what was
said last, what to do now. What agents wrote may look like the head of a part, so parts only follow each other
in that order.
"""

import re
from dataclasses import dataclass, field
from typing import Final

_NAME: Final = r"[a-z0-9][a-z0-9-]{0,31}"
#: The heads of the parts, in the order in which they come.
_HEADS: Final = {
    "goal": re.compile(
        r"(?:Topic|Question|(?:Goal|Task), in the words of [^\n]{1,60}|Answer this request from the room):"
    ),
    "positions": re.compile(r"The last (?:positions of the others|word of each):"),
    "proposals": re.compile(r"Proposal [A-Z]{1,2}:"),
    "window": re.compile(r"What (?:was|people have) said [^\n]{1,80}:"),
}
_ORDER: Final = ("intro", *_HEADS)
_PROPOSAL: Final = re.compile(r"^Proposal (?P<label>[A-Z]{1,2}):$", re.MULTILINE)
_POSITION: Final = re.compile(rf"^(?P<name>{_NAME}) said:$", re.MULTILINE)
_ITEM: Final = re.compile(rf"(?:\A|\n\n)(?P<name>{_NAME})(?: -> (?P<to>{_NAME}))?: ")
_VOTE_AGAIN: Final = re.compile(
    r"\AYour answer has no vote that can be counted\.[^\n]* one of (?P<labels>[A-Z, ]+):"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The parts of a prompt: pairs of a name or label with a text; `todo` is what to do now."""

    intro: str
    goal: str = ""
    is_request: bool = False
    positions: tuple[tuple[str, str], ...] = ()
    proposals: tuple[tuple[str, str], ...] = ()
    items: tuple[tuple[str, str], ...] = field(default=())
    task: str = ""
    todo: str = ""


def take_apart(body: str, me: str) -> Asked | None:
    """Return the parts of a prompt, None for one that no mode has written."""
    again = _VOTE_AGAIN.match(body)
    if again:
        labels = re.findall(r"[A-Z]+", again["labels"])
        return Asked(intro=again[0], proposals=tuple((label, "") for label in labels))
    parts, heads = _parts(body)
    if "goal" not in parts or "window" not in parts:
        return None
    window, _, todo = _without_shape(parts["window"]).rpartition("\n\n")
    if not window:
        window, todo = todo, ""
    said = _blocks(_ITEM, window)
    return Asked(
        intro=parts["intro"],
        goal=parts["goal"],
        is_request=heads["goal"].startswith("Answer this request"),
        positions=tuple(
            (found["name"], text) for found, text in _blocks(_POSITION, parts.get("positions", ""))
        ),
        proposals=tuple(
            (found["label"], text) for found, text in _blocks(_PROPOSAL, parts.get("proposals", ""))
        ),
        items=tuple((found["name"], text) for found, text in said if found["name"] != "router"),
        task=next(
            (text for found, text in reversed(said) if found["name"] == "router" and found["to"] == me), ""
        ),
        todo=todo,
    )


def _parts(body: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text of each part with its head."""
    lines: dict[str, list[str]] = {"intro": []}
    heads: dict[str, str] = {}
    now = "intro"
    for line in body.split("\n"):
        later = _ORDER[_ORDER.index(now) + 1 :]
        following = next((name for name in later if _HEADS[name].fullmatch(line)), "")
        # The goal comes first of all.
        if following and (following == "goal" or "goal" in heads):
            now, heads[following], lines[following] = following, line, []
            if now != "proposals":
                continue
        lines[now].append(line)
    return {name: "\n".join(found).strip() for name, found in lines.items()}, heads


def _without_shape(text: str) -> str:
    """Return a text without its last paragraph, which says in which shape to answer."""
    return text.rpartition("\n\n")[0]


def _blocks(head: re.Pattern[str], text: str) -> list[tuple[re.Match[str], str]]:
    """Return each head with the text up to the next one."""
    found = list(head.finditer(text))
    ends = [*(one.start() for one in found[1:]), len(text)]
    blocks = [(one, text[one.end() : end].strip()) for one, end in zip(found, ends, strict=False)]
    return [(one, words) for one, words in blocks if words]
