"""The only place with loops, tasks and time. Decisions live in `committer.plan`."""
