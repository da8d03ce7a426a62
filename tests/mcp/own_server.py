"""An MCP server of a user's own, by hand: the SDK takes longer to load than this has to say."""

import json
import sys
from typing import Any, Final

_ECHO: Final = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None if there is no such method."""
    match method:
        case "initialize":
            about = {"name": "mine", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [_ECHO]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"echoed {params['arguments']['text']}"}]}
    return None


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request["method"], request.get("params", {}))
        error = {"code": -32601, "message": "Method not found"}
        said = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **said}), flush=True)


if __name__ == "__main__":
    main()
