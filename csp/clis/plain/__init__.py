"""Programs that write a transcript in our own format."""
