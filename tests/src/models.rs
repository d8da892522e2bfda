//! Models that the tests compile: the example's, small ones as text, and those of the conformance folder if it is named.

use std::path::{Path, PathBuf};

use crate::subcommand::workspace;

/// Scales rows of three; the first dimension is open.
pub const SCALED: &str = "\
graph \"scaled\" {
  symbol s0 \"batch\" in 1..1024 from input 0 axis 0
  origin o0 = \"\" \"\" \"\"
  const c0 \"weight\": f32[3] = [1.0, 2.0, 3.0]
  input %0 \"x\": f32[s0, 3]
  %1: f32[3] = constant c0
  %2: f32[s0, 3] = view %1 [i1]
  %3: f32[s0, 3] = mul %0, %2
  output %3 \"y\"
}
";

/// The example's trained network: pictures `f32[batch in 1..=64, 1, 8, 8]` to ten probabilities each.
pub fn digits() -> PathBuf {
    workspace().join("examples/digits/models/digits.pt2")
}

/// A case's model below the folder that `AOTI_CONFORMANCE` names. Where there is none, says so.
pub fn conformance(case: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("AOTI_CONFORMANCE");
    let model = folder.map(|folder| Path::new(&folder).join(case).join("model.pt2"));
    let model = model.filter(|model| model.is_file());
    if model.is_none() {
        eprintln!("skipped: AOTI_CONFORMANCE names no folder with the case `{case}`");
    }
    model
}
