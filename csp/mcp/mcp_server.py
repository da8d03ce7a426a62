"""A room's MCP server, based on the official SDK; every call has its own room client and caller."""

import contextlib
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final
from uuid import uuid4

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from csp import __version__
from csp.errors import BadInput, CspError, NotFound, Refused
from csp.fast_start.fast_json import dumps
from csp.mcp import resources
from csp.mcp.room_client import RoomClient, me
from csp.mcp.tool_arguments import schema_of
from csp.mcp.tool_texts import sections
from csp.mcp.tools import BY_NAME, ToolCall, check_tool, read_arguments, shown_to
from csp.protocol.enums import Role
from csp.room.sessions.modes import mode_entries

Context = ServerRequestContext[Any, Any]
#: A function that returns the room client for a call.
DoorOf = Callable[[Context], RoomClient]
#: Over HTTP, a random id of the client, for clients that repeat requests whose response was lost.
CALLER_HEADER: Final = "x-csp-caller"
_TOOLS_FILE: Final = "tools.md"
_MODES_FILE: Final = "start_modes.md"
#: The error code in the older specification; the stateless one uses the same code for both errors.
_RESOURCE_NOT_FOUND: Final = -32002
_STATELESS_SINCE: Final = "2026"
_PLACE: Final = re.compile(r"\{(\w+)\}")
_MODE_ARGUMENTS: Final = (
    ("topic", "the topic", True),
    ("agents", "participants, separated by commas; default: all online agents", False),
    ("rounds", "number of rounds", False),
)


class ServedRoom:
    """The server's request handlers."""

    def __init__(self, door_of: DoorOf) -> None:
        self._door_of = door_of
        #: Makes the ids of calls to this server unique.
        self._instance = uuid4().hex

    def server(self) -> Server[Any]:
        """Return the SDK's server with these handlers."""
        return Server(
            "csp",
            version=__version__,
            title="CSP group chat",
            instructions=sections(_TOOLS_FILE)[""],
            get_tool_input_schema=lambda name: schema_of(BY_NAME[name].takes) if name in BY_NAME else None,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )

    # --- tools -----------------------------------------------------------------------------------

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        role = Role.AGENT
        # Without a room, the role is unknown; each call will report the error.
        with contextlib.suppress(CspError):
            role = (await me(self._door_of(ctx))).role
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=sections(_TOOLS_FILE)[tool.name],
                    input_schema=schema_of(tool.takes),
                    annotations=types.ToolAnnotations(read_only_hint=tool.is_reading, open_world_hint=False),
                )
                for tool in shown_to(role)
            ]
        )

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name!r}")
        try:
            given = read_arguments(tool, params.arguments or {})
            door = self._door_of(ctx)
            await check_tool(tool, door)
            key = self._key(ctx, params)
            call = ToolCall(door, key, lambda *told: ctx.session.report_progress(*told))
            answer = await tool.run(call, given)
        except CspError as exc:
            return _result(_words(exc), is_error=True)
        found = answer if isinstance(answer, dict) else {"result": answer}
        return _result(dumps(found, is_ascii=False), structured=found)

    def _key(self, ctx: Context, params: types.CallToolRequestParams) -> str:
        """Return an idempotency id for a call; repeated requests have the same id."""
        # Over HTTP, several clients use the same request ids; only one that names itself can repeat a call.
        caller = self._instance if ctx.request is None else ctx.request.headers.get(CALLER_HEADER)
        if caller is None or ctx.request_id is None:
            return f"mcp-{uuid4().hex}"
        # A client may reuse an id for different calls.
        asked = dumps([caller, ctx.request_id, params.name, params.arguments or {}])
        return f"mcp-{sha256(asked.encode()).hexdigest()[:32]}"

    # --- resources -------------------------------------------------------------------------------

    async def list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=one.uri, name=one.name, description=one.about, mime_type=one.mime)
                for one in resources.RESOURCES
                if not one.is_template
            ]
        )

    async def list_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=one.uri, name=one.name, description=one.about, mime_type=one.mime
                )
                for one in resources.RESOURCES
                if one.is_template
            ]
        )

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            page = await resources.read(self._door_of(ctx), uri)
        except NotFound as exc:
            is_new = ctx.protocol_version >= _STATELESS_SINCE
            code = types.INVALID_PARAMS if is_new else _RESOURCE_NOT_FOUND
            raise MCPError(code, _words(exc), {"uri": uri}) from exc
        except (BadInput, Refused) as exc:
            raise MCPError(types.INVALID_PARAMS, _words(exc), {"uri": uri}) from exc
        except CspError as exc:
            raise MCPError(types.INTERNAL_ERROR, _words(exc), {"uri": uri}) from exc
        contents = types.TextResourceContents(uri=uri, mime_type=page.mime, text=page.text)
        return types.ReadResourceResult(contents=[contents])

    # --- prompts ---------------------------------------------------------------------------------

    async def list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        arguments = [
            types.PromptArgument(name=name, description=about, required=is_required)
            for name, about, is_required in _MODE_ARGUMENTS
        ]
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(name=mode.id, description=mode.about, arguments=arguments)
                for mode in mode_entries()
            ]
        )

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        about = next((mode.about for mode in mode_entries() if mode.id == params.name), None)
        if about is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown prompt {params.name!r}")
        given = params.arguments or {}
        missing = [name for name, _, is_required in _MODE_ARGUMENTS if is_required and not given.get(name)]
        if missing:
            raise MCPError(types.INVALID_PARAMS, f"prompt {params.name!r} needs: {', '.join(missing)}")
        values = {name: given.get(name) or "-" for name, _, _ in _MODE_ARGUMENTS}
        values |= {"mode": params.name, "about": about}
        text = _PLACE.sub(lambda found: values[found[1]], sections(_MODES_FILE)[""])
        content = types.TextContent(type="text", text=text)
        messages = [types.PromptMessage(role="user", content=content)]
        return types.GetPromptResult(description=about, messages=messages)


def _words(error: CspError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _result(
    text: str, *, structured: dict[str, Any] | None = None, is_error: bool = False
) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], structured_content=structured, is_error=is_error)
