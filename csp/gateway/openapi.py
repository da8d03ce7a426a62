"""Build /openapi.json from the route table and the wire types."""

import re
from functools import cache
from typing import Any, Final

import msgspec

from csp import __version__
from csp.gateway.handlers import Route
from csp.protocol.enums import ControlVerb, MessageAction, Role, SessionAction
from csp.protocol.responses import ErrorView
from csp.protocol.review_messages import RunAction

_REF: Final = "#/components/schemas/{name}"
_ERRORS: Final = {
    "400": "the request is malformed",
    "401": "no token, or one that is not valid",
    "403": "this token may not do that, or a foreign Host or Origin",
    "404": "no such participant, message or route",
    "409": "a rule of the room says no",
    "413": "too large",
    "415": "a compressed body",
    "429": "a limit of the room is reached",
    "507": "the disk is full",
}
#: Described in words only: a generated client that tries values would hang for a minute each.
_UNLISTED: Final = frozenset({"wait"})
_LONG_POLL: Final = "With wait=S (at most 60) an empty answer is held back until there is news."
_PATH_VALUES: Final[dict[str, dict[str, Any]]] = {
    "id": {"type": "string", "minLength": 1, "pattern": "^[A-Za-z0-9._:@+=-]+$"},
    "verb": {"type": "string", "enum": list(ControlVerb)},
    "action": {"type": "string", "enum": list(MessageAction)},
    "change": {"type": "string", "enum": list(SessionAction)},
    "act": {"type": "string", "enum": list(RunAction), "examples": ["abort"]},
}
#: Examples of ids, which a generated client could not guess.
_ID_EXAMPLES: Final = {
    "/messages/{id}": "m-3",
    "/messages/{id}/{action}": "m-3",
    "/agents/{id}/screen": "claude",
    "/sessions/{id}": "s-5",
    "/sessions/{id}/{change}": "s-5",
    "/collaborations/{id}": "plan",
    "/collaborations/{id}/stop": "plan",
    "/runs/{id}": "run-1",
    "/runs/{id}/{act}": "run-1",
    "/runs/{id}/message": "run-1",
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
#: Values that a client gets from one route and needs for another.
_LINKS: Final[dict[str, dict[str, Any]]] = {
    "POST /register": {
        name: {"operationId": operation, "parameters": {"id": "$response.body#/agentId"}}
        for name, operation in (
            ("press", "post_agents_id_verb"),
            ("read", "get_inbox_id"),
            ("remove", "delete_agents_id"),
        )
    },
    "POST /page/link": {
        "use": {"operationId": "post_page_enter", "requestBody": {"code": "$response.body#/code"}}
    },
    "POST /sessions": {
        name: {"operationId": operation, "parameters": {"id": "$response.body#/id"}}
        for name, operation in (("show", "get_sessions_id"), ("steer", "post_sessions_id_change"))
    },
    "POST /runs": {
        name: {"operationId": operation, "parameters": {"id": "$response.body#/run/id"}}
        for name, operation in (("show", "get_runs_id"), ("decide", "post_runs_id_act"))
    },
    "POST /message": {
        name: {"operationId": operation, "parameters": {"id": "$response.body#/id"}}
        for name, operation in (("states", "get_messages_id"), ("act", "post_messages_id_action"))
    }
    | {
        "report": {
            "operationId": "post_delivery",
            "requestBody": {"id": "$response.body#/id", "state": "typed"},
        }
    },
}


@cache
def document(all_routes: tuple[Route, ...]) -> bytes:
    """Return the OpenAPI document of all listed routes, as JSON."""
    routes = [route for route in all_routes if route.is_listed]
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
    operation: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": _description(route),
        "parameters": _parameters(route, components),
        "responses": _responses(route, by_type),
        "security": [] if route.needs is Role.NONE else [{"token": []}],
    }
    if route.body is not None:
        operation["requestBody"] = _request_body(route, by_type[repr(route.body)], components)
    return operation


def _request_body(route: Route, schema: Any, components: dict[str, Any]) -> dict[str, Any]:
    media = {"schema": schema}
    example = _BODY_EXAMPLES.get(f"{route.method} {route.path}")
    if example is not None:
        media["example"] = example
    needed = components[schema["$ref"].rpartition("/")[2]].get("required", [])
    return {"required": bool(needed), "content": {"application/json": media}}


def _description(route: Route) -> str:
    needs = "Needs no token." if route.needs is Role.NONE else f"Needs the {route.needs} token."
    return f"{needs} {_LONG_POLL}" if "wait" in route.query.__struct_fields__ else needs


def operation_id(route: Route) -> str:
    """Return a unique, readable id of the operation."""
    return f"{route.method.lower()}_{re.sub(r'[^a-z]+', '_', route.path.lower()).strip('_')}"


def _parameters(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    inside = [
        {"name": name, "in": "path", "required": True, "schema": _PATH_VALUES[name]}
        | ({"example": _ID_EXAMPLES[route.path]} if name == "id" and route.path in _ID_EXAMPLES else {})
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    properties = components[route.query.__name__].get("properties", {})
    needed = components[route.query.__name__].get("required", [])
    asked = [
        {"name": name, "in": "query", "schema": _not_null(schema), "required": name in needed}
        for name, schema in properties.items()
        if name not in _UNLISTED
    ]
    return inside + asked


def _not_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from a schema: a query string omits optional values instead."""
    choices = [choice for choice in schema.get("anyOf", [schema]) if choice != {"type": "null"}]
    return {key: value for key, value in choices[0].items() if key != "default"}


def _with_ecma_patterns(value: Any) -> Any:
    """Replace \\Z, which JSON Schema does not know; its $ means the same."""
    if isinstance(value, dict):
        return {
            key: item.replace("\\Z", "$") if key == "pattern" else _with_ecma_patterns(item)
            for key, item in value.items()
        }
    return [_with_ecma_patterns(item) for item in value] if isinstance(value, list) else value


def _responses(route: Route, by_type: dict[str, Any]) -> dict[str, Any]:
    media = "text/plain" if route.answer is str else "application/json"
    content = {media: {"schema": by_type[repr(route.answer)]}}
    good: dict[str, Any] = {"description": "done", "content": content}
    links = _LINKS.get(f"{route.method} {route.path}")
    if links:
        good["links"] = links
    error = {"application/json": {"schema": by_type[repr(ErrorView)]}}
    bad = {code: {"description": text, "content": error} for code, text in _ERRORS.items()}
    return {str(route.status): good} | bad
