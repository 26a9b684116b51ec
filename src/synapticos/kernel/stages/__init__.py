"""The built-in processors: a file each, and `tables`, where their numbers are."""
