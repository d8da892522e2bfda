//! Pages have the figures that `--format json` has, need nothing but themselves, and a browser renders them, light and dark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Two kernels at least, and a value between them.
const MODEL: &str = "\
graph \"steps\" {
  symbol s0 \"batch\" in 2..9 from input 0 axis 0
  origin o0 = \"aten.cumsum.default of cumsum\" \"m.py:7 in forward: y = x.cumsum(0) < 1\" \"scan\"
  input %x \"x\": f32[s0, 4]
  %y \"sums\": f32[s0, 4] = cumsum %x axis 1 @ o0
  %z \"powers\": f32[s0, 4] = cumsum %y axis 0 @ o0
  %t \"total\": f32[s0, 4] = cumsum %z axis 1 @ o0
  output %t \"total\"
}
";

fn aoti(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
    command.arg("aoti").args(arguments).current_dir(folder).env("AOTI_CACHE_DIR", folder.join("cache"));
    let Output { status, stdout, stderr } = command.env_remove("CARGO_TARGET_DIR").output().unwrap();
    assert!(status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    for (name, text) in [("src/main.rs", "fn main() {}\n"), ("models/steps.aoti", MODEL)] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The page's own data.
fn data(html: &str) -> Value {
    let (_, rest) = html.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn browser() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&paths).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = found.into_iter().find(|program| program.is_file());
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    assert!(found.is_some() || !required.split(',').any(|name| name == "chromium"), "chromium is required");
    if found.is_none() {
        eprintln!("skipped: no chromium");
    }
    found
}

/// What a browser makes of a page: its document after loading, without a network.
fn loads(page: &Path) {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    for scheme in ["0", "1"] {
        let output = Command::new(&browser)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--dump-dom",
                "--host-resolver-rules=MAP * ~NOTFOUND",
            ])
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        let document = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && document.contains("</footer>"), "{document}");
        // A browser closes what a page leaves open, and moves what is out of place.
        for element in ["<svg", "<table", "<section", "<rect", "<td", "</figure>"] {
            let own = fs::read_to_string(page).unwrap();
            assert_eq!(document.matches(element).count(), own.matches(element).count(), "{element}");
        }
    }
}

#[test]
fn a_benchmark_is_a_page_a_trace_and_a_comparison() {
    let folder = project();
    let folder = folder.path();
    let flags = [
        "bench",
        "steps",
        "--threads",
        "2",
        "--secs",
        "0.05",
        "--html",
        "out/bench.html",
        "--trace",
        "t.json",
    ];
    let said = aoti(folder, &[&flags[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(said.trim()).unwrap();
    let html = fs::read_to_string(folder.join("out/bench.html")).unwrap();
    let own = data(&html);
    assert_eq!((&own["us_med"], &own["profile"]["kernels"]), (&json["us_med"], &json["profile"]["kernels"]));
    for kernel in json["profile"]["kernels"].as_array().unwrap() {
        assert!(html.contains(kernel["name"].as_str().unwrap()), "{kernel}");
    }
    assert!(
        html.contains("y = x.cumsum(0) &lt; 1") && html.contains("aria-label=\"One run, kernel by kernel\"")
    );
    loads(&folder.join("out/bench.html"));

    let trace: Value = serde_json::from_slice(&fs::read(folder.join("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let whole: Vec<&Value> = events.iter().filter(|event| event["cat"] == "kernel").collect();
    assert_eq!(whole.len(), json["profile"]["kernels"].as_array().unwrap().len());
    assert!(whole.windows(2).all(|pair| pair[0]["ts"].as_f64() < pair[1]["ts"].as_f64()), "in their order");

    fs::write(folder.join("old.json"), &said).unwrap();
    let said =
        aoti(folder, &["bench", "steps", "--secs", "0.05", "--compare", "old.json", "--format", "json"]);
    let change = &serde_json::from_str::<Value>(said.trim()).unwrap()["change"];
    let number = |key: &str| change[key].as_f64().unwrap_or_else(|| panic!("{key} in {change}"));
    assert!(number("ratio_low") <= number("ratio") && number("ratio") <= number("ratio_high"), "{change}");
}

#[test]
fn a_model_is_a_page() {
    let folder = project();
    let folder = folder.path();
    aoti(folder, &["inspect", "steps", "--html", "m.html", "--dim", "batch=4"]);
    let html = fs::read_to_string(folder.join("m.html")).unwrap();
    let compiled = &data(&html)["compiled"];
    assert_eq!(compiled["dims"]["batch"], 4);
    let arena = compiled["buffers"].as_array().unwrap().iter().filter(|one| one["place"] == "arena");
    assert!(arena.clone().count() > 0 && arena.clone().all(|one| one["bytes"] == 64), "{compiled}");
    for heading in ["Interface", "Kernels and values", "Memory over time", "Guards"] {
        assert!(html.contains(heading), "{heading}");
    }
    loads(&folder.join("m.html"));
}

#[test]
fn a_build_is_a_page() {
    let folder = project();
    let folder = folder.path();
    let said = aoti(folder, &["build", "--timings", "--message-format", "json"]);
    let timings: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let timings: Vec<&Value> = timings.iter().filter(|one| one["reason"] == "aoti-timing").collect();
    let page = folder.join("target/aoti/timings.html");
    let own = data(&fs::read_to_string(&page).unwrap());
    assert!(!timings.is_empty() && own["actions"].as_array().unwrap().iter().eq(timings));
    loads(&page);
}
