"""Reports for tests of I/O captures, which show the capture before the test."""
