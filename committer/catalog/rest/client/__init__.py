"""The HTTP client of a REST catalog: transport, tokens, configuration. It knows no table."""
