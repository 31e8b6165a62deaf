"""The command line ``python -m fmviz COMMAND``, whose commands are modules of `fmviz.cli`."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import traceback
from importlib import import_module
from typing import NoReturn

from fmviz.cli import COMMANDS, _terminal

INTERRUPTED = 130
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _Parser(argparse.ArgumentParser):
    """Argument parser that prints errors as a single sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}. See {self.prog} --help.\n")


def main(given: list[str] | None = None) -> int:
    """Run a command line and return the exit code.

    Errors print a sentence to stderr and return 2; ``--debug`` before the command adds the traceback.
    """
    if given is None:
        # Child processes, the server and workers, must not import from the current folder.
        os.environ["PYTHONSAFEPATH"] = "1"
    debug = "--debug" in (sys.argv if given is None else given)
    try:
        _terminal.open_streams()
        try:
            return _carry_out(sys.argv[1:] if given is None else given)
        finally:  # Also after --help.
            sys.stdout.flush()
    except KeyboardInterrupt:
        _terminal.to_stderr("Interrupted.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has closed it.
        return 0
    except Exception as error:
        if debug:
            _terminal.to_stderr(traceback.format_exc(), end="")
        _terminal.to_stderr(_sentence(error))
        return 2
    finally:
        _terminal.settle(sys.stdout)
        _terminal.settle(sys.stderr)


def _carry_out(given: list[str]) -> int:
    from fmviz import __version__

    parser = _Parser(prog="fmviz", description="Train and visualize sparse factorization machines.")
    parser.add_argument("--version", action="version", version=f"fmviz {__version__}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")
    _terminal.declare({"": _terminal.STORE}, parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    modules = {name: import_module(f"fmviz.cli.{name}") for name in COMMANDS}
    for name, module in modules.items():
        module.add(commands.add_parser(name, help=module.HELP, description=module.HELP))
    arguments = parser.parse_args(given)
    arguments.given = given
    code: int = modules[arguments.command].run(arguments)
    return code


def _sentence(error: Exception) -> str:
    from fmviz.lab.failure import in_words
    from fmviz.lab.store import StoreError

    if isinstance(error, StoreError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{str(error.filename)!r} cannot be used: {error.strerror}."
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return f"The output cannot be written ({error.strerror}); free some space or choose another location."
    sentence, defect = in_words(error)
    return f"{sentence.rstrip('.')}. Use fmviz --debug for the traceback." if defect else sentence


if __name__ == "__main__":
    sys.exit(main())
