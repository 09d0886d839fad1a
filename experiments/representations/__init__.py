"""Fixed and floating point in base 2 and base 10, per operation (plan.md)."""
