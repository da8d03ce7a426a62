"""The build of these pages: python -m sphinx docs OUT"""

project = "CSP"
author = "the CSP contributors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "CSP"
html_extra_path = ["llms.txt"]
html_show_copyright = False
# Deep enough for links to a heading of another page.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# Pages need nothing from the network.
html_use_opensearch = ""
