"""What agents of this machine are called in a room on another one."""

from csp.panes.joined_room import free_name


def test_a_taken_name_gets_the_machine_and_then_a_number() -> None:
    assert free_name("claude", "laptop.example", {"claude"}) == "claude-laptop"
    assert free_name("claude", "laptop", {"claude", "claude-laptop"}) == "claude-laptop-2"
    assert free_name("c" * 32, "laptop", set()) == f"{'c' * 25}-laptop"
