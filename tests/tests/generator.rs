//! Random numbers of compiled programs: they follow from seed, offset and place alone, and are those of the evaluator.

use aoti_compiler::graph::text::parse;
use aoti_compiler::interpret::{Tensor, evaluate};
use aoti_runtime::{AnyView, DType, DynTensor, Executor, Generator, Inline, Model, ThreadPool, Workspace};
use aoti_tests::batch::{self, Processors};
use bytes::Bytes;

const NOISE: &str = r#"graph "noise" {
  input %x "x": i64[300, 70]
  input %g "generator": i64[2] generator
  %seed: i64[] = view %g [0]
  %offset: i64[] = view %g [1]
  %key: i64[] = philox %offset, %seed
  %keys: i64[300, 70] = view %key []
  %at: i64[300, 70] = index [70*i0 + i1]
  %bits: i64[300, 70] = philox %at, %keys
  %y: i64[300, 70] = bit_xor %bits, %x
  output %y "y"
}
"#;

fn input() -> DynTensor {
    DynTensor::zeros(DType::I64, &[300, 70]).expect("it is small")
}

fn drawn(model: &Model, workspace: &mut Workspace, executor: &dyn Executor) -> Vec<i64> {
    let (x, mut y) = (input(), DynTensor::empty(DType::I64));
    let views: [AnyView<'_>; 1] = [x.view()];
    model.run(&views, &mut [&mut y], None, workspace, executor).expect("it runs");
    y.as_slice::<i64>().expect("integers").to_vec()
}

#[test]
fn runs_draw_by_seed_and_offset() {
    let Some(compiler) = batch::compiler() else { return };
    let folder = tempfile::tempdir().expect("a folder for the library");
    let models = [Bytes::from_static(NOISE.as_bytes())];
    let built = batch::build(&compiler, &models, Processors::ThisOne, folder.path()).expect("it compiles");
    let model = &built[0];
    let mut workspace = Workspace::new();
    let run = |workspace: &mut Workspace| drawn(model, workspace, &Inline);

    let [first, second] = [run(&mut workspace), run(&mut workspace)];
    assert_ne!(first, second, "runs that follow each other draw anew");
    assert_eq!(workspace.generator(), Generator { seed: 0, offset: 2 });
    workspace.set_generator(Generator::new(0));
    assert_eq!(run(&mut workspace), first, "a sequence begins again");
    workspace.set_generator(Generator { seed: 0, offset: 1 });
    assert_eq!(drawn(model, &mut workspace, &ThreadPool::new(3)), second, "threads change nothing");
    workspace.set_generator(Generator::new(1));
    assert_ne!(run(&mut workspace), first, "another seed draws others");

    let graph = parse(NOISE).expect("it parses");
    for (offset, found) in [(0, &first), (1, &second)] {
        let x = Tensor::from_i64(&[300, 70], &vec![0; 21_000]);
        let expected = evaluate(&graph, &[x, Tensor::from_i64(&[2], &[0, offset])]).expect("it runs");
        assert_eq!(expected[0].to_i64().as_ref(), Some(found), "bit for bit");
    }

    model.set_generator(Generator { seed: 0, offset: 1 });
    let (x, mut y) = (input(), DynTensor::empty(DType::I64));
    model.run_shared(&[x.view()], &mut [&mut y], None).expect("it runs");
    assert_eq!(y.as_slice::<i64>().expect("integers"), second);
    model.run_shared(&[x.view()], &mut [&mut y], None).expect("it runs");
    assert_ne!(y.as_slice::<i64>().expect("integers"), second);
}
