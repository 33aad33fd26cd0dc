"""Types and single values: JSON and text forms, calendars, transforms, locations."""
