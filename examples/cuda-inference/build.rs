//! Compiles `models/encoder.pt2` for this machine's kind of processor and for NVIDIA GPUs. Needs nvcc, or clang 16 or newer,
//! but neither a GPU nor its driver.

fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
