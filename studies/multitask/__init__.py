"""Five tasks on 8-bit integers, near the ceiling, by encoding."""
