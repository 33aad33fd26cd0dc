"""Evolution: how schemas, partition specs and sort orders become other ones."""
