"""Integrations with other evaluation tools: the benchmark as their tasks, runs in their formats.

The tools are optional. They are imported only inside functions, or in modules that only the tool
itself imports.
"""
