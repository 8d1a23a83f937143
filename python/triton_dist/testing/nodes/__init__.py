"""Tests on several nodes: on each a process that leases NPUs there and starts ranks through torchrun's elastic agent.

    pytest ── launch command (ssh, docker exec, …) ── node ── elastic agent ── rank 0 … rank n-1
              of each host

`hosts` says where the nodes are and how a command gets there, `namespaces` makes two of this one machine; `remote` is
pytest's side of one node and `job` what pytest does for one test. On the node, `node` is the process that answers to
pytest, `elastic` the one that runs torchrun's agent, and `worker` what that starts as a rank. `frames` carries the
messages, over the standard streams of the launch command: no port is opened, and nobody else can join in.
"""
