"""A layered dict behaves as a plain dict would, and leaves its base alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.room.room_draft import LayeredDict, merged

KEYS = st.sampled_from("abcdef")
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "del", "pop", "pop_none"]), KEYS, st.integers(0, 9)))
REFUSED = ("setdefault", "popitem", "clear", "copy", "__or__", "__ror__", "__ior__")
#: These work on the own storage, which is what they should do.
SHARED = {
    *("__setitem__", "__getitem__", "update", "fromkeys"),
    *("__class_getitem__", "__new__", "__sizeof__", "__getattribute__"),
}


def change(table: dict[str, int], how: str, key: str, value: int) -> object:
    match how:
        case "set":
            table[key] = value
            return None
        case "pop":
            return table.pop(key) if key in table else "nothing"
        case "pop_none":
            return table.pop(key, None)
        case _:
            try:
                del table[key]
            except KeyError:
                return "no such key"
            return None


@given(st.dictionaries(KEYS, st.integers(0, 9)), CHANGES)
def test_changes_give_what_a_plain_dict_gives(
    base: dict[str, int], changes: list[tuple[str, str, int]]
) -> None:
    plain, layered, before = dict(base), LayeredDict(base), dict(base)

    for one in changes:
        assert change(layered, *one) == change(plain, *one)
        assert list(layered) == list(plain)
        assert list(reversed(layered)) == list(reversed(plain))
        assert list(layered.items()) == list(plain.items())
        assert (list(layered.keys()), list(layered.values())) == (list(plain), list(plain.values()))
        assert (len(layered), bool(layered)) == (len(plain), bool(plain))
        assert [layered.get(key, -1) for key in "abcdef"] == [plain.get(key, -1) for key in "abcdef"]
        assert [key in layered for key in "abcdef"] == [key in plain for key in "abcdef"]
        assert layered == plain and plain == layered
        assert repr(layered) == repr(plain)
    assert base == before

    assert merged(layered) is base and merged(plain) is plain
    assert list(base.items()) == list(plain.items())


def test_key_that_is_not_there_raises() -> None:
    layered = LayeredDict({"a": 1})
    del layered["a"]

    for key in ("a", "b"):
        with pytest.raises(KeyError):
            layered[key]
        with pytest.raises(KeyError):
            layered.pop(key)


def test_another_dict_is_not_equal() -> None:
    assert LayeredDict({"a": 1}) != {"a": 2}
    assert LayeredDict({"a": 1}) != "a"


@pytest.mark.parametrize("name", REFUSED)
def test_method_that_would_miss_the_base_is_refused(name: str) -> None:
    layered: Any = LayeredDict({"a": 1})
    with pytest.raises(NotImplementedError):
        getattr(layered, name)({})


def test_every_method_of_a_dict_is_thought_of() -> None:
    compared = {"__lt__", "__le__", "__gt__", "__ge__", "__ne__"}

    # Not every version of Python defines all of them for dict itself.
    assert set(vars(dict)) - set(vars(LayeredDict)) - compared == SHARED & set(vars(dict))
