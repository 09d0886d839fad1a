"""Reports: tables, figures, one HTML page and data files, with 95% intervals."""
