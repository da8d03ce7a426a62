"""The definitions of all supported CLIs, one folder per CLI.

A folder is found by its files, so adding a folder adds a CLI everywhere:

- `profile.toml` describes its screen, its keys and how a message is delivered to it. The profile has the name
  of the folder.
- `__init__.py` defines `ADAPTER`, a `csp.clis.adapter.CliAdapter`: how a run is wired, where its transcripts
  are, how they are read, and how the CLI is installed. Profiles select it with `kind` in their [capture]
  table.

`csp up` and `csp doctor` look for every CLI with both files on the machine, and its command has a setting.
`demo`, `generic` and `shell` have only a profile: only their screen is used. `plain` has only an adapter: a
transcript format that any program can write.

The launcher imports these modules before the CLI starts, so they import as little as possible at the top.
"""
