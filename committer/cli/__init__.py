"""The commands of `frazil`. Heavy imports belong inside the commands: `--help` must be quick.

Nothing but `__main__` imports this.
"""
