//! A run with a workspace and outputs that have served before allocates nothing.

mod support;

use aoti_runtime::{DType, DynTensor, Executor, Inline, LoadOptions, TensorView, ThreadPool, Workspace};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// The only test of this file, as the count is the whole process's.
#[test]
fn repeated_runs_allocate_nothing() {
    let model = support::library(&[]).unwrap().load(LoadOptions::default()).unwrap();
    let pool = ThreadPool::new(2);
    let executors: [&dyn Executor; 2] = [&Inline, &pool];
    let (mut workspace, mut y) = (Workspace::new(), DynTensor::empty(DType::F32));
    let data = vec![1f32; 300];
    let mut round = || {
        for executor in executors {
            for rows in [100usize, 7, 100] {
                let x = TensorView::new(&data[..rows * 3], &[rows, 3]).unwrap();
                model.run(&[x.erase()], &mut [&mut y], None, &mut workspace, executor).unwrap();
                let strided = TensorView::strided(&data, &[rows, 3], &[1, rows]).unwrap();
                model.run(&[strided.erase()], &mut [&mut y], None, &mut workspace, executor).unwrap();
            }
        }
    };
    (0..10).for_each(|_| round());
    // The pool's thread allocates while it starts, which may be after the first rounds.
    std::thread::sleep(Duration::from_millis(100));
    let before = COUNT.load(Ordering::Relaxed);
    (0..100).for_each(|_| round());
    assert_eq!(COUNT.load(Ordering::Relaxed), before);
}
