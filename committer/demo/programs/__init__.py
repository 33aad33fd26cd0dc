"""The processes of the demo: started, watched, stopped."""
