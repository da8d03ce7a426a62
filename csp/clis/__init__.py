"""What CSP knows about each CLI, in one folder per CLI.

A folder is found by the files in it, so adding a folder adds a CLI everywhere:

- `profile.toml` describes its screen, its keys and how a message is delivered to it. The profile has the name
  of the folder.
- `__init__.py` defines `ADAPTER`, a `csp.clis.adapter.CliAdapter`: how a run is wired, where its transcripts
  are and how they are read, how the CLI is installed. Profiles choose it by `kind` in their [capture] table.

A CLI with both is looked for on the machine by `csp up` and `csp doctor`, and has a setting for its command.
`demo`, `generic` and `shell` are profiles alone: nothing is known but what the screen shows. `plain` is an
adapter alone: a transcript format that any program may write.

The launcher imports these modules before the CLI starts, so they import little at the top and the rest late.
"""
