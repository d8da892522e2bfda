//! Decides how loop nests run: fusion, memory.
