"""Hold CSP against its limits, beside others in the same run."""
