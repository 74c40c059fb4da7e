"""The speed of the program itself, apart from that of any drive."""
