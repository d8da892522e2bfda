//! Compiles `models/compressor.pt2`, with the operators that `Cargo.toml` declares.

fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
