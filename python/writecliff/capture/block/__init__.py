"""Capture of a block device's requests with kernel tracepoints."""
