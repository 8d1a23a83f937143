"""A compiler class with the shape of later releases of triton-ascend: a stand-in for one that is not there.

Unlike 3.2.0 it has two stages between the adapter's and the binary's, hands add_stages the language and
get_codegen_implementation the options, takes bitcode as an option, and runs the compiler with an environment. What its
stages make is what those of the installed release make.
"""

# The stand-in is of the kind of what it stands for: without types.
# mypy: ignore-errors

import os
import subprocess
import tempfile
from pathlib import Path

from triton.backends.ascend import compiler as stock


class AscendBackend:
    """The installed class behind the newer interface."""

    binary_ext = "npubin"

    def __init__(self, target):
        self.target = target
        self.stock = stock.AscendBackend(target)

    def hash(self):
        return str(self.target)

    def get_codegen_implementation(self, options):
        assert options is not None
        return self.stock.get_codegen_implementation()

    def add_stages(self, stages, options, language):
        assert language == "triton"
        own = {}
        self.stock.add_stages(own, options)
        stages["ttir"] = own["ttir"]
        stages["ttadapter"] = own["ttadapter"]
        stages["mlirbc"] = lambda text, metadata: text.encode()
        stages["bcmlir"] = lambda data, metadata: generic(data.decode())
        stages["npubin"] = lambda text, metadata: binary(text, metadata, self.target.arch)


def generic(text):
    """The IR as a tool prints it that does not know Triton's dialect; the others it prints as they are written."""
    if "tt." not in text.replace("tt.divisibility", "").replace("tt.tensor_kind", ""):
        return text
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "kernel.mlir")
        source.write_text(text)
        tool = Path(stock.__file__).with_name("triton-adapter-opt")
        command = [tool, source, "--mlir-print-op-generic"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def binary(text, metadata, arch):
    """What the compiler makes."""
    text, metadata = stock._parse_linalg_metadata(text, metadata)
    with tempfile.TemporaryDirectory() as directory:
        source, result = Path(directory, "kernel.mlir"), Path(directory, "kernel")
        source.write_text(text)
        flags = [f"--link-aicore-bitcode={path}" for path in metadata["bitcodes"] or ()]
        command = [stock._get_npucompiler_path(), str(source), f"--target={arch}", *flags, "-o", str(result)]
        subprocess.run(command, env=dict(os.environ), capture_output=True, check=True)
        return Path(directory, "kernel.o").read_bytes()
