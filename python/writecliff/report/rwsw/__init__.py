"""Reports of the tests of I/O captures: the capture first, then the test."""
