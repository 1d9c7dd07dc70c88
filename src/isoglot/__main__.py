"""`isoglot` and `python -m isoglot`."""

import signal


def main() -> None:
    """Run the command line. Ctrl-C while it is being imported ends the process as the shell expects, without a
    traceback.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from isoglot.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
