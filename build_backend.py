"""setuptools' build backend, with a C++ compiler from PyPI (the wheel ``ziglang``) where the machine has none.

``TOKDFA_ZIG=1`` compiles with it in any case.
"""

import importlib.util
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
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

#: C++17 with the standard library, as the extension modules need it.
PROBE = "#include <vector>\ntemplate <auto n> int f() { return n; }\nint main() { return f<0>(); }\n"


def get_requires_for_build_editable(config_settings=None):
    """setuptools' requirements, and a compiler if need be."""
    required = build_meta.get_requires_for_build_editable(config_settings)
    return required if _has_compiler() else [*required, "ziglang>=0.13"]


def get_requires_for_build_wheel(config_settings=None):
    """The same."""
    return get_requires_for_build_editable(config_settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """A link to this folder; the extension modules lie beside their sources."""
    _find_compiler()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """The wheel of this platform and Python."""
    _find_compiler()
    for left in Path("build").glob("lib*"):  # setuptools packs all that lies there
        shutil.rmtree(left)
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def _find_compiler():
    """Have setuptools compile with zig if there is nothing else; sysconfig's linker would be the absent compiler."""
    if not _has_compiler():
        if importlib.util.find_spec("ziglang") is None:  # pip was told to use what is installed
            sys.exit("No compiler for C++17 was found: install one, or the package ziglang.")
        zig = f"{shlex.quote(sys.executable)} -m ziglang"
        os.environ.update(CC=f"{zig} cc", CXX=f"{zig} c++", AR=f"{zig} ar")
        os.environ.update(LDSHARED=f"{zig} c++ -shared", LDCXXSHARED=f"{zig} c++ -shared")


def _has_compiler():
    """Whether setuptools finds a compiler that compiles `PROBE`."""
    if os.environ.get("TOKDFA_ZIG") == "1":
        return False
    from distutils.ccompiler import new_compiler  # setuptools' own copy
    from distutils.errors import CCompilerError, DistutilsError
    from distutils.sysconfig import customize_compiler

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(PROBE)
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            standard = "/std:c++17" if compiler.compiler_type == "msvc" else "-std=c++17"
            compiler.compile([str(source)], output_dir=folder, extra_postargs=[standard])
        except (CCompilerError, DistutilsError, OSError):
            return False
    return True
