"""Five tasks on 8-bit integers at once, by encoding."""
