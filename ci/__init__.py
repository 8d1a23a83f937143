"""What the sessions of noxfile.py do, one question a module."""
