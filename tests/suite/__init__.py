"""What ./bin/test runs after the set-up: the parts of the suite, their choice and their times."""
