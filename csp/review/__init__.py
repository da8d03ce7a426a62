"""The disk side of review runs: git, tests, run folders and the mailbox."""
