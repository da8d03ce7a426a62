"""Run the csp command as `python -m csp.cli`."""

import sys

from csp.cli import main

sys.exit(main())
