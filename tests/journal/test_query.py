import pytest

from csp.journal.query import matches


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("Fix the parser", "parser"),
        ("Fix the parser", "PARS"),
        ("Fix the parser", "the  fix"),
        ("Fix the parser", ""),
        ("snake_case here", "snake_c"),
        ("call foo->bar() now", "foo->bar"),
        ("call foo->bar() now", "oo->ba"),
        ("C++ is fine", "c++"),
        ("今日は漢字です", "漢字"),
        ("今日は漢字です", "字"),
        ("see漢字foo漢字", "foo"),
        ("well done 👍🏽", "👍"),
        ("Müller sagt", "MÜLL"),
        ("in der Straße", "STRASSE"),
        ("ΟΔΟΣ", "οδος"),
        ("#418 done", "#418"),
        ("a\tb\nc", "c a"),
    ],
)
def test_a_text_matches(text: str, q: str) -> None:
    assert matches(text, q)


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("Fix the parser", "arser"),
        ("Fix the parser", "parser lexer"),
        ("snake_case here", "case"),
        ("call foo -> bar", "foo->bar"),
        ("今日は漢字です", "漢日"),
        ("", "x"),
    ],
)
def test_a_text_does_not_match(text: str, q: str) -> None:
    assert not matches(text, q)
