"""Capture of a program's I/O at each layer: system calls, page cache, block layer, drive."""
