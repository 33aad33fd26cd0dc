"""Tables made from DataFrames: their schema, their layout, their place in a catalog.

No row is written here.
"""
