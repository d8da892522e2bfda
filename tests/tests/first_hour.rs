//! What a new user does in the first hour, in a folder whose name has blanks and umlauts: a project from nothing, a model
//! in it, a run.
//!
//! Nothing is downloaded, and the libraries are compiled in a target folder that later runs of the tests use again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use aoti_tests::models::{self, SCALED};
use aoti_tests::subcommand::{Ended, aoti, cargo, projects};
use aoti_tests::tools;

/// A folder of a user's, with the subcommand and cargo in it.
struct Home {
    _root: tempfile::TempDir,
    folder: PathBuf,
}

impl Home {
    fn new() -> Home {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("Größe und Maß");
        fs::create_dir(&folder).unwrap();
        Home { _root: root, folder }
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    fn aoti(&self, arguments: &[&str]) -> Command {
        let mut command = aoti(&self.folder, &self.cache());
        command.args(arguments);
        command
    }

    /// Cargo in a project of this folder.
    fn cargo(&self, project: &str, arguments: &[&str]) -> Command {
        let mut command = cargo(&self.folder.join(project), &self.cache());
        command.args(arguments);
        command
    }
}

#[test]
fn a_new_project_builds_and_runs_at_once() {
    let home = Home::new();
    fs::copy(models::digits(), home.folder.join("digits.pt2")).unwrap();
    Ended::of(&mut home.aoti(&["new", "ziffern", "--model", "digits.pt2"])).succeeded();
    let ended = Ended::of(&mut home.cargo("ziffern", &["run", "--quiet"])).succeeded();
    assert!(ended.stdout.starts_with("softmax: [1, 10] [0."), "{}", ended.stdout);
}

/// Projects of one test share a package, so that cargo sees one project that changes.
#[test]
fn a_project_grows_from_nothing() {
    let home = Home::new();
    Ended::of(&mut home.aoti(&["new", "wächst", "--name", "grows"])).succeeded();
    fs::remove_dir(home.folder.join("wächst/models")).unwrap();
    let project = Growing { home: &home };
    assert!(project.run().succeeded().stdout.contains("put a model into `models/`"));
    project.finds_models();
    project.checks_without_a_compiler();
    project.says_what_cannot_be();
    project.has_two_models();
    project.is_built_by_its_script();
    project.has_bindings_alone();
}

/// The project of that test, and what happens to it.
struct Growing<'a> {
    home: &'a Home,
}

impl Growing<'_> {
    fn write(&self, name: &str, text: &str) {
        let path = self.home.folder.join("wächst").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.home.folder.join("wächst").join(name)).unwrap()
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        self.home.cargo("wächst", arguments)
    }

    fn run(&self) -> Ended {
        Ended::of(&mut self.cargo(&["run", "--quiet"]))
    }

    /// A folder that appears is noticed; a name is looked up among those there are.
    fn finds_models(&self) {
        self.write("models/my-net.aoti", SCALED);
        self.write("src/main.rs", "aoti_runtime::include_model!(\"mynet\");\nfn main() {}\n");
        let said = self.run().stderr;
        let expected = "there is no model `mynet`; the models of this package: `my-net` (module `my_net`)";
        assert!(said.contains(expected), "{said}");
    }

    /// What only checks needs no compiler, and a build after it is whole.
    fn checks_without_a_compiler(&self) {
        self.write("src/main.rs", MAIN);
        let without = |arguments: &[&str]| {
            Ended::of(self.cargo(arguments).env("CXX", "/nowhere/c++")).succeeded();
        };
        without(&["check", "--quiet"]);
        without(&["check", "--quiet"]);
        without(&["clippy", "--quiet", "--", "-D", "warnings"]);
        assert_eq!(self.run().succeeded().stdout, "[1.0, 4.0, 9.0]\n");
        // What is built stays where nothing has changed, and is not missed.
        without(&["check", "--quiet"]);
        assert_eq!(self.run().succeeded().stdout, "[1.0, 4.0, 9.0]\n");
    }

    /// What cannot be is said at run time, with the input and the bound; at build time, with the model and the place.
    fn says_what_cannot_be(&self) {
        self.write("src/main.rs", &MAIN.replace("[1.0_f32, 2.0, 3.0]", "[1.0_f32, 2.0]"));
        let said = self.run().stderr;
        assert!(said.contains("Error: input `x`: dimension 1 is 2, must be 3"), "{said}");
        self.write("src/main.rs", MAIN);
        self.write("models/second.aoti", "graph {");
        let said = self.run().stderr;
        let is_placed = said.contains("error: grows@0.1.0: model `second` (") && said.contains("[AOTI0009]");
        assert!(is_placed, "{said}");
        self.write("models/second.aoti", SCALED);
        let manifest = self.read("Cargo.toml");
        self.write("Cargo.toml", &format!("{manifest}\n[package.metadata.aoti]\ncpus = [\"native\"]\n"));
        let said = self.run().stderr;
        assert!(said.contains("unknown key `cpus`; did you mean `cpu`? [AOTI0101]"), "{said}");
        self.write("Cargo.toml", &manifest);
    }

    /// Two models, of which one has names of the user's.
    fn has_two_models(&self) {
        let named = "[package.metadata.aoti.models]\n\
            second = { path = \"models/second.aoti\", outputs = [\"scaled\"], dims = { batch = \"rows\" } }\n\
            my-net = { path = \"models/my-net.aoti\" }\n";
        let manifest = self.read("Cargo.toml");
        self.write("Cargo.toml", &format!("{manifest}\n{named}"));
        self.write("src/main.rs", TWO);
        assert_eq!(self.run().succeeded().stdout, "[1.0, 8.0, 27.0] Some(\"rows\")\n");
        let ended = Ended::of(&mut self.home.aoti(&["build", "-m", "wächst/Cargo.toml"])).succeeded();
        assert!(ended.stderr.contains("model `my-net` is the module `my_net`"), "{}", ended.stderr);
        if tools::arm_compiler() {
            let arm = ["build", "-m", "wächst/Cargo.toml", "--target", "aarch64-unknown-linux-gnu"];
            Ended::of(&mut self.home.aoti(&arm)).succeeded();
        }
        self.write("Cargo.toml", &manifest);
    }

    /// The same, said by the build script, which makes one of the models itself and is not run again for that.
    fn is_built_by_its_script(&self) {
        let script = self.read("build.rs");
        self.write("build.rs", SCRIPT);
        assert_eq!(self.run().succeeded().stdout, "[1.0, 8.0, 27.0] Some(\"rows\")\n");
        let again = Ended::of(&mut self.cargo(&["build", "-v"])).succeeded();
        assert!(again.stderr.contains("Fresh grows"), "{}", again.stderr);
        self.write("build.rs", &script);
        self.write("src/main.rs", MAIN);
    }

    /// Bindings say so when they are run, and a choice that there is not is refused.
    fn has_bindings_alone(&self) {
        let with = |value: &str| Ended::of(self.cargo(&["run", "--quiet"]).env("AOTI_BUILD", value)).stderr;
        let said = with("bindings");
        assert!(said.contains("only the bindings of `my-net` were built"), "{said}");
        let said = with("binding");
        assert!(said.contains("`AOTI_BUILD` cannot be `binding`; did you mean `bindings`?"), "{said}");
    }
}

/// Build scripts are compiled without optimisation, and hash models whole.
#[test]
fn a_build_script_takes_little_time_for_a_large_model_that_has_not_changed() {
    const LARGE: usize = 48 << 20;
    /// In seconds of a processor, cargo and the program's own compiler included: a hash without the processor's vectors takes
    /// more for the model alone.
    const MOST: f64 = 2.0;
    let home = Home::new();
    Ended::of(&mut home.aoti(&["new", "groß", "--name", "large"])).succeeded();
    let model = home.folder.join("groß/models/net.aoti");
    fs::write(&model, SCALED.to_owned() + &"\n".repeat(LARGE)).unwrap();
    Ended::of(&mut home.cargo("groß", &["build", "--quiet"])).succeeded();

    fs::File::options().append(true).open(&model).unwrap().set_modified(SystemTime::now()).unwrap();
    let build = home.cargo("groß", &[]);
    let mut timed = Command::new("sh");
    timed.args(["-c", "\"$0\" build --verbose && times"]).arg(build.get_program());
    timed.current_dir(build.get_current_dir().unwrap());
    for (name, value) in build.get_envs() {
        match value {
            Some(value) => timed.env(name, value),
            None => timed.env_remove(name),
        };
    }
    let ended = Ended::of(&mut timed).succeeded();
    assert!(ended.stderr.contains("build-script-build"), "it did not run: {}", ended.stderr);
    // The second line has what the children took, as `0m1.25s 0m0.50s`.
    let line = ended.stdout.lines().nth(1).unwrap_or_else(|| panic!("{}", ended.stdout));
    let seconds = |text: &str| {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        60.0 * minutes.parse::<f64>().unwrap() + seconds.parse::<f64>().unwrap()
    };
    let taken: f64 = line.split_whitespace().map(seconds).sum();
    assert!(taken < MOST, "{taken} s");
}

/// Programs with shared libraries and weights in files, in another folder than they were built in.
#[test]
fn what_is_collected_runs_elsewhere() {
    let home = Home::new();
    Ended::of(&mut home.aoti(&["new", "fort"])).succeeded();
    let project = home.folder.join("fort");
    let manifest = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    let table = "\n[package.metadata.aoti]\ncpu = [\"native\"]\n\
        [package.metadata.aoti.models.my-net]\npath = \"models/net.aoti\"\nlink = \"dylib\"\nweights = \"sidecar\"\n";
    fs::write(project.join("Cargo.toml"), manifest + table).unwrap();
    fs::write(project.join("models/net.aoti"), SCALED).unwrap();
    fs::write(project.join("src/main.rs"), MAIN).unwrap();
    let targets = cargo(&project, &home.cache());
    let mut collect = home.aoti(&["collect", "../hier hin", "--offline"]);
    collect.current_dir(&project).envs(targets.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ended::of(&mut collect).succeeded();

    let (here, there) = (home.folder.join("hier hin"), home.folder.join("anderswo"));
    fs::rename(here, &there).unwrap();
    for file in ["include/aoti_my_net.h", "include/aoti/abi.h", "licenses/index.txt"] {
        assert!(there.join(file).is_file(), "{file}");
    }
    assert!(fs::read_to_string(there.join("licenses/index.txt")).unwrap().contains("aoti-runtime 0"));
    assert_eq!(libraries(&there, "libaoti_my_net_").len(), 1);
    // Where it was built there is nothing any more.
    for script in fs::read_dir(projects().join("debug/build")).unwrap() {
        let script = script.unwrap();
        if script.file_name().to_string_lossy().starts_with("fort-") {
            fs::remove_dir_all(script.path()).unwrap();
        }
    }
    let run = || Ended::of(Command::new(there.join("fort")).current_dir("/").env_remove("LD_LIBRARY_PATH"));
    assert_eq!(run().succeeded().stdout, "[1.0, 4.0, 9.0]\n");
    for file in fs::read_dir(&there).unwrap().map(|entry| entry.unwrap().path()) {
        if file.to_string_lossy().ends_with(".weights.bin") {
            fs::remove_file(file).unwrap();
        }
    }
    let said = run().stderr;
    assert!(said.contains("in none of the folders") && said.contains("anderswo"), "{said}");
}

/// The libraries in a folder whose names begin so; what follows tells packages and versions apart.
fn libraries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_ours =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    files.filter(is_ours).collect()
}

#[test]
fn a_static_program_for_musl_links_and_runs() {
    if !tools::are_there("musl", &["musl-gcc"]) {
        return;
    }
    let home = Home::new();
    Ended::of(&mut home.aoti(&["new", "statisch"])).succeeded();
    fs::write(home.folder.join("statisch/models/net.aoti"), SCALED).unwrap();
    let target = "x86_64-unknown-linux-musl";
    Ended::of(&mut home.aoti(&["build", "-m", "statisch/Cargo.toml", "--target", target])).succeeded();
    let built = home.folder.join("statisch/target/aoti/debug").join(target).join("statisch/net");
    let program = built.join("use.c");
    fs::write(&program, "#include \"aoti_net.h\"\nint main(void) { return aoti_net_api() == 0; }\n").unwrap();
    let mut link = Command::new("musl-gcc");
    link.args(["-static", "-Isrc/include", "use.c"])
        .args(libraries(&built, "libaoti_net_"))
        .args(["-lgcc", "-o", "use"]);
    link.current_dir(&built);
    Ended::of(&mut link).succeeded();
    Ended::of(&mut Command::new(built.join("use"))).succeeded();
    // The module asks for the compiler's library where the target is musl.
    let module = fs::read_to_string(built.join("net.rs")).unwrap();
    assert!(module.contains("link(name = \"gcc\")"), "{module}");
}

/// A program in Rust for musl, as cargo links it: the C library is inside, and nothing is looked for when it starts.
#[test]
fn a_rust_program_for_musl_links_and_runs() {
    let target = "x86_64-unknown-linux-musl";
    if !tools::rust_target("rust-musl", target) {
        return;
    }
    let home = Home::new();
    Ended::of(&mut home.aoti(&["new", "allein"])).succeeded();
    fs::write(home.folder.join("allein/models/my-net.aoti"), SCALED).unwrap();
    fs::write(home.folder.join("allein/src/main.rs"), MAIN).unwrap();
    let mut run = home.cargo("allein", &["run", "--quiet", "--target", target]);
    assert_eq!(Ended::of(&mut run).succeeded().stdout, "[1.0, 4.0, 9.0]\n");
    let program = fs::read(projects().join(target).join("debug/allein")).unwrap();
    assert!(is_static(&program), "the program asks for a loader");
}

/// Whether a program for 64 bits has no segment that names a loader.
fn is_static(program: &[u8]) -> bool {
    let number = |at: usize, bytes: usize| {
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&program[at..at + bytes]);
        usize::try_from(u64::from_le_bytes(number)).unwrap()
    };
    assert_eq!(&program[..5], b"\x7fELF\x02");
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    const INTERPRETER: usize = 3;
    (0..count).all(|header| number(table + header * size, 4) != INTERPRETER)
}

/// The second model's names are the manifest's.
const TWO: &str = "\
aoti_runtime::include_model!(\"my-net\");
aoti_runtime::include_model!(\"second\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = [[1.0_f32, 2.0, 3.0]];
    let y = my_net::Model::load()?.run(&my_net::Inputs { x: (&x).into() })?.y;
    let z = second::Model::load()?.run(&second::Inputs { x: y.view() })?.scaled;
    println!(\"{:?} {:?}\", z.as_slice(), second::Model::info()?.inputs[0].dims[0].expression.as_deref());
    Ok(())
}
";

const SCRIPT: &str = "\
use aoti_build::{Builder, Error, Model};

fn main() -> Result<(), Error> {
    let made = std::path::Path::new(&std::env::var_os(\"OUT_DIR\").unwrap()).join(\"made.aoti\");
    std::fs::copy(\"models/my-net.aoti\", &made).unwrap();
    let second = Model::new(\"second\", made).outputs([\"scaled\"]).dims([(\"batch\", \"rows\")]);
    Builder::new()?.cpu([\"native\"]).model(Model::new(\"my-net\", \"models/my-net.aoti\")).model(second).build()
}
";

/// Linted as strictly as can be.
const MAIN: &str = "\
#![forbid(unsafe_code)]
#![deny(warnings, clippy::all, clippy::pedantic)]
aoti_runtime::include_model!(\"my-net\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = [[1.0_f32, 2.0, 3.0]];
    let y = my_net::Model::load()?.run(&my_net::Inputs { x: (&x).into() })?.y;
    println!(\"{:?}\", y.as_slice());
    Ok(())
}
";
