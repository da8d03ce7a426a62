"""The table of roles: who is covered by a row, what a row must say."""

import pytest

from csp.errors import Forbidden
from csp.protocol.enums import Role
from csp.room.permissions import (
    AGENTS,
    ANYBODY,
    LEADS,
    MEMBERS,
    OPS,
    PEOPLE,
    ROUTES,
    SHELL,
    TOOLS,
    Party,
    RoleRow,
    check_call,
    check_fields,
    check_row,
    is_dangerous,
    party_of,
    row_of,
)

ROW = RoleRow(LEADS, {"test": "in a terminal", "action=redact": "in a terminal"})


@pytest.mark.parametrize(
    ("parties", "needs"),
    [
        (ANYBODY, Role.NONE),
        (MEMBERS, Role.AGENT),
        (AGENTS, Role.AGENT),
        (LEADS, Role.ORCHESTRATOR),
        (PEOPLE, Role.ROOM),
        (SHELL, Role.ROOM),
    ],
)
def test_row_needs_the_lowest_role_that_it_names(parties: frozenset[Party], needs: Role) -> None:
    assert RoleRow(parties).needs is needs


def test_room_token_may_call_everything() -> None:
    rows = [*ROUTES.values(), *OPS.values(), *TOOLS.values()]

    assert all(Party.ROOM in row.parties for row in rows)


def test_page_is_no_room_token() -> None:
    assert party_of(Role.ROOM, is_page=True) is Party.PAGE
    assert [party_of(role, is_page=False) for role in Role] == ["none", "agent", "orchestrator", "room"]


def test_what_has_no_row_is_not_served() -> None:
    with pytest.raises(LookupError, match="'POST /new' has no row"):
        row_of(ROUTES, "POST /new")

    assert row_of(ROUTES, "POST /stop") is ROUTES["POST /stop"]


@pytest.mark.parametrize(
    "field", ["test", "dir", "base_url", "key_env", "plan_path", "command", "cwd", "files", "host"]
)
def test_dangerous_field_needs_a_place_in_its_row(field: str) -> None:
    with pytest.raises(LookupError, match=f"takes {field}"):
        check_row("POST /new", RoleRow(PEOPLE), ["topic", field])
    check_row("POST /new", RoleRow(PEOPLE, {field: "hint"}), [field])
    check_row("POST /new", RoleRow(SHELL), [field])


@pytest.mark.parametrize("field", ["text", "test_timeout_s", "direction", "tokens", "environment_note"])
def test_harmless_field_needs_none(field: str) -> None:
    assert not is_dangerous(field)


@pytest.mark.parametrize(
    ("party", "problem", "hint"),
    [
        (Party.AGENT, "agent may not POST /x", "it requires the orchestrator token"),
        (Party.NONE, "none may not POST /x", "it requires the orchestrator token"),
    ],
)
def test_who_is_not_in_the_row_is_refused(party: Party, problem: str, hint: str) -> None:
    with pytest.raises(Forbidden) as caught:
        check_call(ROW, party, "POST /x")

    assert (caught.value.message, caught.value.hint) == (problem, hint)


def test_page_is_sent_to_a_terminal() -> None:
    with pytest.raises(Forbidden, match="a page may not POST /x") as caught:
        check_call(RoleRow(SHELL), Party.PAGE, "POST /x")

    assert caught.value.hint == "do it in a terminal, see: csp --help"


@pytest.mark.parametrize("party", sorted(LEADS))
def test_who_is_in_the_row_may_call(party: Party) -> None:
    check_call(ROW, party, "POST /x")


@pytest.mark.parametrize("party", sorted(ANYBODY - SHELL))
@pytest.mark.parametrize("field", ["test", "action=redact"])
def test_field_of_the_shell_is_for_the_room_token_alone(party: Party, field: str) -> None:
    with pytest.raises(Forbidden, match="only the room's token may set"):
        check_fields(ROW, party, ["topic", field])
    check_fields(ROW, Party.ROOM, ["topic", field])
    check_fields(ROW, party, ["topic", "action=resend"])
    check_fields(RoleRow(LEADS), party, [field])
