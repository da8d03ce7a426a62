"""Make out what a prompt asks for, however it is worded.

A prompt comes between our first line, such as `[from human #418]` or `[YOUR TURN #t-17]`, and our last,
`[end #418]`. What others have said may stand in it as `codex: text`, `- codex said: "text"` or below a
heading `## codex`; the options of a ballot as `[A] text`, `A: text` or `A) text`. Prompts of our own modes
are taken apart exactly, see csp.agents.demo.turn_parser.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from csp.agents.demo.turn_parser import Asked, take_apart

_HEADER: Final = re.compile(
    r"\[(?:from (?P<sender>[a-z0-9-]{1,32})|(?P<turn>YOUR TURN)) #[^\]\s]{1,128}\][ \t]*"
)
_FOOTER: Final = re.compile(r"\n?\[end #[^\]\n]{1,800}\]\s*\Z")

_NAME: Final = r"[A-Za-z][A-Za-z0-9-]{1,31}"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
_BULLET: Final = r"[ \t]{0,3}(?:[-*+>•]|\d{1,3}[.)])?[ \t]*"
_NUMBER: Final = r"(?:\[?#?[ms]?-?\d{1,9}\]?[ \t]+)?"
_SPEAKER: Final = rf"(?:\*\*|`|@)?(?P<name>{_NAME})(?:\*\*|`)?"
#: `codex: text`, `- codex said: "text"`, `**codex** (round 1): text`, `[#12] codex -> ada: text`
_SAID: Final = re.compile(
    rf"{_BULLET}{_NUMBER}{_SPEAKER}[ \t]*(?:(?:->|→|to)[ \t]*@?{_NAME})?[ \t]*(?:\([^)\n]{{0,60}}\))?"
    r"[ \t]*(?:said|says|wrote|writes|argued|argues|thinks|proposed|proposes|replied)?:(?:\*\*)?"
    r"(?:[ \t]+(?P<text>.*)|[ \t]*)\Z"
)
_HEADING: Final = re.compile(
    rf"#{{1,6}}[ \t]+{_SPEAKER}(?:['’]s)?(?:[ \t]+(?:position|proposal|said|says|wrote))?"
    r"[ \t]*(?:\([^)\n]{0,60}\))?:?[ \t]*\Z"
)
_ANY_HEADING: Final = re.compile(r"#{1,6}[ \t]|-{3,}[ \t]*\Z|\[[A-Z][A-Z ]+")
#: Words that stand before a colon, or in a heading, without being anybody's name.
_NOT_NAMES: Final = frozenset(
    (
        *("topic", "goal", "task", "phase", "round", "rounds", "mode", "step", "steps"),
        *("participants", "agents", "others", "rules", "rule", "note", "notes", "reason", "vote"),
        *("votes", "turn", "turns", "window", "context", "position", "positions", "proposal"),
        *("proposals", "ballot", "options", "option", "question", "answer", "answers", "example"),
        *("examples", "history", "summary", "synthesis", "digest", "instructions", "reply"),
        *("replies", "format", "message", "messages", "you", "your", "final", "handoff", "http"),
        *("https", "from", "to", "all", "with", "by", "time", "status", "result", "winner"),
        *("system", "router", "csp", "csp-router", "none", "user", "and", "or", "so", "now", "then", "here"),
        *("also", "remember", "important", "please", "warning"),
    )
)
_NOT_AGENTS: Final = frozenset(("human", "all", "orchestrator", "conductor"))

_OPTION: Final = re.compile(
    rf"{_BULLET}(?:\*\*)?(?:[Oo]ption[ \t]+)?"
    r"(?:\[(?P<a>[A-Z])\](?:\*\*)?:?|(?P<b>[A-Z])(?:[:).](?:\*\*)?|\*\*[:).]))[ \t]+(?P<text>\S.*)\Z"
)
_OPTION_HEADING: Final = re.compile(
    r"#{1,6}[ \t]+(?:[Oo]ption[ \t]+)?\[?(?P<a>[A-Z])\]?[:.)]?[ \t]*(?P<text>.*)\Z"
)
_VOTE_ASKED: Final = re.compile(r"VOTE:[ \t]*\[?[ \t]*(?P<labels>[A-Z](?:[ \t]*[/|,][ \t]*[A-Z])*)?")

_TOPIC: Final = re.compile(
    r"^[ \t>*_-]*(?:topic|goal|question|task|subject|debate|consensus|proposal)\b"
    r"[ \t*_]*(?::|[ \t]—|[ \t]-[ \t])[ \t*_]*(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTED_TOPIC: Final = re.compile(
    r"\b(?:on|about|topic|debate|consensus|goal)\b[^\n\"“]{0,30}[\"“](?P<text>[^\"”\n]{3,200})[\"”]"
)
_LISTED: Final = re.compile(
    r"^[ \t>*_-]*(?:participants|agents|others|you (?:can|may) hand (?:off|over) to|hand (?:off|over) to|"
    r"with you|in the room)\b[^:\n]{0,40}:[ \t*_]*(?P<names>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_LISTED_BELOW: Final = re.compile(
    r"^[ \t>*_#-]*(?:participants|agents|in the room)\b[^:\n]{0,40}:?[ \t*_]*\n\n?"
    r"(?P<names>(?:[ \t]*[-*•][ \t]+.*(?:\n|\Z))+)",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST_NAME: Final = re.compile(r"^[ \t]*[-*•][ \t]+[`*@]{0,3}([a-z0-9][a-z0-9-]{0,31})\b", re.MULTILINE)
_ROUND: Final = re.compile(
    r"\b(?:round|step|turn):?[ \t]*#?(?P<n>\d{1,6})(?:[ \t]*(?:of|/)[ \t]*(?P<m>\d{1,6}))?", re.IGNORECASE
)

_KINDS: Final = re.compile(
    r"(?P<synthesis>synthes|summar)|(?P<digest>\bdigest\b|\bwoken\b|\bwake\b)"
    r"|(?P<proposal>\bconsensus\b|\bproposals?\b|\bpropose\b)"
    r"|(?P<position>\bdebate\b|\bpositions?\b|\brebut)"
    r"|(?P<work>\bcollaborat|\bautopilot\b|\bround.robin\b|\borchestrator\b|hand ?(?:off|over)\b)",
    re.IGNORECASE,
)
_SYNTHESIS_ASKED: Final = re.compile(
    r"\bphase\W{1,5}synthes|^synthesi[sz]e\b|\b(?:write|give|make|your)\b[^.\n]{0,40}\b(?:synthes|summar)",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK: Final = re.compile(r"\n[ \t]*\n")
#: How the prompts of the modes introduce those who could go on.
_OTHERS: Final = re.compile(r"(?:Also taking part|You can ask): (?P<names>[a-z0-9, -]+)\.")


_DIGEST: Final = re.compile(r"\W{0,4}digest\b|\[CSP: ", re.IGNORECASE)


class Kind(StrEnum):
    """What a prompt wants to have."""

    TALK = "talk"
    POSITION = "position"
    PROPOSAL = "proposal"
    REBUTTAL = "rebuttal"
    VOTE = "vote"
    WORK = "work"
    LEAD = "lead"
    SYNTHESIS = "synthesis"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one participant has said, as the prompt has it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A prompt as it was understood; `others` are participants that work could be handed to."""

    kind: Kind
    text: str
    me: str
    sender: str = ""
    topic: str = ""
    said: tuple[Said, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    round: int | None = None
    last_round: int | None = None
    is_autopilot: bool = False
    is_turn: bool = False
    #: What somebody else has asked this participant to do next.
    task: str = ""
    can_hand_over: bool = True
    can_finish: bool = True

    @property
    def theirs(self) -> tuple[Said, ...]:
        """What the others have said."""
        return tuple(one for one in self.said if one.name != self.me)


_INTROS: Final = {
    "You write its synthesis": Kind.SYNTHESIS,
    "look for a common solution": Kind.PROPOSAL,
    "You lead a session": Kind.LEAD,
}


def hear(prompt: str, me: str) -> Heard:
    """Return what `prompt` asks of the participant `me`; never raise."""
    header = _HEADER.match(prompt)
    body = prompt[header.end() :] if header else prompt
    body = _FOOTER.sub("", body.strip("\n")) if header else body.strip()
    is_turn = bool(header and header["turn"])
    asked = take_apart(body, me) if is_turn else None
    return (
        _asked(asked, body, me)
        if asked
        else _guessed(body, me, header["sender"] or "" if header else "", is_turn=is_turn)
    )


def _asked(asked: Asked, body: str, me: str) -> Heard:
    """Return what a mode asks for."""
    kind = _kind_asked(asked)
    others = _OTHERS.search(asked.intro)
    counted = _ROUND.search(asked.intro)
    is_autopilot = "(Autopilot)" in asked.intro
    return Heard(
        kind=kind,
        text=asked.goal if kind is Kind.TALK else body,
        me=me,
        topic=asked.goal,
        said=tuple(Said(name=name, text=text) for name, text in (*asked.positions, *asked.items)),
        options=asked.proposals,
        others=tuple(others["names"].split(", ")) if others else (),
        round=int(counted["n"]) if counted else None,
        last_round=int(counted["m"]) if counted and counted["m"] else None,
        is_autopilot=is_autopilot,
        is_turn=True,
        task=asked.task,
        can_hand_over="hand over to" in asked.todo.lower(),
        can_finish="final" in asked.todo or is_autopilot,
    )


def _kind_asked(asked: Asked) -> Kind:
    if asked.proposals:
        return Kind.VOTE
    if asked.is_request:
        return Kind.TALK
    for words, kind in _INTROS.items():
        if words in asked.intro:
            return kind
    if "in a debate" in asked.intro:
        return Kind.REBUTTAL if asked.positions else Kind.POSITION
    return Kind.WORK


def _guessed(body: str, me: str, sender: str, *, is_turn: bool) -> Heard:
    """Return what a prompt asks for that somebody else may have written."""
    listed = _participants(body)
    # In a list of the participants stands what they are, not what they say.
    said, rest = _speeches(_LISTED_BELOW.sub("\n", body), listed)
    theirs = tuple(one for one in said if one.name != me)
    options = _options(body) if _VOTE_ASKED.search(body) else ()
    counted = _ROUND.search(rest)
    return Heard(
        kind=_kind(rest, theirs, options, is_turn=is_turn, has_others=bool(listed)),
        text=body,
        me=me,
        sender=sender,
        topic=_topic(body, rest),
        said=said,
        options=options,
        others=tuple(name for name in listed if name != me and name not in _NOT_AGENTS),
        round=int(counted["n"]) if counted else None,
        last_round=int(counted["m"]) if counted and counted["m"] else None,
        is_autopilot="autopilot" in rest.lower(),
        is_turn=is_turn,
    )


def _kind(
    rest: str,
    said: tuple[Said, ...],
    options: tuple[tuple[str, str], ...],
    *,
    is_turn: bool,
    has_others: bool,
) -> Kind:
    if options:
        return Kind.VOTE
    if not is_turn:
        return Kind.DIGEST if _DIGEST.match(rest) else Kind.TALK
    if _SYNTHESIS_ASKED.search(rest):
        return Kind.SYNTHESIS
    found = _KINDS.search(rest)
    asked = Kind(str(found.lastgroup)) if found else Kind.WORK if has_others else Kind.POSITION
    if asked in (Kind.POSITION, Kind.PROPOSAL) and _agents_among(said):
        return Kind.REBUTTAL
    return asked


def _agents_among(said: tuple[Said, ...]) -> tuple[Said, ...]:
    return tuple(one for one in said if one.name not in _NOT_AGENTS)


# --- who is there, what is it about --------------------------------------------------------------


def _participants(body: str) -> tuple[str, ...]:
    words = [word for line in _LISTED.finditer(body) for word in re.split(r"[\s,;]+", line["names"])]
    for block in _LISTED_BELOW.finditer(body):
        words += _FIRST_NAME.findall(block["names"])
    names = (word.strip("`*@.()[]\"'").lower() for word in words)
    return tuple(dict.fromkeys(name for name in names if _ID.fullmatch(name) and name not in _NOT_NAMES))


def _topic(body: str, rest: str) -> str:
    found = _TOPIC.search(body) or _QUOTED_TOPIC.search(body)
    if found:
        return found["text"].strip(' \t*_"“”')
    lines = [line.strip(" \t#*>-") for line in rest.splitlines()]
    return next((line for line in lines if len(line.split()) >= 2), body.strip()[:200])


# --- what was said -------------------------------------------------------------------------------


def _speeches(body: str, listed: tuple[str, ...]) -> tuple[tuple[Said, ...], str]:
    """Return what others have said, with all that is left of the text without it."""
    said: list[Said] = []
    rest: list[str] = []
    lines = body.split("\n")
    at = 0
    while at < len(lines):
        name, first, is_below = _speaker(lines[at], listed)
        if not name:
            rest.append(lines[at])
            at += 1
            continue
        end = _end_of_speech(lines, at + 1, listed, is_long=is_below)
        text = "\n".join([*([first] if first else []), *lines[at + 1 : end]]).strip()
        if text:
            said.append(Said(name=name, text=_unquoted(text)))
        at = end
    return tuple(said), "\n".join(rest)


def _speaker(line: str, listed: tuple[str, ...]) -> tuple[str, str, bool]:
    """Return who speaks in a line, the first words, whether the rest is below; no name where nobody does."""
    heading = _HEADING.match(line)
    found = heading or _SAID.match(line)
    if not found:
        return "", "", False
    name = found["name"]
    is_name = name.lower() in listed or (name == name.lower() and name not in _NOT_NAMES)
    if not is_name:
        return "", "", False
    text = "" if heading else (found["text"] or "")
    return name.lower(), text, not text


def _end_of_speech(lines: list[str], at: int, listed: tuple[str, ...], *, is_long: bool) -> int:
    """Return the line after a speech: one below a heading goes on over blank lines, another does not."""
    while at < len(lines):
        line = lines[at]
        if _speaker(line, listed)[0] or _ANY_HEADING.match(line) or (_is_over(line) and not is_long):
            break
        if not line.strip() and is_long and _is_over(lines[at + 1] if at + 1 < len(lines) else ""):
            break
        at += 1
    return at


def _is_over(line: str) -> bool:
    """Tell whether a line cannot go on with a speech: it is blank, or it asks for something."""
    return not line.strip() or bool(_TOPIC.match(line) or _LISTED.match(line) or _VOTE_ASKED.match(line))


def _unquoted(text: str) -> str:
    for first, last in ('""', "“”"):
        if text.startswith(first) and text.endswith(last) and len(text) > 1:
            return text[1:-1].strip()
    return text


# --- ballots -------------------------------------------------------------------------------------


def _options(body: str) -> tuple[tuple[str, str], ...]:
    """Return what may be voted for, as labels with texts; only what the request names, if it names some."""
    found: dict[str, str] = {}
    for label, text in _option_lines(body):
        found.setdefault(label, text)
    asked = [re.findall(r"[A-Z]", ask["labels"]) for ask in _VOTE_ASKED.finditer(body) if ask["labels"]]
    named = next((labels for labels in asked if len(labels) > 1), [])
    if not found:
        return tuple((label, "") for label in dict.fromkeys(named))
    if set(named) & set(found):
        found = {label: text for label, text in found.items() if label in named}
    return tuple(found.items())


def _option_lines(body: str) -> Iterator[tuple[str, str]]:
    label, parts = "", list[str]()
    for line in [*body.split("\n"), ""]:
        found = _OPTION.match(line) or _OPTION_HEADING.match(line)
        is_end = _VOTE_ASKED.search(line) is not None or (not line.strip() and any(parts))
        if (found or is_end) and label:
            yield label, " ".join(parts).strip()
            label, parts = "", []
        if found:
            groups = found.groupdict()
            label, parts = groups["a"] or groups.get("b") or "", [groups["text"].strip()]
        elif label:
            parts.append(line.strip())


def first_paragraph(text: str) -> str:
    """Return the part of a text in which somebody says what he has to say."""
    return _BLANK.split(text.strip(), maxsplit=1)[0]
