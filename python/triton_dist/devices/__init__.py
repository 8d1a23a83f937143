"""Which Ascend NPUs this process may use, in what state they are, and which of them are linked.

`nodes` looks at the device nodes, `npu_smi` runs the driver's tool, `info`, `mapping` and `topology` read what it
prints, `visible` applies ASCEND_VISIBLE_DEVICES and ASCEND_RT_VISIBLE_DEVICES, `survey` puts all of this together,
and `linked` chooses groups of NPUs.

Numbers of an NPU: its physical one is that of /dev/davinci<N>, the same in every container of the host; its logical
one is what CANN counts, from 0, among the NPUs that the container has.
"""
