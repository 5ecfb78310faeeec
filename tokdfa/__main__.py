"""The command ``tokdfa``, also as ``python -m tokdfa``; without the extra ``lab`` it says how to install that."""

from __future__ import annotations

import sys

import tokdfa
from tokdfa.core.packages import EXTRAS, missing_import, module_of

#: Modules of packages that extras install.
_OPTIONAL = {module_of(package) for packages in EXTRAS.values() for package in packages}


def main() -> None:
    """Run the command line. Exit status 1 and one line for a package that it needs and does not find."""
    if sys.argv[1:] == ["--version"]:  # which needs none
        print(f"tokdfa {tokdfa.__version__}")
        return
    try:
        from tokdfa.cli.app import main as run

        run()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _OPTIONAL:
            raise
        sys.exit(f"error: {missing_import(str(error.name), 'the command tokdfa')}")


if __name__ == "__main__":
    main()
