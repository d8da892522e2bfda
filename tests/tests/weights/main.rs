//! Weights by name: what a library makes of a checkpoint is, bit for bit, what the build wrote; what does not fit is named;
//! and runs go on while weights change.

mod built;
mod wrong;

use aoti_runtime::{
    DType, DynTensor, Executor, Inline, LoadOptions, PrepareOptions, ThreadPool, Weights, Workspace,
};
use aoti_tests::models;
use aoti_tests::native::{numbers, open, run_alone};
use aoti_tests::project::Project;
use aoti_tests::subcommand::workspace;
use aoti_tests::tools::are_there;
use built::{Built, checkpoint, file_in, inputs, outputs};
use safetensors::tensor::Dtype;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_checkpoint_gives_the_bits_that_the_build_wrote() {
    let built = Built::new(&models::digits());
    let model = built.model(&built.checkpoint).unwrap();
    assert!(model.weights().as_bytes().unwrap() == built.blob, "the weights differ");
    let input = numbers(&[5, 1, 8, 8], 1);
    let (found, expected) = (run_alone(&model, &input).unwrap(), run_alone(&built.embedded, &input).unwrap());
    assert_eq!(found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
    let by_pool = PrepareOptions { executor: Some(&ThreadPool::new(3)), progress: None };
    let path = built.file(&built.checkpoint);
    let info = built.named.info().unwrap();
    let weights = Weights::from_safetensors_files([path], &info, by_pool).unwrap();
    assert!(weights.as_bytes().unwrap() == built.blob, "threads make a difference");
}

/// A program over constants, whose elements follow from `seed`: a product of 32 columns, whose packed form has as many bytes
/// as its plain one; a convolution with a scale and a shift for each channel, which are folded into its weight; and what
/// is computed from weights alone, in types of several widths.
fn network(seed: u32) -> String {
    format!(
        "graph {{
         const c0 \"linear.weight\": f32[32, 24] weight = random {seed}
         const c1 \"conv.weight\": f32[6, 2, 3, 3] weight = random {}
         const c2 \"norm.scale\": f32[6, 1, 1] weight = random {}
         const c3 \"norm.shift\": f32[6, 1, 1] weight = random {}
         const c4 \"half\": f16[24, 24] weight = random {}
         const c5 \"bias\": f32[32] weight = random {}
         input %x: f32[1, 2, 6, 4]
         %w1: f32[6, 2, 3, 3] = constant c1
         %y: f32[1, 6, 4, 2] = conv %x, %w1 stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
         %s0: f32[6, 1, 1] = constant c2
         %s: f32[1, 6, 4, 2] = view %s0 [i1, 0, 0]
         %t0: f32[6, 1, 1] = constant c3
         %t: f32[1, 6, 4, 2] = view %t0 [i1, 0, 0]
         %scaled: f32[1, 6, 4, 2] = mul %y, %s
         %shifted: f32[1, 6, 4, 2] = add %scaled, %t
         %rows: f32[2, 24] = view %shifted [0, i1 // 4, i1 % 4, i0]
         %h: f16[24, 24] = constant c4
         %wide: f32[24, 24] = cast %h
         %e: f32[24, 24] = exp %wide
         %w0: f32[32, 24] = constant c0
         %plain: f32[24, 32] = view %w0 [i1, i0]
         %sum: f32[24] = sum %e axes [1]
         %factor: f32[2, 24] = view %sum [i1]
         %weighted: f32[2, 24] = mul %rows, %factor
         %p: f32[2, 32] = matmul %weighted, %plain
         %b: f32[32] = constant c5
         %bias: f32[2, 32] = view %b [i1]
         %z: f32[2, 32] = add %p, %bias
         output %z }}",
        seed + 1,
        seed + 2,
        seed + 3,
        seed + 4,
        seed + 5
    )
}

#[test]
fn other_weights_give_what_a_build_with_them_gives() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [1, 50].map(|seed| {
        let path = folder.path().join(format!("{seed}.aoti"));
        fs::write(&path, network(seed)).unwrap();
        Built::new(&path)
    });
    assert_ne!(one.blob, two.blob);
    let weights = one.weights(&two.checkpoint).unwrap();
    assert!(weights.as_bytes().unwrap() == two.blob, "the weights differ");
    let input = numbers(&[1, 2, 6, 4], 1);
    let found = run_alone(&one.model(&two.checkpoint).unwrap(), &input).unwrap();
    let expected = run_alone(&two.embedded, &input).unwrap();
    assert_eq!(found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
}

/// Two convolutions that read one weight in a form that takes more memory: a model makes it when it is created, and neither the
/// weights nor those who prepare or change them know of it.
#[test]
fn forms_that_a_model_makes_follow_its_weights() {
    const WEIGHT: usize = 32 * 32 * 9 * 4;
    let network = |seed: u32| {
        let conv = "stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1 output_padding [0, 0]";
        format!(
            "graph {{
             const c0 \"conv.weight\": f32[32, 32, 3, 3] weight = random {seed}
             input %x: f32[1, 32, 16, 16]
             %w: f32[32, 32, 3, 3] = constant c0
             %y: f32[1, 32, 16, 16] = conv %x, %w {conv}
             %r: f32[1, 32, 16, 16] = tanh %y
             %z: f32[1, 32, 16, 16] = conv %r, %w {conv}
             output %z }}"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [1, 2].map(|seed| {
        let path = folder.path().join(format!("{seed}.aoti"));
        fs::write(&path, network(seed)).unwrap();
        Built::new(&path)
    });
    assert_eq!(one.blob.len(), WEIGHT);
    assert!(one.weights(&two.checkpoint).unwrap().as_bytes().unwrap() == two.blob, "the weights differ");
    let input = numbers(&[1, 32, 16, 16], 3);
    let model = one.model(&one.checkpoint).unwrap();
    let same = |built: &Built| {
        let [found, expected] = [&model, &built.embedded].map(|model| run_alone(model, &input).unwrap());
        assert!(found.bytes() == expected.bytes());
        found
    };
    let first = same(&one);
    model.update_weights(one.weights(&two.checkpoint).unwrap()).unwrap();
    assert!(first.bytes() != same(&two).bytes());
    let wrong = Weights::bytes(&vec![0; WEIGHT / 9 * 16]).unwrap();
    assert!(model.update_weights(wrong).unwrap_err().message().contains("instead of 36864"));
}

/// The zoo and whatever else `AOTI_CHECKPOINTS` names: folders with a model, inputs, and perhaps `state.safetensors` as
/// PyTorch wrote it.
#[test]
fn checkpoints_of_real_models_give_the_bits_that_the_build_wrote() {
    let folders = ["AOTI_CONFORMANCE", "AOTI_CHECKPOINTS"].map(std::env::var_os);
    let [zoo, more] = folders.map(|folder| folder.map(PathBuf::from));
    let lists = zoo.map(|folder| folder.join("zoo")).into_iter().chain(more);
    let cases: Vec<PathBuf> = lists
        .flat_map(|folder| fs::read_dir(folder).expect("it can be listed"))
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.join("model.pt2").is_file())
        .collect();
    if cases.is_empty() {
        eprintln!("skipped: AOTI_CONFORMANCE does not name a folder of cases");
    }
    for case in cases {
        let name = case.file_name().expect("a case has a name").to_string_lossy().into_owned();
        let built = Built::new(&case.join("model.pt2"));
        let state = case.join("state.safetensors");
        let file = if state.is_file() { state } else { built.file(&built.checkpoint) };
        let weights = Weights::from_safetensors(&file, &built.named.info().unwrap());
        let weights = weights.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(weights.as_bytes().unwrap() == built.blob, "{name}: the weights differ");
        let model = built.named.load(LoadOptions { weights, ..LoadOptions::default() }).unwrap();
        let inputs = inputs(&case);
        let (found, expected) =
            (outputs(&model, &inputs).unwrap(), outputs(&built.embedded, &inputs).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.bytes() == expected.bytes(), "{name}: results differ");
        }
        let refused = wrong::check_wrong_checkpoints(&built, &inputs);
        eprintln!(
            "{name}: {} tensors, {} bytes agree; {refused} wrong checkpoints refused",
            built.checkpoint.len(),
            built.blob.len()
        );
    }
}

/// Every kind of device reads constants in forms of its own, which lie one behind the other.
#[test]
fn libraries_for_gpus_get_the_weights_of_every_device() {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    if !are_there("nvcc", &[&nvcc]) {
        return;
    }
    let path = models::digits();
    let checkpoint = checkpoint(&path);
    let mut lengths = Vec::new();
    let cuda = "\ncuda = [\"sm_90a\"]";
    for (devices, cuda) in [("\"cpu\"", ""), ("\"cuda\"", cuda), ("\"cpu\", \"cuda\"", cuda)] {
        let project = Project::new(&format!(
            "[package.metadata.aoti]\ndevices = [{devices}]{cuda}\n\
             [package.metadata.aoti.models.digits]\npath = \"models/digits.pt2\"\nlink = \"dylib\"\n\
             weights = \"external\"\n"
        ));
        let project = project.with_model("digits.pt2", &path);
        project.build();
        let blob = fs::read(project.artefacts("digits").join("digits.weights.bin")).expect("it was written");
        let library = open(&project, "digits");
        let file = file_in(project.folder(), &checkpoint);
        let info = library.info().expect("it tells of itself");
        let weights = Weights::from_safetensors(file, &info).expect("they fit");
        assert!(weights.as_bytes() == Some(blob.as_slice()), "{devices}");
        lengths.push(blob.len());
    }
    assert_eq!(lengths[0] + lengths[1], lengths[2]);
}

#[test]
fn every_run_sees_one_whole_set_while_weights_change() {
    const CHANGES: usize = 1000;
    let built = Built::new(&models::digits());
    let mut other = built.checkpoint.clone();
    for (_, _, bytes) in other.values_mut().filter(|(dtype, ..)| *dtype == Dtype::F32) {
        for element in bytes.chunks_exact_mut(4) {
            let value = f32::from_le_bytes(element.try_into().unwrap()) * 0.75 + 0.01;
            element.copy_from_slice(&value.to_le_bytes());
        }
    }
    let sets = [built.weights(&built.checkpoint).unwrap(), built.weights(&other).unwrap()];
    let load = |weights: &Weights| {
        built.named.load(LoadOptions { weights: weights.clone(), ..LoadOptions::default() }).unwrap()
    };
    let input = numbers(&[3, 1, 8, 8], 7);
    let bits = |output: &DynTensor| output.bytes().to_vec();
    let expected = sets.each_ref().map(|weights| bits(&run_alone(&load(weights), &input).unwrap()));
    assert_ne!(expected[0], expected[1]);
    let (model, done) = (load(&sets[0]), AtomicBool::new(false));
    let counts = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let (mut workspace, mut counts) = (Workspace::new(), [0usize; 2]);
                    let mut output = DynTensor::empty(DType::F32);
                    while !done.load(Ordering::Relaxed) {
                        model
                            .run(&[input.view()], &mut [&mut output], None, &mut workspace, &Inline)
                            .unwrap();
                        let found = expected.iter().position(|set| *set == bits(&output));
                        counts[found.expect("a result belongs to one of the sets")] += 1;
                    }
                    counts
                })
            })
            .collect();
        for change in 0..CHANGES {
            // Made anew each time, so that sets which no run needs go while others run.
            let weights = Weights::bytes(sets[(change + 1) % 2].as_bytes().unwrap()).unwrap();
            model.update_weights(weights).unwrap();
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    let seen: usize = counts.iter().flatten().sum();
    eprintln!("{seen} runs during {CHANGES} changes");
    assert!(seen > 0);
}

/// A library with weights of its own takes others where the manifest says so, and only there.
#[test]
fn embedded_weights_can_be_replaced_where_the_manifest_says_so() {
    let table = "[package.metadata.aoti.models.scaled]\npath = \"models/scaled.aoti\"\nlink = \"dylib\"\n";
    let load = |table: &str| {
        let project = Project::new(table);
        project.write("models/scaled.aoti", models::SCALED);
        project.build();
        open(&project, "scaled")
    };
    let named = load(&format!("{table}named-weights = true\n"));
    let info = named.info().unwrap();
    let bytes: Vec<u8> = [5f32, 6.0, 7.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let tensor = aoti_runtime::NamedTensor { dtype: DType::F32, sizes: &[3], bytes: &bytes };
    let model = named.load(LoadOptions::default()).unwrap();
    let input = DynTensor::from_bytes(DType::F32, &[1, 3], &[0, 0, 128, 63].repeat(3)).unwrap();
    assert_eq!(run_alone(&model, &input).unwrap().as_slice::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    model.update_weights(Weights::from_named(&info, [("weight", tensor)]).unwrap()).unwrap();
    assert_eq!(run_alone(&model, &input).unwrap().as_slice::<f32>().unwrap(), [5.0, 6.0, 7.0]);
    let error = Weights::from_named(&load(table).info().unwrap(), [("weight", tensor)]).unwrap_err();
    assert!(error.message().contains("named-weights = true"), "{error}");
}

/// The same from C: a program that prepares weights, runs, and prints what it is told.
#[test]
fn c_programs_prepare_weights_by_name() {
    let table =
        "[package.metadata.aoti.models.scaled]\npath = \"models/scaled.aoti\"\nweights = \"external\"\n";
    let project = Project::new(table);
    project.write("models/scaled.aoti", models::SCALED);
    project.build();
    let folder = project.artefacts("scaled");
    let program = folder.join("program");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(workspace().join("build-support/aoti-compiler/include"))
        .arg("-I")
        .arg(&folder)
        .arg(workspace().join("tests/programs/prepare.c"))
        .arg(project.library("scaled"))
        .args(["-lm", "-o"])
        .arg(&program)
        .status()
        .expect("the tests need a C compiler named `cc`");
    assert!(status.success());
    let output = Command::new(program).output().unwrap();
    let expected = "`other` is not a weight of the model\nweight `weight` is missing\n\
                    refused: `other` is not a weight of the model (and 1 more)\n\
                    12 of 12 bytes\n5 12 21\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(output.status.success());
}

/// A pool may be shared between preparing and running.
#[test]
fn preparing_uses_the_threads_it_is_given() {
    let built = Built::new(&models::digits());
    let pool = ThreadPool::new(2);
    let executor: &dyn Executor = &pool;
    let mut last = (0, 0);
    let mut progress = |done, total| last = (done, total);
    let options = PrepareOptions { executor: Some(executor), progress: Some(&mut progress) };
    let info = built.named.info().unwrap();
    Weights::from_safetensors_files([built.file(&built.checkpoint)], &info, options).unwrap();
    assert!(last.0 == last.1 && last.0 > 0, "{last:?}");
}
