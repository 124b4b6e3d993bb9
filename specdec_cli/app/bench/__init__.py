"""The benchmark: does speculation pay on this machine, with these prompts?"""
