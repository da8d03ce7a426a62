"""The moving picture of README.md and docs/index.md: recorded from the demo, drawn as SVG."""
