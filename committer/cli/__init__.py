"""The commands of `frazil`. Heavy imports belong inside the commands: `--help` must be quick."""
