"""Changes of a table: what they require, how a table is made of them, which ids they give."""
