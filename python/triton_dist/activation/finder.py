"""Import finder for what the simulator stands in for."""
