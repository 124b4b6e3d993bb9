"""One file per thing a user does. Yields events; prints nothing."""
