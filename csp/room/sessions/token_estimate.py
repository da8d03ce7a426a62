"""How long a text is for a model, roughly: nobody here has its tokenizer."""

from typing import Final

CHARS_PER_TOKEN: Final = 4
_CUT: Final = " [cut]"


def tokens_in(text: str) -> int:
    """Return about how many tokens a text takes."""
    return -(-len(text) // CHARS_PER_TOKEN)


def cut(text: str, chars: int) -> str:
    """Return the beginning of a text that is longer than `chars`, which says that it was cut."""
    return text if len(text) <= chars else text[: max(chars - len(_CUT), 0)] + _CUT
