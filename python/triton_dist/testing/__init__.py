"""The pytest plugin for multi-rank tests."""
