"""What every part stands on and that knows nothing of texts: tables that grow, contents as numbers, files."""
