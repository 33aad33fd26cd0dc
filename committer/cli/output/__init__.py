"""The output of commands: text that fits a terminal, JSON, Arrow files.

Nothing here knows a command.
"""
