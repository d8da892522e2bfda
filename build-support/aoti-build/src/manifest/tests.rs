//! Cases of the metadata table: what is read from it, and every problem that is reported.

use super::*;
use crate::problem::{Code, Problem, suggest};

fn project(manifest: &str, files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!("[package]\nname = \"p\"\nversion = \"0.1.0\"\n{manifest}");
    fs_err::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    for file in files {
        let path = folder.path().join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, "").unwrap();
    }
    folder
}

fn names(manifest: &Manifest) -> Vec<&str> {
    manifest.models.iter().map(|model| model.name.as_str()).collect()
}

fn problems(manifest: &str, files: &[&str]) -> Vec<Problem> {
    let folder = project(manifest, files);
    Manifest::of_folder(folder.path()).unwrap_err().0
}

#[test]
fn without_a_table_every_file_is_a_model() {
    let folder = project("", &["models/b.onnx", "models/a.pt2", "models/c.aoti", "models/readme.md"]);
    let manifest = Manifest::of_folder(folder.path()).unwrap();
    assert_eq!(names(&manifest), ["a", "b", "c"]);
    assert_eq!(manifest.searched, Some(folder.path().join("models")));
}

#[test]
fn a_table_says_all() {
    let table = "[package.metadata.aoti]\ncpu = [\"x86-64-v3\"]\ndevices = [\"cpu\"]\n\
        [package.metadata.aoti.models.digits]\npath = \"m/d.pt2\"\nweights = \"sidecar\"\nnamed-weights = true\nlink = \"dylib\"\n\
        cpu = [\"x86-64-v4\"]\noutputs = [\"logits\"]\ndims = { tokens_d0 = \"batch\" }\n\
         shapes = { x = [\"n\", 4], all = [[4], []], none = false }\nsizes = [{ batch = 1 }, { batch = 64 }]\n\
         [package.metadata.aoti.models.same]\npath = \"m/d.pt2\"\nweights-type = \"int4\"\n";
    let folder = project(table, &["m/d.pt2", "models/other.pt2"]);
    let manifest = Manifest::of_folder(folder.path()).unwrap();
    let [model, same] = &manifest.models[..] else { panic!("{manifest:?}") };
    assert_eq!((model.weights, model.named_weights), (Weights::Sidecar, true));
    assert_eq!((model.link, same.named_weights), (LinkKind::Dylib, false));
    assert_eq!((model.weights_type, same.weights_type), (WeightsType::Own, WeightsType::Int4));
    assert_eq!(
        (&model.levels[..], &same.levels[..]),
        (&["x86-64-v4".to_owned()][..], &["x86-64-v3".to_owned()][..])
    );
    assert_eq!(model.names.outputs, ["logits"]);
    assert_eq!(model.names.dims, [("tokens_d0".to_owned(), "batch".to_owned())]);
    let shapes: Vec<String> = model.shapes.iter().map(|(name, shape)| format!("{name} {shape}")).collect();
    assert_eq!(shapes, ["all [[4],[]]", "none false", "x [\"n\",4]"]);
    assert_eq!(model.sizes, [1, 64].map(|size| BTreeMap::from([("batch".to_owned(), size)])));
    assert_eq!(model.path, folder.path().join("m/d.pt2"));
}

#[test]
fn samples_beside_a_model_are_found_unless_it_wants_no_test() {
    let files = ["m/d.pt2", "m/d.safetensors"];
    let models = "[package.metadata.aoti.models.d]\npath = \"m/d.pt2\"\n\
        [package.metadata.aoti.models.e]\npath = \"m/d.pt2\"\ntest = false\n";
    let folder = project(models, &files);
    let manifest = Manifest::of_folder(folder.path()).unwrap();
    let [tested, other] = &manifest.models[..] else { panic!("{manifest:?}") };
    let samples = tested.samples.as_ref().unwrap();
    assert_eq!(samples.from_package.as_deref(), Some(Path::new("m/d.safetensors")));
    assert_eq!(other.samples, None);
}

#[test]
fn rounding_is_allowed_for_all_models_or_one() {
    let tf32 = |table: &str, own: &str| {
        let table = format!(
            "[package.metadata.aoti]\n{table}\n[package.metadata.aoti.models.digits]\npath = \"d.pt2\"\n{own}\n"
        );
        let folder = project(&table, &["d.pt2"]);
        Manifest::of_folder(folder.path()).map(|manifest| manifest.models[0].tf32.unwrap_or_default())
    };
    let allowed = |matmul, conv| Ok(Tf32 { matmul, conv });
    assert_eq!(tf32("", ""), allowed(false, true), "as PyTorch does");
    assert_eq!(tf32("allow-tf32 = true", ""), allowed(true, true));
    assert_eq!(tf32("allow-tf32 = false", ""), allowed(false, false));
    assert_eq!(tf32("allow-tf32 = false", "allow-tf32 = { matmul = true }"), allowed(true, true));
    assert_eq!(tf32("", "allow-tf32 = { conv = false }"), allowed(false, false));
    let said = |table: &str| tf32(table, "").unwrap_err().0.remove(0).message;
    assert_eq!(said("allow-tf32 = 1"), "`allow-tf32` is no table");
    assert!(said("allow-tf32 = { convs = true }").contains("convs"));
    assert!(said("allow-tf32 = { conv = 1 }").contains("expected a boolean"));
}

#[test]
fn libraries_are_named_by_those_that_there_are() {
    let libraries = |list: &str| {
        let folder = project(&format!("[package.metadata.aoti]\nlibraries = {list}\n"), &["models/d.pt2"]);
        Manifest::of_folder(folder.path()).map(|manifest| manifest.models[0].libraries.clone())
    };
    assert_eq!(libraries("[]"), Ok(vec![]));
    assert_eq!(
        libraries("[\"hipblaslt\", \"onednn\", \"openblas\", \"cublaslt\", \"cublaslt\"]"),
        Ok(MathLibrary::ALL.to_vec())
    );
    let problem = libraries("[\"mkl\"]").unwrap_err().0.remove(0);
    assert_eq!(problem.message, "no library `mkl` is known");
    assert!(problem.to_string().contains("`cublaslt`, `hipblaslt`"), "{problem}");
}

#[test]
fn a_build_script_says_what_a_table_can() {
    let folder = project("", &["models/found.pt2", "m/d.pt2"]);
    let digits = Model::new("digits", "m/d.pt2")
        .weights(Weights::Sidecar)
        .named_weights(true)
        .link(LinkKind::Dylib)
        .levels(["x86-64-v4"])
        .outputs(["logits"])
        .dims([("tokens_d0", "batch")])
        .sizes([("batch", 1)])
        .sizes([("batch", 64)]);
    let script = Script {
        operators: vec![],
        models: vec![digits, Model::new("same", folder.path().join("m/d.pt2"))],
        devices: vec!["cpu".to_owned(), "cuda".to_owned()],
        cpu: vec!["x86-64-v3".to_owned()],
        gpus: [(Device::Cuda, vec!["sm_90a".to_owned()])].into(),
        tf32: Some(Tf32 { matmul: true, conv: true }),
        libraries: vec!["cublaslt".to_owned()],
        toolchains: BTreeMap::new(),
    };
    let table = "[package.metadata.aoti]\nallow-tf32 = true\nlibraries = [\"cublaslt\"]\ncpu = [\"x86-64-v3\"]\ndevices = [\"cpu\", \"cuda\"]\ncuda = [\"sm_90a\"]\n\
        [package.metadata.aoti.models.digits]\npath = \"m/d.pt2\"\nweights = \"sidecar\"\nnamed-weights = true\nlink = \"dylib\"\n\
        cpu = [\"x86-64-v4\"]\noutputs = [\"logits\"]\ndims = { tokens_d0 = \"batch\" }\n\
        sizes = [{ batch = 1 }, { batch = 64 }]\n\
        [package.metadata.aoti.models.same]\npath = \"m/d.pt2\"\n";
    let said = Manifest::empty().with_script(script.clone(), folder.path()).unwrap();
    fs_err::write(folder.path().join("Cargo.toml"), table).unwrap();
    assert_eq!(said.models, Manifest::of_folder(folder.path()).unwrap().models);

    // Beside a table: models are added, and levels replaced where a model has none of its own.
    let table = "[package.metadata.aoti]\ncpu = [\"x86-64\"]\n\
        [package.metadata.aoti.models.follows]\npath = \"m/d.pt2\"\n\
        [package.metadata.aoti.models.stays]\npath = \"m/d.pt2\"\ncpu = [\"x86-64\"]\n";
    fs_err::write(folder.path().join("Cargo.toml"), table).unwrap();
    let both = Manifest::of_folder(folder.path()).unwrap().with_script(script, folder.path()).unwrap();
    assert!(both.models.iter().all(|model| model.cpu && model.gpus.len() == 1), "{both:?}");
    let levels = |model: &Model| (model.name.clone(), model.levels.join(" "));
    let expected =
        [("follows", "x86-64-v3"), ("stays", "x86-64"), ("digits", "x86-64-v4"), ("same", "x86-64-v3")];
    assert_eq!(
        both.models.iter().map(levels).collect::<Vec<_>>(),
        expected.map(|(name, level)| (name.to_owned(), level.to_owned()))
    );
}

/// Read from the source: what a table can say and a script cannot, or the other way round, is an oversight.
#[test]
fn every_key_of_a_table_is_a_method_and_every_method_a_key() {
    /// Methods of the type that take what is built up and give it back.
    fn setters<'a>(source: &'a str, of: &str) -> BTreeSet<&'a str> {
        let body = source.split_once(&format!("\nimpl {of} {{\n")).unwrap().1.split_once("\n}\n").unwrap().0;
        let heads = body.split("#[must_use]\n    pub fn ").skip(1);
        heads.map(|head| head.split(['(', '<']).next().unwrap()).collect()
    }
    // Those that are called otherwise: one model at a time, and a method that says of what `cpu` are the names.
    let called = |key: &'static str, others: &[(&str, &'static str)]| -> String {
        let other = others.iter().find(|(known, _)| *known == key);
        other.map_or(key, |(_, method)| method).replace('-', "_")
    };
    let methods = |keys: &[&'static str], others: &[(&str, &'static str)]| -> BTreeSet<String> {
        keys.iter().map(|key| called(key, others)).collect()
    };
    let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    // One method says the architectures of any GPUs; some have a shorter one beside it.
    let of_gpus = Device::GPUS.map(|gpu| (gpu.as_str(), "architectures"));
    let others = [&of_gpus[..], &[("models", "model"), ("operators", "operator")]].concat();
    let mut builder = owned(setters(include_str!("../builder.rs"), "Builder"));
    builder.retain(|name| of_gpus.iter().all(|(gpu, _)| gpu != name));
    assert_eq!(builder, methods(&check::table_keys(), &others));
    // What a model is made of, its path or its programs, it has from the start; a toolchain its base.
    let model = owned(setters(include_str!("../model.rs"), "Model"));
    let (made_of, settings): (Vec<&'static str>, Vec<&'static str>) =
        check::MODEL_KEYS.iter().partition(|key| ["path", "programs"].contains(key));
    assert_eq!(model, methods(&settings, &[("cpu", "levels")]));
    assert_eq!(made_of, ["path", "programs"]);
    let toolchain = owned(setters(include_str!("../../../../toolchains/src/user.rs"), "UserToolchain"));
    assert_eq!(toolchain, methods(&UserToolchain::KEYS[1..], &[]));
    assert_eq!(UserToolchain::KEYS[0], "base");
}

#[test]
fn toolchains_of_a_build_script_go_before_those_of_the_table() {
    let table = "[package.metadata.aoti.toolchain.board]\nbase = \"gcc\"\nprogram = \"tools/g++\"\n\
        [package.metadata.aoti.toolchain.other]\nbase = \"clang\"\n";
    let folder = project(table, &["models/m.pt2"]);
    let board = UserToolchain::new("gcc")
        .program("tools/g++")
        .archiver("tools/ar")
        .sysroot("root")
        .flags(["-mtune=native"])
        .link_flags(["-Wl,-z,now"])
        .targets(["x86_64-unknown-linux-gnu"]);
    let script = Script { toolchains: [("board".to_owned(), board.clone())].into(), ..Script::default() };
    let both = Manifest::of_folder(folder.path()).unwrap().with_script(script, folder.path()).unwrap();
    let [model] = &both.models[..] else { panic!("{both:?}") };
    let [scripts, manifests] = &model.toolchains[..] else { panic!("{model:?}") };
    assert_eq!(
        (&scripts.file, &scripts.folder),
        (&folder.path().join("build.rs"), &folder.path().to_owned())
    );
    assert_eq!(scripts.tables, [("board".to_owned(), board)].into());
    assert_eq!(manifests.file, folder.path().join("Cargo.toml"));
    assert_eq!(manifests.tables.keys().collect::<Vec<_>>(), ["board", "other"]);
}

#[test]
fn mistakes_of_a_build_script_are_told_at_once() {
    let folder = project("", &["m/d.pt2"]);
    let script = Script {
        models: vec![
            Model::new("absent", "models/absent.pt2"),
            Model::new("my-net", "m/d.pt2").levels(["x86-64-v5"]),
            Model::new("my_net", "m/d.pt2"),
        ],
        cpu: vec!["x86_64".to_owned()],
        gpus: [(Device::Cuda, vec!["sm_80".to_owned()])].into(),
        ..Script::default()
    };
    let problems = Manifest::empty().with_script(script, folder.path()).unwrap_err().0;
    let codes: Vec<Code> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(
        codes,
        [Code::Device, Code::Device, Code::Missing, Code::Device, Code::Duplicate],
        "{problems:?}"
    );
    assert!(problems[2].place.ends_with("build.rs: models.absent.path"), "{}", problems[2].place);
    assert_eq!(problems[0].help.as_deref(), Some("did you mean `x86-64`?"));
}

#[test]
fn the_workspace_is_the_fallback() {
    let root = tempfile::tempdir().unwrap();
    let table = "[workspace]\nmembers = [\"a\"]\n[workspace.metadata.aoti]\ncpu = [\"x86-64\"]\n";
    fs_err::write(root.path().join("Cargo.toml"), table).unwrap();
    fs_err::create_dir_all(root.path().join("a/models")).unwrap();
    fs_err::write(root.path().join("a/Cargo.toml"), "[package]\nname = \"a\"\n").unwrap();
    fs_err::write(root.path().join("a/models/m.pt2"), "").unwrap();
    let manifest = Manifest::of_folder(&root.path().join("a")).unwrap();
    assert_eq!((names(&manifest), &manifest.models[0].levels[..]), (vec!["m"], &["x86-64".to_owned()][..]));
    assert_eq!(manifest.files.len(), 2);
}

#[test]
fn unknown_keys_are_errors_with_a_suggestion_all_at_once() {
    let table = "[package.metadata.aoti]\ncpus = [\"x86-64\"]\nquux = 1\n\
        [package.metadata.aoti.models.d]\npath = \"d.pt2\"\nwieghts = \"embed\"\nlink = \"statik\"\n";
    let found = problems(table, &["d.pt2"]);
    let helps: Vec<_> = found.iter().map(|problem| problem.help.clone().unwrap_or_default()).collect();
    assert_eq!(helps[0], "did you mean `cpu`?");
    assert!(helps[1].starts_with("expected one of"), "{helps:?}");
    assert_eq!(helps[2], "did you mean `weights`?");
    assert_eq!(helps[3], "did you mean `static`?");
    assert!(
        found[2].place.ends_with("Cargo.toml: package.metadata.aoti.models.d.wieghts"),
        "{}",
        found[2].place
    );
    assert_eq!((found[0].location.as_ref().unwrap().line, found[2].location.as_ref().unwrap().line), (5, 9));
    let shown = found[0].to_string();
    for part in [
        "error[AOTI0101]: unknown key `cpus`",
        "Cargo.toml:5:1",
        "5 | cpus = [\"x86-64\"]",
        "help: did you mean",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(found[0].line().ends_with("Cargo.toml:5:1: unknown key `cpus`; did you mean `cpu`? [AOTI0101]"));
}

#[test]
fn bad_values_are_named() {
    let found = problems("[package.metadata.aoti]\ncpu = \"x86-64\"\ndevices = [\"cdua\", \"gpu\"]\n", &[]);
    let codes: Vec<_> = found.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::Value, Code::Device, Code::Device]);
    assert_eq!(found[1].help.as_deref(), Some("did you mean `cuda`?"));
    let found = problems("[package.metadata.aoti]\ncpu = [\"x86-64-v9\"]\n", &[]);
    assert!(found[0].help.as_deref().unwrap().contains("x86-64-v"), "{found:?}");
    let table = "[package.metadata.aoti.models.d]\npath = \"d.pt2\"\ncpu = [\"x86-64-v9\"]\noutputs = \"y\"\ndims = { a = 1 }\n";
    let places: Vec<_> = problems(table, &["d.pt2"]).into_iter().map(|problem| problem.place).collect();
    for (place, key) in places.iter().zip(["outputs", "dims.a", "cpu"]) {
        assert!(place.ends_with(&format!("models.d.{key}")), "{places:?}");
    }
    let found = problems("[package.metadata]\naoti = 3\n", &[]);
    assert_eq!(found[0].message, "expected a table, found a number");
}

#[test]
fn a_misspelt_table_is_told_and_those_of_other_tools_are_not() {
    let notes = |text: &str| Manifest::of_folder(project(text, &[]).path()).unwrap().notes;
    let told = notes("[package.metadata.oati]\ncpu = [\"x86-64\"]\n[workspace.metadata.aot]\n");
    let expected = [
        "`[package.metadata.oati]` is not read; did you mean `[package.metadata.aoti]`?",
        "`[workspace.metadata.aot]` is not read; did you mean `[workspace.metadata.aoti]`?",
    ];
    assert_eq!(told, expected);
    assert!(notes("[package.metadata.auto]\n[package.metadata.docs.rs]\n").is_empty());
    assert!(notes("[package.metadata.aoti]\n[package.metadata.aot]\n").is_empty());
}

#[test]
fn models_of_one_name_are_refused() {
    let found = problems("", &["models/my-net.pt2", "models/my_net.onnx"]);
    assert_eq!(found[0].code, Code::Duplicate);
}

#[test]
fn a_missing_file_is_named() {
    let found = problems("[package.metadata.aoti.models.d]\npath = \"nowhere.pt2\"\n", &[]);
    assert_eq!(found[0].code, Code::Missing);
    assert!(found[0].message.contains("nowhere.pt2"));
}

#[test]
fn broken_manifests_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Manifest::of_folder(folder.path()).unwrap_err().0[0].code, Code::Unreadable);
    fs_err::write(folder.path().join("Cargo.toml"), "[package\n").unwrap();
    let problem = Manifest::of_folder(folder.path()).unwrap_err().0.remove(0);
    assert_eq!((problem.code, problem.location.map(|location| location.line)), (Code::Unreadable, Some(1)));
}

#[test]
fn suggestions_are_near_or_none() {
    assert_eq!(suggest("wieghts", ["path", "weights", "link"]), Some("weights"));
    assert_eq!(suggest("zzz", ["path", "weights", "link"]), None);
    assert_eq!(suggest("", ["path"]), None);
}

#[test]
fn toolchains_of_a_project_are_read_with_the_folder_of_their_manifest() {
    let table = "[package.metadata.aoti.toolchain.board]\nbase = \"gcc-aarch64\"\nprogram = \"tools/g++\"\n\
        flags = [\"-mcpu=neoverse-n1\"]\nlink-flags = [\"-s\"]\nsysroot = \"root\"\n";
    let folder = project(table, &["models/m.aoti"]);
    let manifest = Manifest::of_folder(folder.path()).unwrap();
    let [toolchains] = &manifest.models[0].toolchains[..] else { panic!("{manifest:?}") };
    assert_eq!((toolchains.folder.as_path(), toolchains.tables.len()), (folder.path(), 1));
    let board = &toolchains.tables["board"];
    assert_eq!((board.base.as_str(), board.program.as_deref()), ("gcc-aarch64", Some("tools/g++")));
    assert_eq!(
        (&board.flags[..], &board.link_flags[..]),
        (&["-mcpu=neoverse-n1".to_owned()][..], &["-s".to_owned()][..])
    );
    let table = serde_json::json!({ "aoti": { "cuda": ["sm_80", "native"], "rocm": ["gfx90a"] } });
    let file = folder.path().join("Cargo.toml");
    let settings = BuildSettings::of_metadata(&file, &table, &file, &Value::Null).unwrap();
    let asked = settings.requirements(&Target::new("aarch64-unknown-linux-gnu"));
    let asked: Vec<_> = asked.iter().map(|one| (one.device.as_str(), one.levels.join(" "))).collect();
    let expected = [("cpu", ""), ("cuda", "sm_80 native"), ("rocm", "gfx90a")];
    assert_eq!(asked, expected.map(|(device, levels)| (device, levels.to_owned())));
}

#[test]
fn models_are_built_for_the_devices_that_are_named() {
    let models = |devices: &str| {
        let table = format!("[package.metadata.aoti]\n{devices}\n");
        let folder = project(&table, &["models/d.pt2"]);
        let manifest = Manifest::of_folder(folder.path()).unwrap();
        let Model { cpu, gpus, .. } = manifest.models[0].clone();
        (cpu, gpus)
    };
    let gpus = |device, names: &[&str]| Gpus {
        device,
        architectures: names.iter().map(ToString::to_string).collect(),
    };
    assert_eq!(models(""), (true, vec![]));
    assert_eq!(models("devices = [\"cuda\"]"), (false, vec![gpus(Device::Cuda, &[])]));
    let both = "devices = [\"rocm\", \"cpu\", \"cuda\"]\ncuda = [\"sm_90a\", \"native\"]";
    let expected = vec![gpus(Device::Cuda, &["sm_90a", "native"]), gpus(Device::Rocm, &[])];
    assert_eq!(models(both), (true, expected));
}

#[test]
fn mistakes_in_toolchains_and_architectures_come_with_suggestions() {
    let table = "[package.metadata.aoti]\ncuda = [\"sm90a\", \"sm_80a\"]\nrocm = [\"gfx90x\"]\n\
        [package.metadata.aoti.toolchain.board]\nbase = \"gcc\"\nflag = [\"-O3\"]\nsys-root = \"x\"\n\
        [package.metadata.aoti.toolchain.other]\nprogram = \"g++\"\n\
        [package.metadata.aoti.toolchain.third]\nbase = \"gcc\"\nflags = \"-O3\"\n";
    let found: Vec<String> = problems(table, &[]).iter().map(ToString::to_string).collect();
    for (part, help) in [
        ("unknown key `flag`", "did you mean `flags`?"),
        ("unknown key `sys-root`", "did you mean `sysroot`?"),
        ("missing field `base`", "toolchain.other"),
        ("invalid type: string", "toolchain.third"),
        ("`sm90a` is no cuda architecture", "did you mean `sm_90a`?"),
        ("`sm_80a` is no cuda architecture", "did you mean `sm_80`?"),
        ("`gfx90x` is no rocm architecture", "did you mean `gfx90"),
    ] {
        assert!(found.iter().any(|one| one.contains(part) && one.contains(help)), "{part}: {found:#?}");
    }
    let unused =
        found.iter().filter(|one| one.contains("lists architectures, but `devices` does not name")).count();
    assert_eq!((found.len(), unused), (9, 2), "{found:#?}");
}

const NEGATE: &str = "graph { input %x \"x\": f32[2] %y: f32[2] = neg %x output %y }";

/// The problems of a table of operators, beside files that are there.
fn problems_of_operators(table: &str) -> Vec<String> {
    let folder = project(table, &["models/m.pt2", "ops/f.cpp"]);
    fs_err::write(folder.path().join("ops/neg.aoti"), NEGATE).unwrap();
    let found = Manifest::of_folder(folder.path()).map(|_| Vec::new()).unwrap_or_else(|problems| problems.0);
    found.iter().map(ToString::to_string).collect()
}

fn operator(name: &str, says: &str) -> String {
    format!("[package.metadata.aoti.operators.{name}]\n{says}\n")
}

#[test]
fn operators_are_functions_or_graphs() {
    let table =
        operator("\"a::f\"", "schema = \"(Tensor x) -> Tensor\"\nsymbol = \"a_f\"\nsource = \"ops/f.cpp\"")
            + &operator("\"a::g\"", "schema = \"g(Tensor x) -> Tensor\"\ngraph = \"ops/neg.aoti\"");
    let folder = project(&table, &["models/m.pt2", "ops/f.cpp"]);
    fs_err::write(folder.path().join("ops/neg.aoti"), NEGATE).unwrap();
    let manifest = Manifest::of_folder(folder.path()).unwrap();
    let function =
        Operator::function("a::f", "(Tensor x) -> Tensor", "a_f").source(folder.path().join("ops/f.cpp"));
    let graph = Operator::graph("a::g", "g(Tensor x) -> Tensor", folder.path().join("ops/neg.aoti"));
    assert_eq!(manifest.operators, [function.clone(), graph.clone()]);
    assert_eq!(manifest.models[0].operators, [function, graph.clone()]);
    // A script's own stands in the place of a table's.
    let other = Operator::function("a::f", "(Tensor x, int n) -> Tensor", "other");
    let script = Script { operators: vec![other.clone()], ..Script::default() };
    let manifest = manifest.with_script(script, folder.path()).unwrap();
    assert_eq!(manifest.models[0].operators, [graph, other]);
    assert_eq!(operators_of_project(&folder.path().join("ops")).unwrap().len(), 2);
    assert_eq!(operators_of_project(Path::new("/")).unwrap(), []);
}

#[test]
fn everything_wrong_with_operators_is_told_with_its_place() {
    let schema = "schema = \"(Tensor x) -> Tensor\"\n";
    for (name, says, words) in [
        ("\"a::f\"", "symbol = \"f\"".to_owned(), "operator `a::f` has no `schema`"),
        ("\"a::f\"", schema.to_owned(), "operator `a::f` has neither `symbol` nor `graph`"),
        (
            "\"a::f\"",
            format!("{schema}symbol = \"f\"\ngraph = \"ops/neg.aoti\""),
            "has a `symbol` and a `graph`",
        ),
        (
            "\"a::f\"",
            format!("{schema}graph = \"ops/neg.aoti\"\nsource = \"ops/f.cpp\""),
            "a `graph`, which has no `source`",
        ),
        ("\"a::f\"", format!("{schema}simbol = \"f\""), "unknown key `simbol`"),
        (
            "\"a::f\"",
            format!("{schema}symbol = \"int\""),
            "`int`, which `a::f` names, is no symbol of a C function",
        ),
        ("\"a::f\"", format!("{schema}symbol = \"f\"\nsource = \"ops/g.cpp\""), "there is no file `"),
        ("\"a::f\"", format!("{schema}graph = \"ops/f.cpp\""), "line 1, column 1: expected `graph`"),
        (
            "\"a::f\"",
            "schema = \"(Tensor x, int k) -> Tensor\"\ngraph = \"ops/neg.aoti\"".to_owned(),
            "has 1 input, its schema 2 arguments",
        ),
        (
            "\"a::f\"",
            "schema = \"(Tensor x) -> Tensor(a)\"\nsymbol = \"f\"".to_owned(),
            "the schema of `a::f`: a result `Tensor(a)` is a view of a tensor",
        ),
        (
            "\"a::f\"",
            "schema = \"g(Tensor x) -> Tensor\"\nsymbol = \"f\"".to_owned(),
            "the schema of `a::f`: it is that of `g`",
        ),
        ("\"aten::relu\"", format!("{schema}symbol = \"f\""), "`aten::relu` is PyTorch's own"),
        ("f", format!("{schema}symbol = \"f\""), "`f` is no name of an operator"),
        ("\"a::f\"", "schema = 3\nsymbol = \"f\"".to_owned(), "invalid type"),
    ] {
        let found = problems_of_operators(&operator(name, &says));
        assert!(found.iter().any(|problem| problem.contains(words)), "{says}: {found:#?}");
        assert!(found.iter().all(|problem| problem.contains("Cargo.toml:")), "{found:#?}");
    }
}

#[test]
fn every_key_is_explained() {
    let explained = Code::UnknownKey.explanation();
    let keys = [&check::table_keys()[..], &check::MODEL_KEYS, &check::OPERATOR_KEYS, &UserToolchain::KEYS];
    for key in keys.concat() {
        assert!(explained.contains(&format!("`{key}`")), "`{key}` is not in the explanation");
    }
}
