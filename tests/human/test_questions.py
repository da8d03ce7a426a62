"""What is asked about a line, and what its answers do."""

import pytest

from csp.human.questions import about_topic, before_sending, yes_or_no
from csp.room.human_input import CommandLine, MessageLine, ModeLine, SetTarget

MEANT = CommandLine(name="down", rest="yes")


@pytest.mark.parametrize(("answer", "is_yes"), [("y", True), ("YES", True), ("", False), ("yeah", False)])
def test_only_a_yes_is_a_yes(answer: str, is_yes: bool) -> None:
    question = yes_or_no("Stop it?", MEANT, "stop it")

    assert (question.text, question.prompt) == ("Stop it? y/N", "stop it y/N")
    assert question.then(answer) == (MEANT if is_yes else None)


@pytest.mark.parametrize(
    ("answer", "topic"), [("tabs or spaces", "tabs or spaces"), ("", ""), ("quit", ""), ("csp down", "")]
)
def test_a_topic_is_neither_nothing_nor_a_command(answer: str, topic: str) -> None:
    wish = ModeLine(mode="debate", numbers={"rounds": 2})
    question = about_topic("About what?", wish)
    started = question.then(answer)

    assert question.prompt == "debate topic"
    assert started == (ModeLine(mode="debate", numbers={"rounds": 2}, topic=topic) if topic else None)


def test_a_text_that_was_hardly_meant_for_agents_keeps_its_recipients() -> None:
    question = before_sending(MessageLine(text="help"), "ada,bob")

    assert question is not None
    assert question.then("y") == MessageLine(text="help", to="ada,bob")
    assert before_sending(MessageLine(text="help me"), "ada") is None
    assert before_sending(SetTarget(to="ada"), "bob") is None
