"""Runs a program, named by the second argument, under an imitation of a newer Triton, named by the first."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import newer_triton

newer_triton.install(sys.argv[1])
del sys.argv[0:2]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
