"""The `frazil` command: arguments in, exit code out.

0: done. 1: what was asked for failed, or is not there. 2: wrong usage or settings. 130: Ctrl-C.
What it does is in `committer.cli`, one file for each group of commands.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from committer.errors import FrazilError, InvariantError, SettingsError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. An expected error is one line on stderr; only our own bugs have a trace."""
    from committer.cli.app import app

    try:
        app(args=arguments, prog_name="frazil")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except InvariantError:
        raise
    except FrazilError as error:
        sys.stderr.write(f"frazil: {error}\n")
        return 2 if isinstance(error, SettingsError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
