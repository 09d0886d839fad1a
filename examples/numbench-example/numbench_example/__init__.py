"""An example of a plugin package for numbench: a task, a provider, a figure and a table."""
