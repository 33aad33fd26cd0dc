"""Starts a program that does not outlive the process that started it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

# Becomes the program: asks for a signal when its parent ends, unless that is past already.
_LAUNCH = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


def ends_with_parent(command: Sequence[str]) -> list[str]:
    """Return the command, to be started by this process; its first word is the path of a program.

    On Linux it gets SIGTERM when the *thread* that started it ends; elsewhere it may be left.
    """
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]
