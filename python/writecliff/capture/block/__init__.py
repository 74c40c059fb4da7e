"""Captures what reaches a block device of a running machine, through the kernel's tracepoints."""
