//! Reads RoCE counters and facts from a Linux kernel.
