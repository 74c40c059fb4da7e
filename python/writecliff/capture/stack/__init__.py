"""Capture of a program's I/O at each layer above the drive: calls, page cache, block layer."""
