"""The parts that load next to nothing."""
