"""Constants for the entry of our MCP server in a CLI's settings, alongside the user's own servers.

Our own tools need no approval, because the gateway itself permits or refuses their actions.
"""

NAME = "csp"
#: The variables that the server needs.
ENV = (
    *("CSP_AUTH_TOKEN", "CSP_AGENT", "CSP_GATEWAY_URL", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"),
    *("SSL_CERT_FILE", "CSP_CA_FILE", "PYTHONPATH"),
)
#: Loading the server takes a second, or several on a busy machine. A call may wait for a whole collaboration.
START_S = 60
CALL_S = 1900
