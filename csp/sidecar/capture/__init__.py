"""Read the CLI's output: its transcripts and its screen."""
