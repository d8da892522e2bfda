//! The numbers that headers define: `constants.rs` is made of them.
//!
//! Reads `constexpr` definitions as a library of level x86-64-v4 has them. Knows sums and products of literals and of other
//! such numbers, and lists of them; no more C++ than that.

/// The numbers that the compiler counts with, and the headers that define them.
const USED: &[(&str, &str)] = &[
    ("attention.h", "kAttentionRows"),
    ("bytes.h", "kSplitWords"),
    ("conv.h", "kMaxTaps"),
    ("depthwise_pixels.h", "kDepthwiseTaps"),
    ("gemm.h", "kBlockBytes"),
    ("gemm.h", "kFewRows"),
    ("gemm.h", "kGeneralRows"),
    ("gemm.h", "kGroup"),
    ("gemm.h", "kMainRows"),
    ("gemm.h", "kPlannedRows"),
    ("gemm.h", "kTileLeast"),
    ("gemm.h", "kTileRows"),
    ("gemm_blas.h", "kBlasColumns"),
    ("gemm_blas.h", "kBlasRows"),
    ("gemm_blas.h", "kBlasStep"),
    ("gemm_groups.h", "kDigitHead"),
    ("gemm_groups.h", "kGroupedRows"),
    ("gemm_stream.h", "kStreamColumns"),
    ("gemm_units.h", "kGemmUnitRows"),
    ("gemm_units.h", "kUnitBlock"),
    ("gemm_units.h", "kUnitBlockRows"),
    ("gemm_units.h", "kUnitDepth"),
    ("gemm_units.h", "kUnitLeastRows"),
    ("gpu/attention.h", "kScoreKeys"),
    ("gpu/recurrent.h", "kRecurrentThreads"),
    ("gpu/roles.h", "kComputers"),
    ("gpu/roles.h", "kCopiers"),
    ("gpu/roles.h", "kPiecePlaces"),
    ("gpu/scan.h", "kScanned"),
    ("gpu/scatter.h", "kOwnUpdates"),
    ("gpu/scatter.h", "kRanked"),
    ("gpu/scatter.h", "kSortTile"),
    ("gpu/simt.h", "kTileSide"),
    ("gpu/skinny.h", "kSkinnyColumns"),
    ("gpu/skinny.h", "kSkinnyThreads"),
    ("gpu/sort.h", "kSorted"),
    ("gpu/unit_fill.h", "kResultPad"),
    ("gpu/unit_fill.h", "kRing"),
    ("gpu/staged_fill.h", "kResultBytes"),
    ("gpu/tensor_map.h", "kSpan"),
    ("gpu/tensor_map.h", "kNeighbours"),
    ("gpu/windows.h", "kRowTaps"),
    ("gpu/windows.h", "kRun"),
    ("group_pixels.h", "kGroupRows"),
    ("group_pixels.h", "kGroupStride"),
    ("group_pixels.h", "kGroupTaps"),
    ("linalg_team.h", "kMatrixThreads"),
    ("pixel_kernels.h", "kPixelRows"),
    ("pixels.h", "kPixelSlack"),
    ("run.h", "kForkJoin"),
    ("run.h", "kGrainsOfPart"),
    ("run.h", "kPartsOfThread"),
    ("tile.h", "kChain"),
    ("tile.h", "kConvRows"),
    ("tile.h", "kPanelBytes"),
    ("winograd.h", "kWinogradPoints"),
    ("winograd.h", "kWinogradTiles"),
    ("winograd_bytes.h", "kPairRows"),
    ("winograd_bytes.h", "kWinogradByteTiles"),
];

/// The name of a number in Rust: `kMainRows` is `MAIN_ROWS`.
fn rust_name(name: &str) -> String {
    let own = name.strip_prefix('k').unwrap_or(name);
    let mut words = String::new();
    for (at, letter) in own.char_indices() {
        if at > 0 && letter.is_uppercase() {
            words.push('_');
        }
        words.push(letter.to_ascii_uppercase());
    }
    words
}

/// What `constants.rs` holds.
fn constants() -> String {
    let mut text = "//! Numbers that headers define, as a library of the widest vectors has them.\n//!\n\
                    //! Written by `cargo xtask regenerate`; change the headers instead.\n"
        .to_owned();
    for (header, name) in USED {
        let (own, all) = (rust_name(name), numbers(header, name));
        let (ty, value) = match &all[..] {
            [number] => ("i64".to_owned(), number.to_string()),
            several => (format!("[i64; {}]", several.len()), format!("{several:?}")),
        };
        text.push_str(&format!("\n/// `{name}` of `{header}`.\npub(crate) const {own}: {ty} = {value};\n"));
    }
    text
}

#[test]
fn constants_are_those_of_the_headers() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/constants.rs");
    let (text, kept) = (constants(), std::fs::read_to_string(&path).expect("it is in the tree"));
    if std::env::var_os("AOTI_REGENERATE").is_some() {
        std::fs::write(path, text).expect("it can be written");
    } else {
        assert_eq!(kept, text, "`cargo xtask regenerate` writes src/constants.rs anew");
    }
}

/// The number of that name in a header.
pub(crate) fn number(header: &str, name: &str) -> i64 {
    let numbers = numbers(header, name);
    let [number] = numbers[..] else { panic!("`{name}` of `{header}` is a list: {numbers:?}") };
    number
}

/// The numbers of that name in a header: one, or those of a list.
pub(crate) fn numbers(header: &str, name: &str) -> Vec<i64> {
    find(header, name).unwrap_or_else(|| panic!("`{header}` has no number `{name}` that can be read"))
}

/// Looks in a header, then in those that it includes.
fn find(header: &str, name: &str) -> Option<Vec<i64>> {
    let (_, text) = super::HEADERS.iter().find(|(file, _)| *file == header)?;
    let text = taken(text);
    text.lines().find_map(|line| defined(header, line, name)).or_else(|| {
        let included = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
        included.map(|file| resolved(header, file)).find_map(|file| find(&file, name))
    })
}

/// The name that an included file has in the table.
fn resolved(header: &str, file: &str) -> String {
    match (file.strip_prefix("../"), header.rsplit_once('/')) {
        (Some(above), _) => above.to_owned(),
        (None, Some((folder, _))) => format!("{folder}/{file}"),
        (None, None) => file.to_owned(),
    }
}

/// The lines that are compiled with AVX-512.
fn taken(text: &str) -> String {
    // For each open condition: whether its lines are taken now, and whether any branch was.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with("#if") {
            let holds = has_wide_vectors(line);
            open.push((holds, holds));
        } else if line.starts_with("#elif") || line.starts_with("#else") {
            let branch = open.last_mut().expect("a condition is open");
            branch.0 = !branch.1 && (line.starts_with("#else") || has_wide_vectors(line));
            branch.1 |= branch.0;
        } else if line.starts_with("#endif") {
            open.pop();
        } else if open.iter().all(|(is_taken, _)| *is_taken) {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

fn has_wide_vectors(condition: &str) -> bool {
    condition.split_whitespace().any(|word| word == "AOTI_AVX512")
}

/// What a line says that a name stands for.
fn defined(header: &str, line: &str, name: &str) -> Option<Vec<i64>> {
    let definitions = line.strip_prefix("constexpr ")?.split(';').next()?;
    if let Some((_, list)) = definitions.split_once(&format!(" {name}[] = {{")) {
        return list.trim_end_matches('}').split(',').map(|item| sum(header, item)).collect();
    }
    let (_, value) = definitions.split_once(&format!(" {name} = "))?;
    Some(vec![sum(header, value.split(", k").next()?)?])
}

fn sum(header: &str, text: &str) -> Option<i64> {
    let parts = text.split(" + ").map(|part| {
        let factors = part.split(" * ").map(|factor| value(header, factor.trim()));
        factors.product::<Option<i64>>()
    });
    parts.sum()
}

fn value(header: &str, text: &str) -> Option<i64> {
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) if text.chars().all(char::is_alphanumeric) => {
            find(header, text).and_then(|numbers| numbers.first().copied())
        }
        Err(_) => None,
    }
}

#[test]
fn numbers_are_read_as_the_widest_vectors_have_them() {
    assert_eq!(numbers("gemm.h", "kTileRows")[0], 14);
    assert_eq!(number("gemm.h", "kPlannedRows"), 56);
    assert_eq!(number("gemm_units.h", "kGemmUnitRows"), 32);
    assert_eq!(number("gpu/roles.h", "kCopiers"), 128);
    assert_eq!(find("gemm.h", "kNowhere"), None);
}
