"""`numbench` as a child: it ends in order as soon as its parent is gone or closes its input."""

from __future__ import annotations

import os
import signal
import sys
import threading

from bench.cli import main


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.argv[0] = "numbench"
    threading.Thread(target=_end_with_parent, daemon=True).start()
    main()
