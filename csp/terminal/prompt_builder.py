"""Build the text that is typed into a CLI for one message.

Its first and last lines are ours, so that no sender's text can act as a shell or slash command, a path
to complete, or the continuation of a line. The tag in both lines is used to find the prompt in the composer,
to match it with the CLI's own record, and to assign the reply.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver

PASTE_START: Final = b"\x1b[200~"
PASTE_END: Final = b"\x1b[201~"

#: CSI sequences, strings such as OSC or DCS with their end, and designations of character sets.
_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|\x1b[()*+\-./#%][0-~]"
)
#: Line breaks other than a newline. Deleting them would join the words on both sides.
_BREAKS: Final = re.compile(r"\r\n|[\r\x0b\x0c\x85]")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TAG: Final = r"(?P<tag>[A-Za-z0-9._:+=-]{1,128})"
#: How our own prompts quote commands for the reply. A character after the `@` would be copied too, and the
#: copy would not be a command; no CLI acts on text in backticks.
_SHOWN: Final = re.compile(r"(?<=`)@(?=(?:handoff\.NAME task|final|working)`)")
#: A path after an `@`, as far as any CLI reads one: a quoted path may contain spaces.
_PATH: Final = re.compile(r"@(?:\"[^\"]*\"?|\\.|[^\s\"])*", re.DOTALL)
#: The position between the dots of a `..` in it; each dot may be escaped.
_WAY_BACK: Final = re.compile(r"(?<=[/\\])\.(?=\\?\.)")
#: The start of a line that looks like our header or footer.
_LIKE_OURS: Final = re.compile(r"^(?=[ \t]{0,8}\[(?:from [^\]\n]{0,80}|YOUR TURN|end) ?#)", re.MULTILINE)
_HEADER: Final = re.compile(rf"\[(?:from [a-z0-9-]{{1,32}}|YOUR TURN) #{_TAG}\]")
_FOOTER: Final = re.compile(rf"\[end #{_TAG}(?:; here: [^\]]*)?\]\s*\Z")
#: Anywhere but in a quotation: a person may have typed something in front of our prompt.
_HEADERS: Final = re.compile(rf"(?<!> ){_HEADER.pattern}")


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The text typed for one message: its tag, the whole text, and its first and last lines."""

    tag: str
    header: str
    footer: str
    text: str

    @property
    def end(self) -> str:
        """Return the start of the last line, which does not depend on the news in that line."""
        return f"[end #{self.tag}"

    def keys(self, *, is_pasted: bool) -> bytes:
        """Return the bytes to write; without bracketed paste a line break would submit a part."""
        if not is_pasted:
            return " ".join(self.text.split()).encode() if "\n" in self.text else self.text.encode()
        # A terminal sends a pasted line break as a carriage return.
        return PASTE_START + self.text.replace("\n", "\r").encode() + PASTE_END


def prompt_for(item: Deliver, *, after_at: str = "", here: Sequence[str] = ()) -> Prompt:
    """Return the prompt for `item`; `after_at` is inserted after each `@` that a CLI would act on.

    The last line names the other agents in `here`, if that is news.
    """
    tag = tag_of(item)
    header = f"[YOUR TURN #{tag}]" if item.kind is DeliverKind.TURN else f"[from {item.sender} #{tag}]"
    # Quote lines that look like our header or footer, so that no text can pose as another message.
    body = _LIKE_OURS.sub("> ", without_controls(item.text))
    if after_at:
        kept = {found.start() for found in _SHOWN.finditer(body)} if item.kind is DeliverKind.TURN else set()
        # The sign turns the first name of a path into a nonexistent one. A `..` after it would remove that
        # name again, so the dots are separated too.
        places = {at + 1 for at, char in enumerate(body) if char == "@" and at not in kept}
        for path in _PATH.finditer(body):
            places |= {path.start() + found.end() for found in _WAY_BACK.finditer(path[0])}
        signed = (after_at + char if at in places else char for at, char in enumerate(f"{body}\n"))
        body = "".join(signed)[:-1]
    footer = f"[end #{tag}; here: {', '.join(here)}]" if here else f"[end #{tag}]"
    return Prompt(tag=tag, header=header, footer=footer, text=f"{header}\n{body}\n{footer}")


def tag_of(item: Deliver) -> str:
    """Return the text after the # in the header of `item`."""
    return item.turn if item.kind is DeliverKind.TURN and item.turn else str(item.seq)


def tag_in(text: str) -> str | None:
    """Return the tag of one of our prompts, or None if somebody else wrote the text."""
    found = _HEADER.match(text)
    return found["tag"] if found else None


def tag_at_end(text: str) -> str | None:
    """Return the tag of one of our prompts, even if only its end is visible."""
    found = _FOOTER.search(text)
    return found["tag"] if found else None


def tags_in(text: str) -> tuple[str, ...]:
    """Return the tags of all our prompts in a text that a CLI has accepted as one prompt, in order.

    A CLI may join prompts that are entered while it starts, and a person may submit our prompt together with
    a draft. Except at the very start, a prompt of ours only counts if it is complete, with its last line.
    """
    found = list(_HEADERS.finditer(text))
    tags: dict[str, None] = {}
    for match, end in zip(found, [*(match.start() for match in found[1:]), len(text)], strict=False):
        at = text.find(f"[end #{match['tag']}", match.end(), end)
        before = text[at - 1] if at > 0 else ""
        is_on_a_line = text[: match.start()][-1:] in ("", "\n")
        if match.start() == 0 or before == "\n" or (before.isspace() and is_on_a_line):
            tags[match["tag"]] = None
    return tuple(tags)


def without_controls(text: str) -> str:
    """Return `text` without escape sequences or control characters, with newlines as the only line breaks.

    Otherwise the rest of a text that contains an end-of-paste sequence would be typed as keys.
    """
    return _CONTROLS.sub("", _BREAKS.sub("\n", _SEQUENCES.sub("", text)))
