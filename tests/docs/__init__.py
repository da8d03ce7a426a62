"""The documentation: its build, its links, its commands and the pages made from the code."""
