"""A room's tmux panes, opened by `csp up` and closed by `csp down`.

`up` chooses the members (members), starts the gateway in the background (start_gateway), builds the panes
(tmux_session), and waits for the agents (wait_ready). `down` ends them but saves state for the next start
(resume_state). Both use one object to find a room's processes and members (room_processes). The human
pane shows the agents' states in the pane borders (pane_borders).
"""
