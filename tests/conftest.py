"""What holds for all tests."""

from __future__ import annotations

import signal

# A shell that starts the tests with `nohup` has hang-ups ignored, and every worker of a test would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
