"""Wrap an interactive CLI, so that it can take part in a room.

`launch` joins the room, wires the CLI and starts it in a pseudo-terminal. Then two processes run:

- The relay (`relay/`) passes bytes between the person's terminal and the CLI. Its imports are minimal and it
  must never die, so it makes no decisions.
- The brain (`brain/`) connects the CLI to the room. It may die at any time: the relay starts a new one
  and passes it the state that its predecessor left.

Inside the brain, imports point down. `brain/` uses `capture/` (turns transcripts and screens into replies)
and `inject/` (turns messages into keys and tracks their progress). Both use `state/` (the state of the CLI
and its pane) and `emulator/` (turns bytes into a screen). The differences between CLIs are in `csp.clis`.
"""
