"""What a run of builder with reviewer needs on disk: git, tests, folders, the mailbox."""
