"""Reports of the tests of I/O captures: the capture's map and table first, then the test."""
