"""How fast the entries of a manifest are checked, by how their maps of metrics are laid out."""
