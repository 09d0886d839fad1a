"""What every room stands on: files of JSON lines, secrets, signals, plugins, numbers as text."""
