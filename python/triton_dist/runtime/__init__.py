"""What runs a compiled kernel: devices, driver, launcher, symmetric heap and host-side shmem."""
