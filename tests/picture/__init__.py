"""The moving picture of the README: recorded from the demo, drawn as SVG."""
