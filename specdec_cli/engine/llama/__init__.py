"""llama.cpp through its C-level functions; the only package that imports `llama_cpp`."""
