"""Who has which NPU of the host: kernel locks on empty files, so that nothing has to be given back by the dead.

`inventory` says which NPUs there are, `directory` where their lock files lie, `line` who is next, `pool` puts
these together into `Lease`s, `endpoint` gives each lease a session name and a port that no other lease has.
"""
