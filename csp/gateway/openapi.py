"""Build /openapi.json from the route table and the wire types."""

import re
from functools import cache
from typing import Any, Final

import msgspec

from csp import __version__
from csp.gateway.route_table import Route
from csp.protocol.enums import ControlVerb, MessageAction, Role, SessionAction
from csp.protocol.responses import ErrorView
from csp.protocol.review_messages import RunAction

_REF: Final = "#/components/schemas/{name}"
_ERRORS: Final = {
    "400": "the request is malformed",
    "401": "no token, or one that is not valid",
    "403": "the token does not allow this, or Host or Origin is foreign",
    "404": "no such participant, message or route",
    "409": "refused by a rule of the room",
    "413": "the request is too large",
    "415": "the body is compressed",
    "429": "a limit of the room is reached",
    "507": "the disk is full",
}
#: Described only in words, because a generated client that tries values would wait a minute for each.
_UNLISTED: Final = frozenset({"wait"})
_LONG_POLL: Final = "With wait=S (at most 60), an empty response is delayed until there is news."
_PATH_VALUES: Final[dict[str, dict[str, Any]]] = {
    "id": {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9._:@+=-]+$"},
    "verb": {"type": "string", "enum": list(ControlVerb)},
    "action": {"type": "string", "enum": list(MessageAction)},
    "change": {"type": "string", "enum": list(SessionAction)},
    "number": {"type": "string", "pattern": "^#?[0-9]{1,16}$", "examples": ["52"]},
    "act": {"type": "string", "enum": list(RunAction), "examples": ["abort"]},
}
#: Example ids, which a generated client cannot guess.
_ID_EXAMPLES: Final = {
    **dict.fromkeys(("/messages/{id}", "/messages/{id}/{action}"), "m-3"),
    "/agents/{id}/screen": "claude",
    **dict.fromkeys(("/sessions/{id}", "/sessions/{id}/{change}"), "s-5"),
    **dict.fromkeys(("/collaborations/{id}", "/collaborations/{id}/stop"), "plan"),
    **dict.fromkeys(("/runs/{id}", "/runs/{id}/{act}", "/runs/{id}/message"), "run-1"),
}
_BODY_EXAMPLES: Final[dict[str, dict[str, str | list[str]]]] = {
    "POST /collaborations": {"session_id": "plan", "user_input": "mind the budget"},
    "POST /sessions": {"mode": "autopilot", "topic": "tabs or spaces", "agents": ["gemini"]},
    "POST /turn/next": {"thread": "dev"},
    "POST /runs": {"goal": "fix the parser", "builder": "mailbox", "reviewer": "mailbox"},
    "POST /runs/{id}/{act}": {"decision": "abort", "rationale": "enough"},
    "POST /delivery": {"id": "m-4", "state": "typed"},
    "POST /state": {"state": "busy", "agent": "claude"},
}


def _by_id(place: str, **operations: str) -> dict[str, Any]:
    return {
        name: {"operationId": operation, "parameters": {"id": f"$response.body#/{place}"}}
        for name, operation in operations.items()
    }


#: Values that a client receives from one route and needs for another.
_LINKS: Final[dict[str, dict[str, Any]]] = {
    "POST /register": _by_id(
        "agentId", press="post_agents_id_verb", read="get_inbox_id", remove="delete_agents_id"
    ),
    "POST /page/link": {
        "use": {"operationId": "post_page_enter", "requestBody": {"code": "$response.body#/code"}}
    },
    "POST /sessions": _by_id("id", show="get_sessions_id", steer="post_sessions_id_change"),
    "POST /runs": _by_id("run/id", show="get_runs_id", decide="post_runs_id_act"),
    "POST /message": _by_id("id", states="get_messages_id", act="post_messages_id_action")
    | {
        "report": {
            "operationId": "post_delivery",
            "requestBody": {"id": "$response.body#/id", "state": "typed"},
        }
    },
}


@cache
def document(routes: tuple[Route, ...]) -> bytes:
    """Return the OpenAPI document of all routes, as JSON."""
    types = [kind for route in routes for kind in (route.body, route.query, route.answer) if kind]
    schemas, parts = msgspec.json.schema_components([*types, ErrorView], ref_template=_REF)
    components: dict[str, Any] = _with_ecma_patterns(parts)
    by_type = dict(zip(map(repr, [*types, ErrorView]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type, components)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "CSP gateway", "version": __version__},
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
            },
        }
    )


def _operation(route: Route, by_type: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    needs = "Needs no token." if route.needs is Role.NONE else f"Needs the {route.needs} token."
    media = "text/plain" if route.answer is str else "application/json"
    good = {"description": "done", "content": {media: {"schema": by_type[repr(route.answer)]}}}
    if route.name in _LINKS:
        good["links"] = _LINKS[route.name]
    error = {"application/json": {"schema": by_type[repr(ErrorView)]}}
    bad = {code: {"description": text, "content": error} for code, text in _ERRORS.items()}
    operation: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": f"{needs} {_LONG_POLL}" if "wait" in route.query.__struct_fields__ else needs,
        "parameters": _parameters(route, components[route.query.__name__]),
        "responses": {str(route.status): good} | bad,
        "security": [] if route.needs is Role.NONE else [{"token": []}],
    }
    if route.body is not None:
        schema = by_type[repr(route.body)]
        body = {"schema": schema} | (
            {"example": _BODY_EXAMPLES[route.name]} if route.name in _BODY_EXAMPLES else {}
        )
        needed = components[schema["$ref"].rpartition("/")[2]].get("required", [])
        operation["requestBody"] = {"required": bool(needed), "content": {"application/json": body}}
    return operation


def operation_id(route: Route) -> str:
    """Return a unique, readable id for the operation."""
    return f"{route.method.lower()}_{re.sub(r'[^a-z]+', '_', route.path.lower()).strip('_')}"


def _parameters(route: Route, query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters in the path and in the query; `query` is the schema of the latter."""
    found: list[dict[str, Any]] = []
    for name in re.findall(r"{(\w+)}", route.path):
        found.append({"name": name, "in": "path", "required": True, "schema": _PATH_VALUES[name]})
        if name == "id" and route.path in _ID_EXAMPLES:
            found[-1]["example"] = _ID_EXAMPLES[route.path]
    for name, schema in query.get("properties", {}).items():
        if name not in _UNLISTED:
            # Without null, because a query string omits optional values instead.
            choices = [choice for choice in schema.get("anyOf", [schema]) if choice != {"type": "null"}]
            plain = {key: value for key, value in choices[0].items() if key != "default"}
            is_needed = name in query.get("required", [])
            found.append({"name": name, "in": "query", "schema": plain, "required": is_needed})
    return found


def _with_ecma_patterns(value: Any) -> Any:
    """Replace \\Z by $, which means the same in JSON Schema, where \\Z does not exist."""
    if isinstance(value, dict):
        return {
            key: item.replace("\\Z", "$")
            if key == "pattern" and isinstance(item, str)
            else _with_ecma_patterns(item)
            for key, item in value.items()
        }
    return [_with_ecma_patterns(item) for item in value] if isinstance(value, list) else value
