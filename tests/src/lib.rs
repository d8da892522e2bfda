//! Nothing of its own: the tests of the whole lie in `tests/`, one file a concern.
