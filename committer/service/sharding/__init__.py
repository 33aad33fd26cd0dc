"""Which shards this committer owns. Leases are an optimization: no verdict rests on them."""
