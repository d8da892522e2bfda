//! The front end for `torch.export` archives.
