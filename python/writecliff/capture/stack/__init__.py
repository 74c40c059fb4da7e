"""Capture of a program's I/O from system calls through page cache and block layer to drive."""
