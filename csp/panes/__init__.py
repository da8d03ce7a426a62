"""The tmux panes of a room, opened by `csp up` and ended by `csp down`.

`up` decides who takes part (lineup), starts the gateway in the background (gateway), builds the panes
(session), waits for the agents (waiting); `down` ends all of it (ending) but what is kept for the next time
(record). The human pane shows the agents' states in the borders (borders).
"""
