"""The tokens of pages, at the edges of their time and their number."""

from pathlib import Path

import pytest

from csp.errors import StorageFull, Unauthenticated
from csp.gateway import page_tokens as pages_module
from csp.gateway.page_tokens import FILE, LINK_S, MAX_LINKS, MAX_PAGES, PAGE_S, PageTokens
from csp.protocol.enums import HUMAN, Role
from tests.gateway.served import Clock


def pages_of(folder: Path, clock: Clock, secret: bytes = b"secret", token: str = "token") -> PageTokens:
    return PageTokens(folder, secret, token, clock)


def admit(pages: PageTokens) -> str:
    return pages.use_link(pages.make_link()[0])[0]


def is_in(pages: PageTokens, token: str) -> bool:
    try:
        pages.identify(token)
    except Unauthenticated:
        return False
    return True


def test_a_link_is_good_for_two_minutes_and_once(tmp_path: Path, clock: Clock) -> None:
    pages = pages_of(tmp_path, clock)
    first, second = pages.make_link(), pages.make_link()
    clock.now += LINK_S - 1
    _, until = pages.use_link(first[0])
    with pytest.raises(Unauthenticated):
        pages.use_link(first[0])
    clock.now += 1
    with pytest.raises(Unauthenticated):
        pages.use_link(second[0])

    assert first[1] == second[1] == clock.now
    assert until == clock.now - 1 + PAGE_S == clock.now - 1 + 604_800


def test_the_newest_links_are_kept_and_old_ones_make_room_first(tmp_path: Path, clock: Clock) -> None:
    pages = pages_of(tmp_path, clock)
    codes = [pages.make_link()[0] for _ in range(MAX_LINKS + 1)]
    with pytest.raises(Unauthenticated):
        pages.use_link(codes[0])
    pages.use_link(codes[1])
    clock.now += LINK_S
    pages.make_link()

    assert MAX_LINKS == 32
    assert len(pages._links) == 1


def test_the_newest_pages_are_kept_and_old_ones_make_room_first(tmp_path: Path, clock: Clock) -> None:
    pages = pages_of(tmp_path, clock)
    tokens = [admit(pages) for _ in range(MAX_PAGES + 1)]
    found = [is_in(pages, token) for token in tokens]
    clock.now += PAGE_S
    admit(pages)

    assert found == [False] + [True] * MAX_PAGES
    assert (MAX_PAGES, len(pages)) == (64, 1)


def test_a_page_is_in_for_a_week_and_speaks_for_the_human(tmp_path: Path, clock: Clock) -> None:
    pages = pages_of(tmp_path, clock)
    token = admit(pages)
    caller = pages.identify(token)
    clock.now += PAGE_S - 1
    early = is_in(pages, token)
    clock.now += 1

    assert (caller.id, caller.role, bool(caller.page)) == (HUMAN, Role.ROOM, True)
    assert (early, is_in(pages, token)) == (True, False)
    pages.end_old()
    assert len(pages) == 0


def test_leaving_ends_one_page_or_all_with_their_links(tmp_path: Path, clock: Clock) -> None:
    pages = pages_of(tmp_path, clock)
    one, two = admit(pages), admit(pages)
    code, _ = pages.make_link()
    pages.end(pages.identify(one).page)
    after_one = is_in(pages, one), is_in(pages, two)
    pages.end_all()

    assert after_one == (False, True)
    assert not is_in(pages, two)
    with pytest.raises(Unauthenticated):
        pages.use_link(code)


def test_a_page_comes_back_only_with_the_same_secret_and_token(tmp_path: Path, clock: Clock) -> None:
    pages = pages_of(tmp_path, clock)
    token = admit(pages)
    pages.write()

    assert is_in(pages_of(tmp_path, clock), token)
    assert not is_in(pages_of(tmp_path, clock, secret=b"another"), token)
    assert not is_in(pages_of(tmp_path, clock, token="another"), token)
    assert token.encode() not in (tmp_path / FILE).read_bytes()


@pytest.mark.parametrize("is_end", [True, False])
def test_an_end_that_cannot_be_stored_ends_all_pages_with_the_gateway(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, is_end: bool
) -> None:
    pages = pages_of(tmp_path, clock)
    token = admit(pages)
    pages.write()

    def fail(path: Path, data: bytes) -> None:
        raise OSError("no room")

    monkeypatch.setattr(pages_module, "replace_file", fail)
    with pytest.raises(StorageFull):
        pages.write(is_end=is_end)

    assert is_in(pages_of(tmp_path, clock), token) is not is_end


@pytest.mark.parametrize(
    "damage", [b"", b"\x00", b'["\xff"]', b'[{"hash": "\xff"}]', b"{}", b"[" * 200_000, b"[1]"]
)
def test_file_that_cannot_be_read_lets_nobody_in_and_the_room_starts(
    tmp_path: Path, clock: Clock, damage: bytes
) -> None:
    pages = pages_of(tmp_path, clock)
    token = admit(pages)
    pages.write()
    (tmp_path / FILE).write_bytes(damage)

    assert not is_in(pages_of(tmp_path, clock), token)
