"""The command line interface: commands, tables, progress and exit codes."""
