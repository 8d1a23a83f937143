export SHMEM_UID_SESSION_ID=192.168.1.100:1234
python run_distributed_kernel.py
