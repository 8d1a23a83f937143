"""Device functions for Ascend NPUs."""

from __future__ import annotations
