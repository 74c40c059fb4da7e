"""The command line: commands, words for people, progress, exit codes."""
