"""Run the csp command by the name of its package."""

import sys

from csp.cli import main

sys.exit(main())
