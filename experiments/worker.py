"""Run `numbench` as a child process that stops when its parent exits or closes its stdin."""

from __future__ import annotations

import os
import signal
import sys
import threading


def stop_with_parent() -> None:
    """Start a thread that sends SIGTERM to this process when its stdin is closed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    from numbench.cli import main

    sys.argv[0] = "numbench"
    stop_with_parent()
    main()
