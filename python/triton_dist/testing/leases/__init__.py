"""Who has which NPU of the host: kernel locks on bytes of files, so that nothing has to be given back by the dead.

`inventory` says which NPUs there are, `real_npus` those that are not simulated, `directory` where the files with the
locks lie, `holdings` who has which NPU, `line` who waits and `rule` whose turn it is; `pool` puts these together into
`Lease`s. `endpoint` gives each lease a session name and a port that no other lease has, `quarantine` keeps an NPU out
until it is fit again, and `status` tells people about all of it.
"""
