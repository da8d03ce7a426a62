"""The tmux panes of a room, opened by `csp up` and ended by `csp down`.

`up` decides who takes part (members), starts the gateway in the background (start_gateway), builds the panes
(tmux_session), waits for the agents (wait_ready); `down` ends all of it but what is kept for the next time
(resume_state). Both ask one object what runs of a room and who its members are (room_processes). The human
pane shows the agents' states in the borders (pane_borders).
"""
