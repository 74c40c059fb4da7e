"""A child process ends with its parent, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from tests.support.processes import alive, wait_for

PARENT = """
import os, subprocess
from functools import partial
from writecliff.parent import die_with_parent
child = subprocess.Popen(["sleep", "60"], preexec_fn=partial(die_with_parent, os.getpid()))
print(child.pid, flush=True)
child.wait()
"""
ORPHAN = """
import os, time
from writecliff.parent import die_with_parent
die_with_parent(os.getpid())  # not its parent: that one has ended
time.sleep(60)
"""


def test_a_child_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
    try:
        assert wait_for(lambda: not alive(child), 5)
    finally:
        if alive(child):
            os.kill(child, signal.SIGKILL)


def test_a_child_whose_parent_has_ended_already_ends_itself() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHAN], check=False, timeout=30)
    assert done.returncode == -signal.SIGKILL
