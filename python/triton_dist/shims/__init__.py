"""Modules that stand in for packages of the Ascend stack where these are missing."""
