"""The tests of the names of things."""

import pytest

from csp.whiteboard.identifiers import identifiers, is_hash, is_identifier, spelt_out

NAMES = [
    ("see csp/journal/index.py:42 and README.md", ["csp/journal/index.py", "index.py", "readme.md"]),
    ("test_roles fails with ECONNREFUSED on 3.11.4", ["test_roles", "econnrefused", "3.11.4"]),
    ("CamelCase HTTPServer parseJson", ["camelcase", "httpserver", "parsejson"]),
    ("SearchIndex.catch_up()", ["searchindex.catch_up", "searchindex", "catch_up"]),
    ("commit d49623c, then", ["d49623c"]),
    ("m-12 n-5 (s-3) t-17", ["m-12", "n-5", "s-3", "t-17"]),
    ("error E0432, HTTP 429, port 8765, #418", ["e0432", "429", "8765", "418"]),
    ("std::vector", ["std::vector"]),
    ("/etc/passwd and ~/.cache/csp", ["/etc/passwd", "~/.cache/csp"]),
    ("C:\\Temp\\x.txt", ["c:\\temp\\x.txt", "x.txt"]),
    ("SIGTERM, __init__, _private, --save-dev", ["sigterm", "__init__", "_private", "--save-dev"]),
    ("CVE-2024-3094 or gpt-4o", ["cve-2024-3094", "gpt-4o"]),
    ("TypeError: 'NoneType'", ["typeerror", "nonetype"]),
    ("a::b/c_d", ["a::b/c_d", "c_d"]),
]


@pytest.mark.parametrize(("text", "names"), NAMES, ids=[text for text, _ in NAMES])
def test_names_are_found(text: str, names: list[str]) -> None:
    assert list(identifiers(text)) == names


@pytest.mark.parametrize(
    "text",
    [
        "fix the parser. Then go on, please",
        "e.g. this and/or that, i.e. n/a",
        "GitHub, OpenAI, JSON, I/O",
        "a well-known re-run of read/write in 12 s",
        "",
    ],
)
def test_plain_words_are_no_names(text: str) -> None:
    assert list(identifiers(text)) == []


def test_beginning_of_a_hash_is_told_from_a_word() -> None:
    assert is_hash("d49623c")
    assert not is_hash("defaced")
    assert not is_hash("1234567")


@pytest.mark.parametrize(("word", "is_one"), [("--x", False), ("--xy", True), ("x", False), ("a/b.c", True)])
def test_short_words_are_told_apart(word: str, is_one: bool) -> None:
    assert is_identifier(word) is is_one


def test_words_inside_names_are_spelt_out() -> None:
    assert spelt_out("the HTTPServer calls parseJson, plainly") == "HTTP Server parse Json"


def test_name_has_at_most_200_characters() -> None:
    assert list(identifiers("a_" * 100)) == ["a_" * 100]
    assert list(identifiers("a_" * 101)) == []
    assert list(identifiers("src/" * 100 + "index.py:42")) == ["index.py"]


def test_names_are_looked_for_in_the_first_64_kb() -> None:
    words = "word " * (64 * 1024 // 5)

    assert list(identifiers("first_name " + words + "last_name")) == ["first_name"]
    assert spelt_out("firstName " + words + "lastName") == "first Name"


@pytest.mark.parametrize(
    ("word", "is_one"), [("1a2B", False), ("aB1", True), ("1B", True), ("HTTPx", True), ("aB.", False)]
)
def test_capital_inside_makes_a_name(word: str, is_one: bool) -> None:
    assert (word.lower() in identifiers(word)) is is_one
