"""How lit finds and runs the tests of the passes and of code generation.

Parameters: `tdist_tools_dir`, where tdist-opt and tdist-codegen are, and `llvm_tools_dir`, where FileCheck is.
"""

import os
from pathlib import Path
from typing import Any

import lit.formats

# lit puts both into the names of this file.
config: Any = globals()["config"]
lit_config: Any = globals()["lit_config"]

config.name = "tdist"
config.suffixes = [".mlir"]
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).parents[3] / "build" / "lit")

for parameter in ("tdist_tools_dir", "llvm_tools_dir"):
    directory = lit_config.params.get(parameter)
    if directory is None:
        lit_config.fatal(f"say where the tools are: --param={parameter}=DIRECTORY")
    config.environment["PATH"] = directory + os.pathsep + config.environment["PATH"]

# What a tool has freed is filled with garbage, so that a use after that fails always and not by chance. What glibc
# keeps in its thread caches it does not fill.
config.environment["GLIBC_TUNABLES"] = "glibc.malloc.perturb=165:glibc.malloc.tcache_count=0"
