"""The answers of the server, without a transport."""

from types import SimpleNamespace
from typing import Any, cast

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from csp.errors import BadInput, Broken, CspError, NotFound, Refused, Unreachable
from csp.mcp.mcp_server import CALLER_HEADER, Context, ServedRoom
from csp.protocol.enums import Role
from tests.mcp.clients import AGENT_TOOLS, LEADER_TOOLS
from tests.mcp.doors import Door, me


def context(**fields: Any) -> Context:
    """Return what the SDK says of a call; over stdio there is no request of HTTP."""
    given = {"request": None, "request_id": 1, "protocol_version": "2025-11-25", **fields}
    return cast(Context, SimpleNamespace(**given))


def room_of(door: Door) -> ServedRoom:
    return ServedRoom(lambda ctx: door)


def calling(text: str, name: str = "broadcast") -> types.CallToolRequestParams:
    return types.CallToolRequestParams(name=name, arguments={"text": text})


async def key(room: ServedRoom, door: Door, ctx: Context, params: types.CallToolRequestParams) -> str:
    await room.call_tool(ctx, params)
    return str(door.asked[-1][2]["id"])


async def test_a_call_that_is_repeated_has_the_same_key_and_every_other_one_its_own() -> None:
    door = Door()
    room = room_of(door)
    first = await key(room, door, context(), calling("hi"))
    again = await key(room, door, context(), calling("hi"))
    others = {
        await key(room, door, context(request_id=2), calling("hi")),
        await key(room, door, context(request_id="1"), calling("hi")),
        await key(room, door, context(), calling("ho")),
        await key(room, door, context(), calling("hi", "board_add")),
        await key(room_of(door), door, context(), calling("hi")),
    }

    assert first == again and first.startswith("mcp-")
    assert len(others) == 5 and first not in others


def over_http(**headers: str) -> SimpleNamespace:
    return SimpleNamespace(headers=headers)


async def test_over_http_a_call_is_repeated_by_a_client_that_names_itself() -> None:
    door = Door()
    room = room_of(door)
    ada, bob = over_http(**{CALLER_HEADER: "ada"}), over_http(**{CALLER_HEADER: "bob"})
    keys = [await key(room, door, context(request=request), calling("hi")) for request in (ada, ada, bob)]

    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("odd", [{"request": over_http()}, {"request_id": None}])
async def test_over_http_no_two_calls_have_the_same_key(odd: dict[str, Any]) -> None:
    door = Door()
    room = room_of(door)
    keys = [await key(room, door, context(**odd), calling("hi")) for _ in range(2)]

    assert keys[0] != keys[1]


@pytest.mark.parametrize(("role", "tools"), [(Role.AGENT, AGENT_TOOLS), (Role.ORCHESTRATOR, LEADER_TOOLS)])
async def test_the_tools_of_ones_role_are_listed(role: Role, tools: set[str]) -> None:
    listed = (await room_of(Door().tell("/me", me(role=role))).list_tools(context(), None)).tools

    assert {tool.name for tool in listed} == tools
    hints = {tool.name: tool.annotations for tool in listed}
    assert all(tool.description for tool in listed)
    assert [hint.read_only_hint for name in ("query_log", "broadcast") if (hint := hints[name])] == [
        True,
        False,
    ]


async def test_without_a_room_the_tools_of_an_agent_are_listed() -> None:
    listed = (await room_of(Door().tell("/me", Unreachable("no room"))).list_tools(context(), None)).tools

    assert {tool.name for tool in listed} == AGENT_TOOLS


async def test_what_the_room_says_is_answered_as_text_and_as_data() -> None:
    result = await room_of(Door().tell("/message", {"id": "ü"})).call_tool(context(), calling("hi"))

    assert not result.is_error and result.structured_content == {"id": "ü"}
    assert isinstance(result.content[0], types.TextContent) and result.content[0].text == '{"id": "ü"}'


async def test_an_answer_that_is_no_table_is_put_into_one() -> None:
    result = await room_of(Door().tell("/message", [1])).call_tool(context(), calling("hi"))

    assert result.structured_content == {"result": [1]}


@pytest.mark.parametrize(
    ("error", "words"), [(Refused("not now"), "not now"), (BadInput("no", "try yes"), "no (try yes)")]
)
async def test_what_the_room_refuses_is_an_error_in_its_words(error: CspError, words: str) -> None:
    result = await room_of(Door().tell("/message", error)).call_tool(context(), calling("hi"))

    assert result.is_error and result.structured_content is None
    assert isinstance(result.content[0], types.TextContent) and result.content[0].text == words


@pytest.mark.parametrize(
    ("error", "version", "code"),
    [
        (NotFound("x"), "2025-11-25", -32002),
        (NotFound("x"), "2026-07-28", types.INVALID_PARAMS),
        (BadInput("x"), "2025-11-25", types.INVALID_PARAMS),
        (Refused("x"), "2025-11-25", types.INVALID_PARAMS),
        (Broken("x"), "2025-11-25", types.INTERNAL_ERROR),
    ],
)
async def test_a_resource_that_cannot_be_read_has_the_code_of_its_cause(
    error: CspError, version: str, code: int
) -> None:
    params = types.ReadResourceRequestParams(uri="csp://board")
    with pytest.raises(MCPError) as caught:
        await room_of(Door().tell("/board", error)).read_resource(context(protocol_version=version), params)

    assert (caught.value.code, caught.value.error.data) == (code, {"uri": "csp://board"})


async def test_prompts_need_a_topic_and_say_what_else_they_take() -> None:
    listed = (await room_of(Door()).list_prompts(context(), None)).prompts
    arguments = listed[0].arguments or []

    assert [(one.name, one.required) for one in arguments] == [
        ("topic", True),
        ("agents", False),
        ("rounds", False),
    ]
    assert all(prompt.description and "\n" not in prompt.description for prompt in listed)


async def test_what_a_prompt_was_not_given_is_a_dash() -> None:
    params = types.GetPromptRequestParams(name="debate", arguments={"topic": "tabs {rounds}", "agents": ""})
    result = await room_of(Door()).get_prompt(context(), params)
    content = result.messages[0].content

    assert isinstance(content, types.TextContent)
    assert "tabs {rounds}" in content.text
    assert content.text.count("{") == 1 and "-" in content.text
    assert result.description and result.description in content.text


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [("nothing", {}, "unknown prompt 'nothing'"), ("debate", {"topic": ""}, "'debate' needs: topic")],
)
async def test_a_prompt_that_cannot_be_made_says_why(
    name: str, arguments: dict[str, str], problem: str
) -> None:
    with pytest.raises(MCPError, match=problem) as caught:
        await room_of(Door()).get_prompt(
            context(), types.GetPromptRequestParams(name=name, arguments=arguments)
        )

    assert caught.value.code == types.INVALID_PARAMS
