"""The one way in which the build refuses its settings."""


class BuildSettingsError(Exception):
    """The build cannot succeed as it is set up; the message is one line for the user."""
