//! What programs that forbid unsafe code can try: each attempt is an error, or harmless.

mod support;

#[forbid(unsafe_code)]
mod attempts {
    use super::support::library;
    use aoti_runtime::{
        DType, DeviceTensor, DynTensor, Error, ErrorCode, Executor, Inline, LoadOptions, Model, ModelInfo,
        NamedTensor, Prepared, State, Stream, TensorView, ThreadPool, Weights, Workspace,
    };
    use std::{
        panic::{AssertUnwindSafe, catch_unwind, panic_any},
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    fn load(definitions: &[&str]) -> Model {
        library(definitions).unwrap().load(LoadOptions::default()).unwrap()
    }

    fn outputs(model: &Model) -> Vec<DynTensor> {
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect()
    }

    /// All ways to run a model that counts its runs in a state.
    fn every_way(model: &Model, mut state: Option<State>) -> Vec<Result<(), Error>> {
        let x = TensorView::from(&[[1f32, 2.0, 3.0]]);
        let inputs = [x.erase()];
        let (mut made, mut workspace) = (outputs(model), Workspace::new());
        let mut made: Vec<&mut DynTensor> = made.iter_mut().collect();
        let mut all = vec![
            model.run(&inputs, &mut made, state.as_mut(), &mut workspace, &Inline),
            model.run_watched(&inputs, &mut made, state.as_mut(), &mut workspace, &Inline, &mut |_| ()),
            model.run_shared(&inputs, &mut made, state.as_mut()),
        ];
        let on_device = || -> Vec<DeviceTensor<'_>> {
            let sizes = [&[1, 3][..], &[]];
            let outputs = model.info().outputs.iter().zip(sizes);
            outputs.map(|(output, sizes)| model.device_tensor(output.dtype, sizes).unwrap()).collect()
        };
        let prepared = || model.prepare(&inputs, 1).unwrap();
        let (mut targets, stream) = (on_device(), Stream::default());
        all.push(prepared().run(&inputs, &mut targets, state.as_mut(), stream));
        let runs = &mut [prepared(), prepared()];
        all.push(Prepared::run_back_to_back(runs, &inputs, &mut targets, state.as_mut(), stream, 3));
        all.push(prepared().run_timed(&inputs, &mut targets, state.as_mut(), stream, &mut |_, _| ()));
        let here = Arc::new(model.upload(&DynTensor::zeros(DType::F32, &[1, 3]).unwrap()).unwrap());
        let submitted = prepared().submit(vec![here], targets, state, stream);
        all.push(submitted.and_then(|submitted| submitted.wait()).map(drop));
        all
    }

    /// Two libraries of one text are two: what one makes means nothing to the other, however long it is.
    #[test]
    fn states_of_other_models_are_refused_by_every_way_to_run() {
        let (model, other) = (load(&["FAKE_STATE"]), load(&["FAKE_STATE"]));
        assert!(every_way(&model, Some(model.state().unwrap())).iter().all(Result::is_ok));
        let stateless = load(&[]);
        for state in [&other, &stateless].map(|model| model.state().unwrap()) {
            for refused in every_way(&model, Some(state)) {
                let error = refused.unwrap_err();
                let refused = "this state was not created by a model of the library of `fake`";
                assert_eq!((error.code(), error.message()), (ErrorCode::Library, refused));
            }
        }
        for refused in every_way(&model, None) {
            assert_eq!(refused.unwrap_err().message(), "`fake` needs a state");
        }
        for refused in every_way(&stateless, Some(model.state().unwrap())) {
            assert_eq!(refused.unwrap_err().code(), ErrorCode::Library);
        }
        assert!(every_way(&stateless, None).iter().all(Result::is_ok));
    }

    #[test]
    fn one_state_does_not_serve_prepared_runs_of_two_models() {
        let (model, other) = (load(&["FAKE_STATE"]), load(&["FAKE_STATE"]));
        let x = TensorView::from(&[[1f32, 2.0, 3.0]]);
        let inputs = [x.erase()];
        let mut runs = [model.prepare(&inputs, 1).unwrap(), other.prepare(&inputs, 1).unwrap()];
        let mut targets = [
            model.device_tensor(DType::F32, &[1, 3]).unwrap(),
            model.device_tensor(DType::I64, &[]).unwrap(),
        ];
        for owner in [&model, &other] {
            let mut state = owner.state().unwrap();
            let (runs, state) = (&mut runs[..], Some(&mut state));
            let done = Prepared::run_back_to_back(runs, &inputs, &mut targets, state, Stream::default(), 2);
            assert_eq!(done.unwrap_err().code(), ErrorCode::Library);
        }
    }

    #[test]
    fn states_outlive_models_and_go_in_any_order() {
        let library = library(&["FAKE_STATE"]).unwrap();
        let first = library.load(LoadOptions::default()).unwrap();
        let (mut kept, dropped) = (first.state().unwrap(), first.state().unwrap());
        first.update_weights(Weights::bytes(&[0; 64]).unwrap()).unwrap();
        let copy = kept.clone();
        drop(first);
        drop(dropped);
        // Another model of the library goes on with it.
        let second = library.load(LoadOptions::default()).unwrap();
        let x = TensorView::from(&[[1f32, 2.0, 3.0]]);
        let mut made = outputs(&second);
        let mut targets: Vec<&mut DynTensor> = made.iter_mut().collect();
        second.run_shared(&[x.erase()], &mut targets, Some(&mut kept)).unwrap();
        assert_eq!(made[1].as_slice::<i64>(), Some(&[11][..]));
        drop((library, second));
        assert_eq!(copy.try_clone().unwrap().bytes(), 64);
        drop(kept);
        drop(copy);
    }

    #[test]
    fn a_run_that_is_refused_leaves_no_plan() {
        let (plain, counting) = (load(&[]), load(&["FAKE_STATE"]));
        let mut workspace = Workspace::new();
        let mut run = |model: &Model, x: &TensorView<'_, f32>| {
            let mut made = outputs(model);
            let mut targets: Vec<&mut DynTensor> = made.iter_mut().collect();
            let mut state = model.state().unwrap();
            model.run(&[x.erase()], &mut targets, Some(&mut state), &mut workspace, &Inline)?;
            Ok::<_, Error>(made.remove(0).sizes().to_vec())
        };
        let data = [1f32; 6];
        let small = TensorView::new(&data, &[2, 3]).unwrap();
        // As large as no copy of it can be.
        let large = TensorView::strided(&data, &[1 << 58, 3], &[0, 1]).unwrap();
        assert_eq!(run(&plain, &small).unwrap(), [2, 3]);
        for _ in 0..2 {
            assert_eq!(run(&counting, &large).unwrap_err().code(), ErrorCode::Memory);
        }
        assert_eq!(run(&counting, &small).unwrap(), [2, 3]);
    }

    #[test]
    fn sizes_that_no_memory_holds_and_ranks_that_no_tensor_has_are_errors() {
        let model = load(&[]);
        let many = vec![1; 1_000_000];
        for (sizes, code) in [
            (&[1 << 40, 1 << 20][..], ErrorCode::Memory),
            (&[isize::MAX as usize / 4], ErrorCode::Memory),
            (&[usize::MAX, usize::MAX], ErrorCode::Size),
            (&[0, usize::MAX], ErrorCode::Size),
            (&many, ErrorCode::Rank),
        ] {
            assert_eq!(model.device_tensor(DType::F32, sizes).unwrap_err().code(), code);
            assert_eq!(DynTensor::zeros(DType::F32, sizes).unwrap_err().code(), code);
        }
        let view = TensorView::strided(&[1f32], &[1 << 40, 32], &[0, 0]).unwrap();
        assert_eq!(view.erase().to_tensor().unwrap_err().code(), ErrorCode::Memory);
        for refused in [
            model.output_sizes(&[view.erase()]).map(drop),
            model.workspace_bytes(&[view.erase()], usize::MAX).map(drop),
            model.prepare(&[view.erase()], 1).map(drop),
        ] {
            assert!(matches!(refused.unwrap_err().code(), ErrorCode::Memory | ErrorCode::Stride));
        }
        let tensor = NamedTensor { dtype: DType::F32, sizes: &many, bytes: &[0; 4] };
        let error = Weights::from_named(model.info(), [("layer.bias", tensor)]).unwrap_err();
        assert_eq!(error.message(), "weight `layer.bias` has 1000000 dimensions");
    }

    #[test]
    fn what_a_model_says_may_be_changed_and_believed_by_nobody() {
        let info = library(&[]).unwrap().info().unwrap();
        let tensor = NamedTensor { dtype: DType::F32, sizes: &[1], bytes: &[0; 4] };
        let made = |info: &ModelInfo| Weights::from_named(info, [("layer.bias", tensor)]);
        let model = load(&[]);
        for weights_bytes in [0, 4, 128, u64::MAX] {
            let mut info = info.clone();
            info.weights_bytes = weights_bytes;
            assert!(made(&info).and_then(|weights| model.update_weights(weights)).is_err());
        }
        model.update_weights(made(&info).unwrap()).unwrap();
        assert!(made(&ModelInfo::default()).is_err());
    }

    #[test]
    fn tensors_of_a_model_begin_with_zeros() {
        let model = load(&[]);
        let tensor = model.device_tensor(DType::Bool, &[4096]).unwrap();
        assert!(tensor.download().unwrap().as_slice::<bool>().unwrap().iter().all(|own| !own));
        assert_eq!(tensor.view().to_tensor().unwrap(), tensor.download().unwrap());
    }

    #[test]
    fn weights_change_while_runs_are_under_way() {
        let library = library(&[]).unwrap();
        let weights = |bias: f32| {
            let bytes: Vec<u8> = [bias; 16].iter().flat_map(|bias| bias.to_ne_bytes()).collect();
            Weights::bytes(&bytes).unwrap()
        };
        let model = library.load(LoadOptions { weights: weights(0.0), ..LoadOptions::default() }).unwrap();
        let data = [0f32; 3 * 500];
        let x = TensorView::new(&data, &[500, 3]).unwrap();
        let mut prepared = model.prepare(&[x.erase()], 1).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let (mut y, mut workspace) = (DynTensor::empty(DType::F32), Workspace::new());
                    let mut before = 0.0;
                    while !done.load(Ordering::Relaxed) {
                        model.run(&[x.erase()], &mut [&mut y], None, &mut workspace, &Inline).unwrap();
                        let y = y.as_slice::<f32>().unwrap();
                        assert!(
                            y[0] >= before && y.iter().all(|one| *one == y[0]),
                            "one set of weights, whole"
                        );
                        before = y[0];
                        model.state().unwrap();
                        model.plan();
                    }
                });
            }
            for round in 1..=300u16 {
                model.update_weights(weights(round.into())).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut targets = [model.device_tensor(DType::F32, &[500, 3]).unwrap()];
        prepared.run(&[x.erase()], &mut targets, None, Stream::default()).unwrap();
        let first = targets[0].download().unwrap().as_slice::<f32>().unwrap()[0];
        assert_eq!(first, 0.0, "a prepared run keeps its weights");
    }

    /// Panics when it is dropped, as what something panicked with.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("dropped")
            }
        }
    }

    #[test]
    fn a_pool_survives_whatever_loops_panic_with() {
        let pool = ThreadPool::new(3);
        for _ in 0..20 {
            let panicked = catch_unwind(AssertUnwindSafe(|| pool.parallel_for(64, &|_, _| panic_any(Bomb))));
            std::mem::forget(panicked.unwrap_err());
            let count = std::sync::atomic::AtomicI64::new(0);
            pool.parallel_for(64, &|part, _| {
                count.fetch_add(part.end - part.start, Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), 64);
        }
        assert!(pool.measure_fork_join().is_some(), "no loop holds the pool");
    }

    #[test]
    fn pools_of_absurd_sizes_are_smaller() {
        assert!((1..=4096).contains(&ThreadPool::new(usize::MAX).threads()));
    }
}
