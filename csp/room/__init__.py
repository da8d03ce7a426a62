"""The rules of a room: pure functions from a state and a command to events.

`decide` turns a command into events or refuses it. `room_reducer.apply` is the only way to change the state.
Nothing here reads a clock, performs I/O or uses randomness. Pending work is computed from the state.
"""
