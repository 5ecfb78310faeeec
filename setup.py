"""The extension modules, one for each ``tokdfa/**/*.pyx``. What is static is in pyproject.toml.

``TOKDFA_CHECKED=1``: with sanitizers and bounds checks, warnings as errors, and the modules of ``tests/checked``, whose
runner sets it.
"""

import os
import re
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CHECKED = os.environ.get("TOKDFA_CHECKED") == "1"
#: What all modules need for typed memoryviews, compiled once.
SHARED = "tokdfa._cyutility"
#: Commands that need to know what there is, and compile nothing.
DESCRIBE = {"egg_info", "dist_info", "sdist"}
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)

sources = [path.as_posix() for path in sorted(Path("tokdfa").rglob("*.pyx"))]
if CHECKED:
    sources += [path.as_posix() for path in sorted(Path("tests", "checked").glob("*.pyx"))]

if sys.platform == "win32":
    standard, common, link = ["/std:c++17"], ["/O2"], []
elif CHECKED:
    # the macros check indices of containers, and that nothing lies between a vector's size and its capacity
    standard = ["-std=c++17", "-D_GLIBCXX_ASSERTIONS", "-D_GLIBCXX_SANITIZE_VECTOR"]
    # a null pointer ends the process without a check at each use, which takes a third of the time to compile
    link = ["-fsanitize=address,undefined", "-fno-sanitize=null,alignment,vptr", "-fno-sanitize-recover=undefined"]
    # Python's own flags include -fwrapv, which would hide overflows
    common = ["-Og", "-g1", "-fno-wrapv", "-fno-omit-frame-pointer", *link]
    # what Cython writes has unused parameters, casts of functions and partly initialized types
    quiet = ["-Wno-unused-parameter", "-Wno-cast-function-type", "-Wno-missing-field-initializers"]
    standard += ["-Wall", "-Wextra", "-Werror", *quiet]
else:
    standard, common = ["-std=c++17"], ["-O2", "-g0", "-fvisibility=hidden"]
    link = ["-O2", *(["-s"] if sys.platform == "linux" else [])]  # -O2: zig's own libraries, too


class BuildExtensions(build_ext):
    """In place, only what has changed is compiled: setuptools compiles elsewhere, pip each time in a new folder."""

    def finalize_options(self):
        """Use all cores: what `setup` is told as an option is forgotten where pip builds an editable install."""
        self.parallel = self.parallel or os.cpu_count()
        super().finalize_options()

    def run(self):
        """Begin with the modules that lie beside the sources."""
        if self.inplace:
            for extension in self.extensions:
                module = self.get_ext_filename(extension.name)
                if os.path.exists(module):
                    built = os.path.join(self.build_lib, module)
                    self.mkpath(os.path.dirname(built))
                    self.copy_file(module, built)  # with its time, if it is newer
        super().run()


def extensions():
    """All modules, as C++."""
    wanted = [
        Extension(
            source.removesuffix(".pyx").replace("/", "."),
            [source],
            language="c++",
            depends=["setup.py"],
            include_dirs=["."],
            extra_compile_args=[*standard, *common],
            extra_link_args=link,
        )
        for source in sources
    ]
    wanted.append(Extension(SHARED, ["tokdfa/_cyutility.c"], extra_compile_args=common, extra_link_args=link))
    if not DESCRIBE.isdisjoint(sys.argv):
        return wanted
    made = cythonize(
        wanted,
        build_dir="build/cython",
        nthreads=os.cpu_count(),
        shared_utility_qualified_name=SHARED,
        compiler_directives={
            "language_level": 3,
            "autotestdict": False,  # no __test__
            "boundscheck": CHECKED,
            "initializedcheck": CHECKED,
            "wraparound": False,
            "cdivision": True,
        },
    )
    for extension in made:
        for header in extension.depends:  # which grows: Cython knows what a module includes, not what headers include
            extension.depends += {*INCLUDE.findall(Path(header).read_text())} - {*extension.depends}
    return made


if __name__ == "__main__":  # not in the processes that cythonize starts
    setup(ext_modules=extensions(), cmdclass={"build_ext": BuildExtensions})
