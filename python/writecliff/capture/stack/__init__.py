"""What becomes of a program's I/O on its way to the drive: calls, page cache, block layer."""
