"""Creates tables in a catalog, for the command and for writers. No text is parsed here."""
