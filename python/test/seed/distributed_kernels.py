import triton
import triton.language as tl
import triton_dist.language as dl
from triton.language.extra.cann.extension import sub_vec_id

@triton.jit
def notify_kernel(signal_ptr, rank):
    if sub_vec_id() == 0:
        # Send signal notification to rank 0: set 1
        dl.notify(
            signal_ptr, 0,
            signal=1, sig_op="set", comm_scope="intra_node",
        )

@triton.jit
def wait_kernel(signal_ptr, world_size):
    if sub_vec_id() == 0:
        # Wait for notifications from all other ranks (barrier scans in 64-byte stride)
        token = dl.wait(
            signal_ptr, world_size - 1,
            scope="gpu", _semantic="acquire", waitValue=1,
        )
        data_ptr = dl.consume_token(signal_ptr, token)
