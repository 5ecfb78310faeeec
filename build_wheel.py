"""setuptools' build backend, whose wheels carry compiled kernels (`tokdfa.core.prebuild`): minutes for all of them.

``TOKDFA_KERNELS=no`` builds a wheel without any, and ``TOKDFA_KERNELS=token_index,pushdown_trie`` one with those that a
first mask of these backends needs. Editable installs never have any.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

WANTED = os.environ.get("TOKDFA_KERNELS", "all")
SETS = Path("tokdfa", "core", "prebuilt")


def get_requires_for_build_wheel(config_settings=None):
    """Kernels are compiled by running the package."""
    own = tomllib.loads(Path("pyproject.toml").read_text())["project"]["dependencies"] if WANTED != "no" else []
    return [*build_meta.get_requires_for_build_wheel(config_settings), *own]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel; the kernels are beside the sources only while it is built."""
    try:
        if WANTED != "no":
            backends = [] if WANTED == "all" else WANTED.split(",")
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
            subprocess.run([sys.executable, "-m", "tokdfa.core.prebuild", SETS, *backends], env=environment, check=True)
        return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    finally:
        shutil.rmtree(SETS, ignore_errors=True)
