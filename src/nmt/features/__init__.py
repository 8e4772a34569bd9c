"""The features: each folder has everything about one subject, declares what it adds, and can be deleted."""
