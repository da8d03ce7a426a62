"""Wrap an interactive CLI, so that it can take part in a room.

`launch` joins the room, wires the CLI and starts it in a pseudo-terminal. Then two processes run:

- The relay (`relay/`) passes bytes between the person's terminal and the CLI. It imports next to nothing and
  must never die, so it decides nothing.
- The brain (`brain/`) connects the CLI with the room. It may die at any time: the relay starts another one
  and hands it the state that the last one left.

Inside the brain, imports point down: `brain/` uses `capture/` (transcripts and screen become replies) and
`inject/` (messages become keys; how far each message has come), and both use `state/` (what is known of the
CLI and its pane) and `emulator/` (bytes become a screen). What is known of each kind of CLI is in `csp.clis`.
"""
