"""The command line of the lab: a command is one file, `cmd_NAME.py`, as in `cli`."""
