"""The limits of PERFORMANCE beside others, measured in the same run."""
