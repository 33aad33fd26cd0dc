"""Storage adapters, and what is kept on them: the inbox and the quarantine."""
