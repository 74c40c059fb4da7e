"""`python -m tests.kills.served FOLDER`: a drive server's session with its client in one process.

The client sends the same requests each time and then ends the session as a user would. The drive is
served without timing, so that the final state is always the same.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from random import Random
from threading import Thread

from tests.support.nbd_client import NbdClient, socket_uri
from writecliff.cli.main import main

SOCKET, STATE = Path("drive.sock"), Path("drive.state")
_PAGE, _WRITES = 4096, 600


def _requests() -> None:
    draw = Random(21)
    while True:
        try:
            client = NbdClient(socket_uri(SOCKET))
            break
        except OSError:
            time.sleep(0.01)
    with client:
        pages = client.size // _PAGE
        for number in range(_WRITES):
            at = draw.randrange(pages) * _PAGE
            if number % 16 == 15:
                client.trim(at, _PAGE)
            else:
                client.write(at, draw.randbytes(16) * (_PAGE // 16))
        client.flush()
    os.kill(os.getpid(), signal.SIGTERM)


def words(output: str) -> list[str]:
    """Return the command line of the session."""
    serve = ["serve", "sim:small.toml", "--nbd", f"unix:{SOCKET}", "--fast", "--quiet"]
    return [*serve, "--state", str(STATE), "--output", output]


if __name__ == "__main__":
    Thread(target=_requests, daemon=True).start()
    sys.exit(main(words(sys.argv[1])))
