//! Models of several ranks: what they compute together equals what one device computes, and a rank that fails ends the others.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use aoti_runtime::{
    AnyView, Communicator, DType, DynTensor, Error, ErrorCode, Inline, LoadOptions, Model, ThreadGroup,
    ThreadRank, Workspace,
};
use aoti_tests::native::{assert_close, load, numbers, open};
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, workspace};

/// Sums what two ranks have, and looks at no result of a second collective.
const SUMMED: &str = "\
graph \"summed\" {
  symbol s0 \"n\" in 0..64 from input 0 axis 0
  origin o0 = \"\" \"\" \"\"
  input %0 \"x\": f32[s0, 2]
  %1: f32[s0, 2] = mul %0, %0
  %2: f32[s0, 2] = all_reduce %1 sum of \"0\"
  %3: f32[2*s0, 2] = all_gather %2 ranks 2 of \"0\"
  output %2 \"y\"
}
";

fn model_of(rank: usize) -> Model {
    load(&format!("rank{rank}"), &case(rank).join("model.pt2"))
}

fn case(rank: usize) -> PathBuf {
    workspace().join(format!("tests/models/ranks/rank{rank}"))
}

/// Two models of one library, which is built once for all tests.
fn summed() -> [Model; 2] {
    static PROJECT: OnceLock<Project> = OnceLock::new();
    let project = PROJECT.get_or_init(|| {
        let table =
            "[package.metadata.aoti.models.summed]\npath = \"models/summed.aoti\"\nlink = \"dylib\"\n";
        let project = Project::new(table);
        project.write("models/summed.aoti", SUMMED);
        project.build();
        project
    });
    [(); 2].map(|()| open(project, "summed").load(LoadOptions::default()).expect("the model can be loaded"))
}

/// Runs on one thread.
fn run(model: &Model, inputs: &[DynTensor], workspace: &mut Workspace) -> Result<Vec<DynTensor>, Error> {
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model.run(&views, &mut targets, None, workspace, &Inline)?;
    Ok(outputs)
}

/// Each rank on a thread of its own.
fn on_ranks<T: Send>(
    models: &[Model],
    ranks: Vec<ThreadRank>,
    function: impl Fn(usize, &Model) -> T + Sync,
) -> Vec<T> {
    let function = &function;
    thread::scope(|scope| {
        for (model, own) in models.iter().zip(ranks) {
            model.set_communicator(Arc::new(own));
        }
        let all = models.iter().enumerate();
        let threads: Vec<_> = all.map(|(rank, model)| scope.spawn(move || function(rank, model))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the rank does not panic")).collect()
    })
}

fn tensors(path: PathBuf) -> Vec<DynTensor> {
    let bytes = std::fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |number: usize| {
        let view = file.tensor(&number.to_string()).ok()?;
        Some(DynTensor::from_bytes(DType::F32, view.shape(), view.data()).unwrap())
    };
    (0..).map_while(tensor).collect()
}

#[test]
fn ranks_compute_what_one_device_does() {
    let models = [model_of(0), model_of(1)];
    let results = on_ranks(&models, ThreadGroup::new(2).into_ranks(), |rank, model| {
        let inputs = tensors(case(rank).join("inputs.safetensors"));
        let mut workspace = Workspace::new();
        let first = run(model, &inputs, &mut workspace).unwrap();
        for _ in 0..1000 {
            let again = run(model, &inputs, &mut workspace).unwrap();
            assert!(
                first.iter().zip(&again).all(|(a, b)| a.bytes() == b.bytes()),
                "every run has the same bits"
            );
        }
        first
    });
    for outputs in results {
        let expected = tensors(case(0).join("outputs.safetensors"));
        assert_eq!(outputs.len(), expected.len());
        for (found, expected) in outputs.iter().zip(&expected) {
            assert_eq!(found.sizes(), expected.sizes());
            assert_close(found.as_slice().unwrap(), expected.as_slice().unwrap());
        }
    }
}

#[test]
fn sizes_are_known_when_ranks_run() {
    let models = summed();
    assert_eq!(models[0].info().collectives, 2, "a collective is there for the other ranks, too");
    for n in [0, 1, 7, 64] {
        let results = on_ranks(&models, ThreadGroup::new(2).into_ranks(), |rank, model| {
            run(model, &[numbers(&[n, 2], rank as u64)], &mut Workspace::new()).unwrap()
        });
        let squares =
            |seed| numbers(&[n, 2], seed).as_slice::<f32>().unwrap().iter().map(|x| x * x).collect();
        let [a, b]: [Vec<f32>; 2] = [squares(0), squares(1)];
        let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        results.iter().for_each(|outputs| assert_close(outputs[0].as_slice().unwrap(), &sums));
    }
}

#[test]
fn a_rank_alone_does_not_begin() {
    let [model, _] = summed();
    let error = run(&model, &[numbers(&[3, 2], 0)], &mut Workspace::new()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Ranks);
    assert_eq!(error.message(), "the model computes with other ranks, and the run has no communicator");
}

#[test]
fn a_rank_that_ends_ends_the_others() {
    let models = summed();
    let wait = |ranks: Vec<ThreadRank>| {
        let results = on_ranks(&models, ranks, |rank, model| {
            if rank == 1 {
                // It has never come, and drops its communicator.
                model.set_communicator(Arc::new(Nobody));
                return None;
            }
            Some(run(model, &[numbers(&[3, 2], 0)], &mut Workspace::new()).unwrap_err())
        });
        results.into_iter().flatten().next().unwrap()
    };
    let error = wait(ThreadGroup::new(2).into_ranks());
    assert_eq!(error.code(), ErrorCode::Ranks);
    assert_eq!(error.message(), "rank 1 has left the group: all_reduce of group `0`");
}

#[test]
fn ranks_do_not_wait_longer_than_they_are_told() {
    let models = summed();
    let mut ranks = ThreadGroup::new(2).with_time_limit(Duration::from_millis(50)).into_ranks();
    let _absent = ranks.pop();
    models[0].set_communicator(Arc::new(ranks.remove(0)));
    let error = run(&models[0], &[numbers(&[3, 2], 0)], &mut Workspace::new()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Ranks);
    assert!(
        error.message().starts_with("rank 1 did not come to all_reduce of group `0` within 50ms"),
        "{error}"
    );
    // From then on the group is broken.
    let again = run(&models[0], &[numbers(&[3, 2], 0)], &mut Workspace::new()).unwrap_err();
    assert_eq!(again.message(), error.message());
}

#[test]
fn a_run_that_fails_tells_the_other_ranks() {
    let models = summed();
    let results = on_ranks(&models, ThreadGroup::new(2).into_ranks(), |rank, model| {
        // More rows than the model takes.
        let rows = if rank == 1 { 65 } else { 3 };
        run(model, &[numbers(&[rows, 2], 0)], &mut Workspace::new()).unwrap_err()
    });
    assert_eq!(results[0].code(), ErrorCode::Ranks);
    assert!(results[0].message().starts_with("rank 1 failed: "), "{}", results[0]);
    assert_eq!(results[1].code(), ErrorCode::Range);
}

#[test]
fn ranks_with_different_programs_are_told_so() {
    let models = summed();
    let results = on_ranks(&models, ThreadGroup::new(2).into_ranks(), |rank, model| {
        run(model, &[numbers(&[3 + rank, 2], 0)], &mut Workspace::new()).unwrap_err()
    });
    for error in results {
        assert!(error.message().contains("the ranks' programs differ"), "{error}");
    }
    let results = on_ranks(&models, ThreadGroup::new(3).into_ranks(), |_, model| {
        run(model, &[numbers(&[3, 2], 0)], &mut Workspace::new()).unwrap_err()
    });
    assert!(results.iter().any(|error| !error.message().is_empty()));
}

struct Nobody;

impl Communicator for Nobody {
    fn exchange(&self, _: aoti_runtime::Collective<'_>) -> Result<(), String> {
        panic!("a communicator that panics is an error of the run")
    }
}

#[test]
fn a_communicator_that_panics_is_an_error() {
    let [model, _] = summed();
    model.set_communicator(Arc::new(Nobody));
    let error = run(&model, &[numbers(&[3, 2], 0)], &mut Workspace::new()).unwrap_err();
    assert_eq!(error.message(), "the communicator panicked: all_reduce of group `0`");
}

#[test]
fn the_command_starts_ranks() {
    let project = Project::new("");
    let cases = workspace().join("tests/models/ranks");
    let cases = cases.to_str().expect("the tree has a name in Unicode");
    let verified = Ended::of(&mut project.aoti(&["verify", "--ranks", "2", cases])).succeeded();
    assert_eq!(verified.stdout, "2 passed, 0 failed, 0 skipped\n");
    // Three are not what the program is for; none of them hangs.
    let path = format!("{cases}/rank0");
    let failed = Ended::of(&mut project.aoti(&["run", "--ranks", "3", "--rank-timeout", "5", &path]));
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(failed.stderr.contains("the program is for 2 ranks, and group `0` has 3"), "{}", failed.stderr);
}
