"""The sections of a file of prompts."""

import pytest

from csp.mcp import tool_texts


def test_each_heading_of_the_second_level_begins_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "above\n\n##  first \nits text\n### smaller\nsee ## here\n\n## second\n\nmore\n"
    monkeypatch.setattr(tool_texts, "read_prompt", lambda name: file)
    found = tool_texts.sections.__wrapped__("any")

    assert found == {"": "above", "first": "its text\n### smaller\nsee ## here", "second": "more"}
