"""Complete agents, commands and arguments in the input line."""

from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples

from csp.human.safe_text import one_line
from csp.protocol import catalogue
from csp.protocol.catalogue import ArgumentKind
from csp.protocol.enums import ALL
from csp.room.human_input import MODE, MODE_NUMBERS, MODE_OPTIONS, ROUTER
from csp.room.sessions.modes import mode_names
from csp.terminal.pane_layout import LayoutName


def completions(text: str, agents: list[str]) -> list[tuple[str, str]]:
    """Return the possible replacements for the last word of a line, each with its help text."""
    line = text.lstrip()
    word = last_word(line)
    before, brace, start = word.rpartition("{")
    if brace and "}" not in start:
        return [(f"{before}{{{agent}.last}}", "") for agent in _starting(agents, start)]
    if "\n" in line or line[:2] in ("//", "@@", "!!") or line[:1] not in ("/", "@", "!") or not line:
        return []
    if word == line and word.startswith("/"):
        rows = [row for row in catalogue.COMMANDS if row.name.startswith(word[1:].lower())]
        return [(f"/{row.name}", row.help) for row in rows]
    if word == line and "," not in word:
        names = [*agents, ALL, *([ROUTER] if word.startswith("@") else [])]
        return [(f"{word[0]}{name}", "") for name in _starting(names, word[1:].lower())]
    if word and all(part.startswith("@") for part in line.split()):
        return [(choice, "") for choice in _further_names(line.split(), agents)]
    return [(choice, "") for choice in _starting(_choices(line.split(), word, agents), word)]


def last_word(text: str) -> str:
    """Return the word before the cursor."""
    return "" if not text or text[-1].isspace() else text.split()[-1]


def common_start(words: list[str]) -> str:
    """Return the longest common prefix of the words."""
    first, last = min(words), max(words)
    pairs = zip(first, last, strict=False)
    return first[: next((at for at, (one, other) in enumerate(pairs) if one != other), len(first))]


def _further_names(words: list[str], agents: list[str]) -> list[str]:
    """Return the candidates for the last of several recipients: `@ada @b` or `@ada,b`."""
    before, _, start = words[-1][1:].rpartition(",")
    given = {name for word in (*words[:-1], f"@{before}") for name in word[1:].split(",")}
    lead = f"@{before}," if before else "@"
    return [f"{lead}{name}" for name in _starting(agents, start.lower()) if name not in given]


def _choices(words: list[str], word: str, agents: list[str]) -> list[str]:
    """Return the candidates for the last word."""
    place = len(words) - (1 if word else 0) - 1
    name = words[0][1:].lower()
    if words[0].lower() == f"@{ROUTER}":
        return mode_names() if place == 0 else agents
    row = next((row for row in catalogue.COMMANDS if row.name == name), None)
    if not words[0].startswith("/") or row is None:
        return []
    if name == MODE and place > 0:
        before = words[-2] if word else words[-1]
        if before == "--agents":
            given = word.split(",")[:-1]
            return [",".join((*given, agent)) for agent in agents if agent not in given]
        if before in ("--first", "--synth"):
            return agents
        return [] if before in MODE_NUMBERS else list(MODE_OPTIONS)
    if place >= len(row.takes):
        return []
    if name == "layout":
        return list(LayoutName)
    return {
        ArgumentKind.AGENT: agents if name != "fwd" or place == 0 else [*agents, ALL],
        ArgumentKind.MAYBE_AGENT: agents,
        ArgumentKind.MAYBE_MODE: mode_names(),
        ArgumentKind.MAYBE_COMMAND: [row.name for row in catalogue.COMMANDS],
        ArgumentKind.MAYBE_WORD: agents if name == "history" else ["all"] if name == "stop" else [],
    }.get(row.takes[place], [])


def _starting(names: Iterable[str], start: str) -> list[str]:
    return [name for name in names if name.startswith(start)]


class LineCompleter(Completer):
    """Adapts the completions to prompt_toolkit."""

    def __init__(self, agents: Callable[[], list[str]]) -> None:
        self._agents = agents

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield the completions at the cursor."""
        text = document.text_before_cursor
        word = last_word(text)
        for choice, help in completions(text, self._agents()):
            yield Completion(choice, start_position=-len(word), display_meta=help)


def choices_row(state: CompletionState, columns: int) -> StyleAndTextTuples:
    """Return one row of choices around the selected one, followed by help for it or for the only choice."""
    words = [choice.text for choice in state.completions]
    chosen = state.complete_index
    first = last = chosen or 0
    # The row starts with the first word that leaves enough space for the selected one.
    while first and sum(len(word) + 2 for word in words[first - 1 : last + 1]) < columns - 2:
        first -= 1
    row: StyleAndTextTuples = [("", "… ")] if first else []
    space = columns - len("… ")
    for at, word in enumerate(words[first:], first):
        if at > last and sum(len(part[1]) for part in row) + len(word) + 2 > space:
            row.append(("", "…"))
            break
        row += [("class:chosen" if at == chosen else "", word), ("", "  ")]
    one = 0 if len(words) == 1 else chosen
    space = columns - sum(len(part[1]) for part in row) - 2
    if one is not None and state.completions[one].display_meta_text and space > 1:
        row.append(("", f"({one_line(state.completions[one].display_meta_text, space)})"))
    return row
