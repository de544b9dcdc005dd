"""`python -m strategy_clinic` is the command `clinic`."""

import sys

from .cli import main

sys.exit(main())
