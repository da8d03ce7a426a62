"""Questions about a line before it is executed; the next typed line is the answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from csp.room import human_input


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question; `then` returns the line to execute for an answer, or None."""

    text: str
    prompt: str
    then: Callable[[str], human_input.TypedLine | None]


def yes_or_no(text: str, meant: human_input.TypedLine, prompt: str) -> Question:
    """Return a question; if the answer is yes, `meant` is executed.

    `prompt` repeats it in a few words next to the cursor, because messages may scroll the question away.
    """

    def then(answer: str) -> human_input.TypedLine | None:
        return meant if answer.lower() in ("y", "yes") else None

    return Question(text=f"{text} y/N", prompt=f"{prompt} y/N", then=then)


def about_topic(text: str, wish: human_input.ModeLine) -> Question:
    """Return the question about a mode's topic; without an answer, the mode is not started."""

    def then(answer: str) -> human_input.TypedLine | None:
        is_topic = answer and not human_input.doubt_about(human_input.MessageLine(text=answer))
        return replace(wish, topic=answer) if is_topic else None

    prompt = f"{human_input.mode_words(wish.mode)} topic"
    return Question(text=f"{text} (an empty line cancels)", prompt=prompt, then=then)


def before_sending(line: human_input.TypedLine, target: str) -> Question | None:
    """Return a question to ask before sending a text that was probably not meant for agents, or None."""
    if not isinstance(line, human_input.MessageLine) or not human_input.doubt_about(line):
        return None
    text = human_input.question_before_sending(line, target)
    return yes_or_no(text, replace(line, to=target), "send it")
