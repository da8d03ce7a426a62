"""Work on disk for review runs: git, tests, run folders and the mailbox."""
