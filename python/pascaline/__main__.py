"""The command line of the package's own program: `python -m pascaline`, or `pascaline`."""

import os
import sys
from typing import NoReturn

from ._words import PROGRAM


def main() -> NoReturn:
    os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])


if __name__ == "__main__":
    main()
