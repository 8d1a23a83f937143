"""Container images: `engine` finds docker, `base` makes what images start from, `wheelhouse` what they install.

`build` puts an image together, and `run` runs a session inside it, with what of the host's it needs.
"""
