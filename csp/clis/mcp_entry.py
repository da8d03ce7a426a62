"""The entry of our MCP server in the settings of a CLI, beside the servers of its user.

Our own tools need no approval: the gateway allows or refuses what they do.
"""

NAME = "csp"
#: The variables that the server needs.
ENV = (
    *("CSP_AUTH_TOKEN", "CSP_AGENT", "CSP_GATEWAY_URL", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"),
    *("SSL_CERT_FILE", "PYTHONPATH"),
)
#: Loading it takes a second, on a busy machine many; a call may wait for a whole collaboration.
START_S = 60
CALL_S = 1900
