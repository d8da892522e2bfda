//! Runs one model from many threads, on a pool, and with a counted allocator; says what it found.

use aoti_runtime::{Error, Executor, Inline, TensorView, ThreadPool, Workspace};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

aoti_runtime::include_model!("digits");

const THREADS: usize = 64;
const RUNS: usize = 20;
const BATCHES: [usize; 4] = [1, 7, 8, 64];

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn pixels(batch: usize) -> Vec<f32> {
    (0..batch * 64).map(|index| (index * 37 % 101) as f32 / 101.0).collect()
}

/// The bits of the outputs of all batches.
fn run(model: &digits::Model, executor: &dyn Executor) -> Result<Vec<u32>, Error> {
    let (mut workspace, mut outputs) = (Workspace::new(), digits::Outputs::default());
    let mut bits = Vec::new();
    for batch in BATCHES {
        let data = pixels(batch);
        let image = TensorView::new(&data, &[batch, 1, 8, 8])?;
        model.run_with(&digits::Inputs { image }, &mut outputs, &mut workspace, executor)?;
        bits.extend(outputs.softmax.as_slice().iter().map(|value| value.to_bits()));
    }
    Ok(bits)
}

fn main() -> Result<(), Error> {
    let model = digits::Model::load()?;
    let alone = run(&model, &Inline)?;
    let pool = ThreadPool::new(2);
    std::thread::scope(|scope| {
        let (model, pool, alone) = (&model, &pool, &alone);
        for index in 0..THREADS {
            scope.spawn(move || {
                for _ in 0..RUNS {
                    let executor: &dyn Executor = if index % 2 == 0 { &Inline } else { pool };
                    assert!(run(model, executor).unwrap() == *alone, "thread {index} differs");
                    let data = pixels(8);
                    let image = TensorView::new(&data, &[8, 1, 8, 8]).unwrap();
                    let shared = model.run(&digits::Inputs { image }).unwrap();
                    assert_eq!(shared.softmax.sizes(), [8, 10]);
                }
            });
        }
    });
    println!("{THREADS} threads agree");
    assert!(run(&model, &pool)? == alone);
    println!("a pool agrees");
    println!("{} allocations", allocations(&model, &pool)?);
    Ok(())
}

/// How often memory is allocated in runs whose workspace and outputs have served such sizes before.
fn allocations(model: &digits::Model, pool: &ThreadPool) -> Result<usize, Error> {
    let data = pixels(64);
    let (mut workspace, mut outputs) = (Workspace::new(), digits::Outputs::default());
    let mut round = || -> Result<(), Error> {
        for executor in [&Inline as &dyn Executor, pool] {
            for batch in BATCHES {
                let image = TensorView::new(&data[..batch * 64], &[batch, 1, 8, 8])?;
                model.run_with(&digits::Inputs { image }, &mut outputs, &mut workspace, executor)?;
            }
        }
        Ok(())
    };
    for _ in 0..5 {
        round()?;
    }
    let before = COUNT.load(Ordering::Relaxed);
    for _ in 0..50 {
        round()?;
    }
    Ok(COUNT.load(Ordering::Relaxed) - before)
}
