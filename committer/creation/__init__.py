"""How a new table comes into a catalog, for the command and for writers. No text is parsed here."""
