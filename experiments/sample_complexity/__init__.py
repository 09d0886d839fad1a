"""How many questions each encoding needs to learn operations on short integers; see plan.md."""
