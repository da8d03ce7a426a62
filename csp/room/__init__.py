"""The rules of a room: pure functions from a state and a command to events.

`decide` turns a command into events or refuses it, `room_reducer.apply` is the only way to change the state.
Nothing here has a clock, does I/O or is random. What is still to be done is computed from the state.
"""
