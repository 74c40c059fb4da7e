"""For all tests: Ctrl-C means what it means to a user.

A CI job in the background may hand down SIGINT as ignored; the programs that tests start and stop
would inherit that.
"""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
