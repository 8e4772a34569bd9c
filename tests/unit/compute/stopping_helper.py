"""A program that starts a helper process, prints its id as soon as it does nothing any more, and kills itself."""

import os
import signal

from nmt.compute.processes import SPAWN, end_with_parent


def stop() -> None:
    """Do nothing any more, not even notice that a connection is closed."""
    end_with_parent()
    os.kill(os.getpid(), signal.SIGSTOP)


def main() -> None:
    """Start the helper, and end without a chance to end it."""
    process = SPAWN.Process(target=stop)
    process.start()
    assert process.pid
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
