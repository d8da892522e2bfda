//! A model written by hand in C, run through the safe interface.

mod support;

use aoti_runtime::{
    DType, DynTensor, ErrorCode, Executor, Inline, KernelEvent, KernelPhase, LoadOptions, Model, NamedTensor,
    PrepareOptions, Stream, TensorView, ThreadPool, Verdict, Weights, Workspace,
};
use std::sync::Arc;
use support::library;

fn model() -> Model {
    library(&[]).unwrap().load(LoadOptions::default()).unwrap()
}

fn run(
    model: &Model,
    view: &TensorView<'_, f32>,
    executor: &dyn Executor,
) -> Result<DynTensor, aoti_runtime::Error> {
    let mut y = DynTensor::empty(DType::F32);
    model.run(&[view.erase()], &mut [&mut y], None, &mut Workspace::new(), executor)?;
    Ok(y)
}

#[test]
fn a_run_gives_values_and_sizes() {
    let model = model();
    let y = run(&model, &(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).into(), &Inline).unwrap();
    assert_eq!(y.sizes(), [2, 3]);
    assert_eq!(y.as_slice::<f32>().unwrap(), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(model.level(), "by-hand");
}

#[test]
fn sizes_are_told_before_a_run() {
    let x = TensorView::new(&[0f32; 12], &[4, 3]).unwrap();
    assert_eq!(model().output_sizes(&[x.erase()]).unwrap(), [[4, 3]]);
    assert_eq!(model().workspace_bytes(&[x.erase()], 2).unwrap(), 4 * 3 * 4 + 128);
}

#[test]
fn the_tables_are_read() {
    let library = library(&["FAKE_STATE"]).unwrap();
    let info = library.info().unwrap();
    assert_eq!((info.name.as_str(), info.compiler.as_str()), ("fake", "by hand"));
    assert_eq!(info.inputs[0].name, "x");
    assert_eq!(info.inputs[0].dims[0].expression.as_deref(), Some("batch"));
    assert_eq!((info.inputs[0].dims[1].min, info.inputs[0].dims[1].max), (3, 3));
    assert_eq!((info.outputs[1].dtype, info.outputs[1].dims.len()), (DType::I64, 0));
    assert_eq!((info.constants[0].name.as_str(), info.constants[0].is_read), ("layer.bias", true));
    assert_eq!((info.states.len(), info.state_bytes, info.weights_bytes), (1, 64, 64));
}

#[test]
fn bad_inputs_are_errors_of_the_model() {
    let model = model();
    let error = run(&model, &TensorView::new(&[0.0; 8], &[2, 4]).unwrap(), &Inline).unwrap_err();
    assert_eq!((error.code(), error.message()), (ErrorCode::Size, "input `x`: dimension 1 is 4, not 3"));
    let error = run(&model, &TensorView::new(&[], &[0, 3]).unwrap(), &Inline).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Range);
    let error = run(&model, &TensorView::from(&[0.0, 0.0, 0.0]), &Inline).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Rank);
    let mut y = DynTensor::empty(DType::F32);
    let wrong = TensorView::from(&[[1i64, 2, 3]]);
    let error = model.run(&[wrong.erase()], &mut [&mut y], None, &mut Workspace::new(), &Inline).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DType);
    let error = model.run(&[], &mut [&mut y], None, &mut Workspace::new(), &Inline).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Count);
}

#[test]
fn bad_outputs_are_refused() {
    let model = model();
    let x = TensorView::from(&[[1f32, 2.0, 3.0]]);
    let mut y = DynTensor::empty(DType::F64);
    let error = model.run(&[x.erase()], &mut [&mut y], None, &mut Workspace::new(), &Inline).unwrap_err();
    assert_eq!(error.message(), "output `y` is f32, not f64");
    let error = model.run(&[x.erase()], &mut [], None, &mut Workspace::new(), &Inline).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Count);
}

#[test]
fn an_error_does_not_spoil_the_workspace() {
    let model = model();
    let (mut workspace, mut y) = (Workspace::new(), DynTensor::empty(DType::F32));
    for rows in [2usize, 0, 5, 0, 2] {
        let data = vec![1f32; rows * 3];
        let x = TensorView::new(&data, &[rows, 3]).unwrap();
        let result = model.run(&[x.erase()], &mut [&mut y], None, &mut workspace, &Inline);
        assert_eq!(result.is_ok(), rows > 0);
        if rows > 0 {
            assert_eq!(y.as_slice::<f32>().unwrap(), vec![2f32; rows * 3]);
        }
    }
}

#[test]
fn strided_inputs_are_packed() {
    let columns = [1f32, 4.0, 2.0, 5.0, 3.0, 6.0];
    let x = TensorView::strided(&columns, &[2, 3], &[1, 2]).unwrap();
    assert_eq!(
        run(&model(), &x, &Inline).unwrap().as_slice::<f32>().unwrap(),
        [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    );
}

#[test]
fn weights_may_be_given_and_are_checked() {
    let library = library(&[]).unwrap();
    let load = |weights| library.load(LoadOptions { weights, ..LoadOptions::default() });
    let mut bytes = [0u8; 64];
    bytes[..4].copy_from_slice(&5f32.to_ne_bytes());
    let model = load(Weights::bytes(&bytes).unwrap()).unwrap();
    assert_eq!(
        run(&model, &(&[[1.0, 2.0, 3.0]]).into(), &Inline).unwrap().as_slice::<f32>().unwrap(),
        [6.0, 7.0, 8.0]
    );
    let error = load(Weights::bytes(&bytes[..60]).unwrap()).unwrap_err();
    assert_eq!(error.message(), "the weights given to `fake` have 60 bytes instead of 64");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    load(Weights::file(file.path()).unwrap()).unwrap();
    let error = library.load(LoadOptions { cpu_level: Some(3), ..LoadOptions::default() }).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cpu);
}

#[test]
fn weights_are_made_of_tensors_by_name() {
    let library = library(&[]).unwrap();
    let info = library.info().unwrap();
    let value = 3f32.to_ne_bytes();
    let given = |names: &[(&'static str, &'static [usize], &'static [u8])]| {
        let tensor =
            |(name, sizes, bytes): (_, _, _)| (name, NamedTensor { dtype: DType::F32, sizes, bytes });
        let tensors: Vec<_> = names.iter().copied().map(tensor).collect();
        Weights::from_named(&info, tensors)
    };
    let error = |result: Result<Weights, aoti_runtime::Error>| result.unwrap_err().message().to_owned();
    assert_eq!(error(given(&[])), "weight `layer.bias` is missing");
    let several = "2 problems with the weights for `fake`:\n  other\n  weight `layer.bias` is missing";
    assert_eq!(error(given(&[("other", &[1], &[0; 4])])), several);
    let short = "weight `layer.bias` has 3 bytes, which f32 of [1] does not";
    assert_eq!(error(given(&[("layer.bias", &[1], &[0; 3])])), short);
    assert_eq!(error(given(&[("a\0b", &[1], &[0; 4])])), "`a\\u{0}b` is not a weight of the model");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    // An odd length of the header puts the data where no f32 may lie: they are copied.
    let header = r#"{"layer.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} "#;
    std::fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &value].concat())
        .unwrap();
    let weights = Weights::from_safetensors(&path, &info).unwrap();
    let tensor = NamedTensor { dtype: DType::F32, sizes: &[1], bytes: &value };
    let same = Weights::from_named(&info, [("layer.bias", tensor)]).unwrap();
    assert_eq!(weights.digest().unwrap(), same.digest().unwrap());
    assert_ne!(weights.digest(), Weights::bytes(weights.as_bytes().unwrap()).unwrap().digest());
    let model = library.load(LoadOptions { weights, ..LoadOptions::default() }).unwrap();
    assert_eq!(
        run(&model, &(&[[1.0, 2.0, 3.0]]).into(), &Inline).unwrap().as_slice::<f32>().unwrap(),
        [1.0 + 3.01, 2.0 + 3.01, 3.0 + 3.01]
    );
    std::fs::write(&path, [7; 20]).unwrap();
    assert_eq!(Weights::from_safetensors(&path, &info).unwrap_err().code(), ErrorCode::Weights);
}

#[test]
fn a_library_that_takes_no_weights_by_name_says_so() {
    let info = library(&["FAKE_FIXED"]).unwrap().info().unwrap();
    let error = Weights::from_named(&info, []).unwrap_err();
    let text =
        "`fake` takes no weights by name: build it with `weights = \"external\"` or `named-weights = true`";
    assert_eq!((error.code(), error.message()), (ErrorCode::Weights, text));
}

#[test]
fn progress_is_told_and_its_panics_come_back() {
    let info = library(&[]).unwrap().info().unwrap();
    let tensor = NamedTensor { dtype: DType::F32, sizes: &[1], bytes: &[0; 4] };
    let mut told = Vec::new();
    let mut progress = |done, total| told.push((done, total));
    let options = PrepareOptions { executor: Some(&Inline), progress: Some(&mut progress) };
    Weights::prepare(&info, [("layer.bias", tensor)], options).unwrap();
    assert_eq!(told, [(1, 4), (2, 4), (3, 4), (4, 4)]);
    let caught = std::panic::catch_unwind(|| {
        let mut progress = |done: u64, _| assert!(done < 2, "stop here");
        let options = PrepareOptions { executor: None, progress: Some(&mut progress) };
        Weights::prepare(&info, [("layer.bias", tensor)], options)
    });
    assert!(caught.unwrap_err().downcast_ref::<&str>().is_some_and(|text| *text == "stop here"));
}

#[test]
fn weights_change_between_runs() {
    let library = library(&[]).unwrap();
    let weights = |bias: f32| {
        let bytes: Vec<u8> = [bias; 16].iter().flat_map(|bias| bias.to_ne_bytes()).collect();
        Weights::bytes(&bytes).unwrap()
    };
    let model = library.load(LoadOptions { weights: weights(1.0), ..LoadOptions::default() }).unwrap();
    let first = |model: &Model| {
        let x = TensorView::from(&[[0f32, 0.0, 0.0]]);
        run(model, &x, &Inline).unwrap().as_slice::<f32>().unwrap()[0]
    };
    assert_eq!(first(&model), 1.0);
    model.update_weights(weights(2.0)).unwrap();
    assert_eq!(first(&model), 2.0);
    let refused = model.update_weights(Weights::bytes(&[0; 60]).unwrap()).unwrap_err();
    assert_eq!(refused.message(), "the weights given to `fake` have 60 bytes instead of 64");
    assert_eq!((first(&model), model.weights().as_bytes().unwrap().len()), (2.0, 64));
    model.update_weights(Weights::embedded()).unwrap();
    assert_eq!(first(&model), 1.0);
}

#[test]
fn states_count_apart() {
    let model = library(&["FAKE_STATE"]).unwrap().load(LoadOptions::default()).unwrap();
    let mut workspace = Workspace::new();
    let mut next = |state: Option<&mut aoti_runtime::State>| {
        let (mut y, mut n) = (DynTensor::empty(DType::F32), DynTensor::empty(DType::I64));
        let x = TensorView::from(&[[1f32, 2.0, 3.0]]);
        model.run(&[x.erase()], &mut [&mut y, &mut n], state, &mut workspace, &Inline)?;
        Ok::<i64, aoti_runtime::Error>(n.as_slice::<i64>().unwrap()[0])
    };
    let (mut a, mut b) = (model.state().unwrap(), model.state().unwrap());
    assert_eq!((next(Some(&mut a)), next(Some(&mut a)), next(Some(&mut b))), (Ok(11), Ok(12), Ok(11)));
    let mut c = a.clone();
    assert_eq!((next(Some(&mut c)), next(Some(&mut a))), (Ok(13), Ok(13)));
    assert_eq!(next(None).unwrap_err().code(), ErrorCode::Null);
}

#[test]
fn all_ways_to_run_go_on_with_one_state() {
    let model = library(&["FAKE_STATE"]).unwrap().load(LoadOptions::default()).unwrap();
    let (mut y, mut n) = (DynTensor::empty(DType::F32), DynTensor::empty(DType::I64));
    let x = TensorView::from(&[[1f32, 2.0, 3.0]]);
    let there = Arc::new(model.upload(&x.erase().to_tensor().unwrap()).unwrap());
    let outputs = || {
        let make = |dtype, sizes: &[usize]| model.device_tensor(dtype, sizes).unwrap();
        vec![make(DType::F32, &[1, 3]), make(DType::I64, &[])]
    };
    let mut own = model.state().unwrap();
    let targets = &mut [&mut y, &mut n];
    model.run(&[x.erase()], targets, Some(&mut own), &mut Workspace::new(), &Inline).unwrap();
    let mut prepared = model.prepare(&[there.view()], 1).unwrap();
    prepared.run(&[there.view()], &mut outputs(), Some(&mut own), Stream::default()).unwrap();
    let submitted = prepared.submit(vec![there], outputs(), Some(own), Stream::default()).unwrap();
    assert_eq!(submitted.wait().unwrap().outputs[1].download().unwrap().as_slice::<i64>(), Some(&[13][..]));
}

/// The models have other ranks, and more outputs, than the plan that was made for the one before.
#[test]
fn a_workspace_tells_models_at_one_address_apart() {
    let mut workspace = Workspace::new();
    let x = TensorView::from(&[[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    for (kind, sizes) in [("FAKE_ONE", &[2, 3][..]), ("FAKE_CUBE", &[2, 3, 1]), ("FAKE_STATE", &[2, 3])] {
        let library = library(&["FAKE_AT=0x310000000000", kind]).unwrap();
        let model = library.load(LoadOptions::default()).unwrap();
        let mut made: Vec<DynTensor> =
            model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
        let mut state = model.state().unwrap();
        let targets = &mut made.iter_mut().collect::<Vec<_>>();
        model.run(&[x.erase()], targets, Some(&mut state), &mut workspace, &Inline).unwrap();
        assert_eq!(made[0].sizes(), sizes);
        assert_eq!(made[0].as_slice::<f32>(), Some(&[2.0, 3.0, 4.0, 5.0, 6.0, 7.0][..]));
    }
}

#[test]
fn kernels_are_told_of_with_what_they_wrote() {
    let model = model();
    let kernel = &model.info().kernels[0];
    assert_eq!((kernel.name.as_str(), kernel.calls.len(), kernel.module.as_str()), ("add_bias", 2, "layer"));
    let x = TensorView::new(&[1.0f32, 2.0, 3.0], &[1, 3]).unwrap();
    let (mut y, mut workspace) = (DynTensor::empty(DType::F32), Workspace::new());
    let (mut begun, mut written) = (0, Vec::new());
    let mut watch = |event: KernelEvent<'_>| match event.phase {
        KernelPhase::Begin => begun += 1,
        KernelPhase::End(outputs) => written.push(outputs[0].to_tensor().unwrap()),
    };
    let outputs = &mut [&mut y];
    model.run_watched(&[x.erase()], outputs, None, &mut workspace, &Inline, &mut watch).unwrap();
    assert_eq!((begun, written.len()), (1, 1));
    assert_eq!(written[0], y);
    assert_eq!(written[0].as_slice::<f32>(), Some(&[2.0, 3.0, 4.0][..]));
}

#[test]
fn a_panic_of_who_watches_goes_on_after_the_run() {
    let model = model();
    let x = TensorView::new(&[1.0f32, 2.0, 3.0], &[1, 3]).unwrap();
    let (mut y, mut workspace) = (DynTensor::empty(DType::F32), Workspace::new());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let watch = &mut |_: KernelEvent<'_>| panic!("enough");
        model.run_watched(&[x.erase()], &mut [&mut y], None, &mut workspace, &Inline, watch)
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"enough"));
    assert_eq!(y.as_slice::<f32>(), Some(&[2.0, 3.0, 4.0][..]));
}

#[test]
fn prepared_runs_tell_how_long_kernels_took() {
    let model = model();
    let mut x = DynTensor::zeros(DType::F32, &[1, 3]).unwrap();
    x.as_mut_slice::<f32>().unwrap().copy_from_slice(&[1.0, 2.0, 3.0]);
    let there = model.upload(&x).unwrap();
    let mut outputs = [model.device_tensor(DType::F32, &[1, 3]).unwrap()];
    let mut run = model.prepare(&[there.view()], 1).unwrap();
    let mut told = Vec::new();
    let mut tell = |kernel: usize, micros: f64| told.push((kernel, micros));
    run.run_timed(&[there.view()], &mut outputs, None, Stream::default(), &mut tell).unwrap();
    assert_eq!(told, [(0, 12.5)]);
    let y = outputs[0].download().unwrap();
    assert_eq!(y.as_slice::<f32>(), Some(&[2.0, 3.0, 4.0][..]));
    // A panic of who is told goes on after the run.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let tell = &mut |_: usize, _: f64| panic!("enough");
        run.run_timed(&[there.view()], &mut outputs, None, Stream::default(), tell)
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"enough"));
}

#[test]
fn tensors_of_a_model_are_copied_to_those_of_their_sizes() {
    let model = model();
    let mut x = DynTensor::zeros(DType::F32, &[2, 3]).unwrap();
    x.as_mut_slice::<f32>().unwrap()[5] = 7.0;
    let from = model.upload(&x).unwrap();
    let mut to = model.device_tensor(DType::F32, &[2, 3]).unwrap();
    to.copy_from(&from).unwrap();
    assert_eq!(to.download().unwrap(), x);
    let mut other = model.device_tensor(DType::F32, &[3, 2]).unwrap();
    let error = other.copy_from(&from).unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (ErrorCode::Size, "expected a tensor f32 [3, 2], got f32 [2, 3]")
    );
    let mut other = model.device_tensor(DType::I32, &[2, 3]).unwrap();
    assert_eq!(other.copy_from(&from).unwrap_err().code(), ErrorCode::DType);
}

#[test]
fn the_plan_says_which_code_runs_and_why() {
    let plan = model().plan();
    assert_eq!(plan.level, "by-hand");
    assert_eq!(
        (plan.candidates[0].verdict, plan.candidates[0].reason.as_str()),
        (Verdict::Picked, "there is no other")
    );
}

#[test]
fn other_versions_and_gaps_are_refused() {
    let error = library(&["FAKE_VERSION=7"]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Version);
    let message = error.message();
    assert!(message.starts_with("the library has interface version 7; this crate supports 4: "), "{message}");
    assert!(message.ends_with("(aoti-runtime is the older one)"), "{message}");
    assert_eq!(library(&["FAKE_GAP"]).unwrap_err().code(), ErrorCode::Version);
}

#[test]
fn within_a_version_tables_may_be_longer_and_not_shorter() {
    assert!(library(&["FAKE_BYTES=(sizeof(AotiApi)+8)"]).unwrap().load(LoadOptions::default()).is_ok());
    let error = library(&["FAKE_BYTES=(sizeof(AotiApi)-8)"]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Version);
    assert!(error.message().contains("build the model with a newer cargo-aoti"), "{error}");
}

#[test]
fn sixty_four_threads_share_a_model_and_a_pool() {
    let (model, pool) = (model(), ThreadPool::new(3));
    std::thread::scope(|scope| {
        for thread in 0..64usize {
            let (model, pool) = (&model, &pool);
            scope.spawn(move || {
                let mut workspace = Workspace::new();
                let mut y = DynTensor::empty(DType::F32);
                for round in 0..50 {
                    let rows = 1 + (thread * 7 + round) % 90;
                    let data: Vec<f32> = (0..rows * 3).map(|i| (i + thread) as f32).collect();
                    let x = TensorView::new(&data, &[rows, 3]).unwrap();
                    model.run(&[x.erase()], &mut [&mut y], None, &mut workspace, pool).unwrap();
                    assert!(y.as_slice::<f32>().unwrap().iter().zip(&data).all(|(y, x)| *y == x + 1.0));
                }
            });
        }
    });
}
