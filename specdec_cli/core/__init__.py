"""Pure functions and small dataclasses on numpy arrays: no I/O, no model, no terminal."""
