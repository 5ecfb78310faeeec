"""What every part stands on and that knows nothing of texts: budgets, contents as numbers, locks, files."""
