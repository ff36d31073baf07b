"""The program ``volery``."""

from __future__ import annotations

import os
import signal
import sys

from volery import _volery


def main() -> None:
    """Run the program with the words of this process and end the process."""
    # The program handles signals itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = _volery.main([sys.executable, "-m", "volery"], sys.argv[1:])
    sys.stdout.flush()
    # Threads of the run are not waited for, as in the program.
    os._exit(status)


if __name__ == "__main__":
    main()
