"""Capture of the requests to a block device of a running machine, with kernel tracepoints."""
