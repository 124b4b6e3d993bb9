"""The llama.cpp adapter, the drafters and the decode loop. Knows tokens, not terminals."""
