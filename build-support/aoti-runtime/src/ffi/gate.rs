//! How work that borrows from the stack of one thread is lent to others: opened, joined, closed, and returned from
//! only when every thread that joined has left.
//!
//! One word holds everything: whether the gate is open, how many are inside, and how often it was opened. Joining is
//! one compare-and-swap on that word, so a late thread cannot enter a gate that was closed or opened anew meanwhile.

use std::{
    cell::UnsafeCell,
    hint,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

const OPEN: u64 = 1 << 16;
const INSIDE: u64 = OPEN - 1;
const OPENING: u64 = 1 << 17;
/// Looks at the word before the owner starts to yield to threads that may need its processor.
const PATIENCE: u32 = 4096;

type Work<'a> = dyn Fn(usize) + Sync + 'a;

/// See the module. At most one thread may be in [`Gate::run`] at a time.
pub(crate) struct Gate {
    state: AlignedWord,
    work: UnsafeCell<Option<&'static Work<'static>>>,
}

/// Spun on by every idle worker, so on a cache line of its own.
#[repr(align(128))]
struct AlignedWord(AtomicU64);

// SAFETY: `work` is written only by the owner while the gate is closed and empty, and read only by threads inside; the
// word orders the two.
unsafe impl Sync for Gate {}
// SAFETY: what `work` refers to is `Sync`, and it refers to nothing between runs.
unsafe impl Send for Gate {}

/// Closes the gate and waits until it is empty, also when the owner's own work unwinds.
struct Close<'a>(&'a AtomicU64);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.fetch_and(!OPEN, Ordering::AcqRel);
        let mut looks = 0u32;
        while self.0.load(Ordering::Acquire) & INSIDE != 0 {
            looks = looks.saturating_add(1);
            if looks < PATIENCE { hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

/// Leaves the gate, also when the work unwinds.
struct Leave<'a>(&'a AtomicU64);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate { state: AlignedWord(AtomicU64::new(0)), work: UnsafeCell::new(None) }
    }

    /// Opens the gate, calls `opened`, runs `work(0)` here, closes, and waits for those who joined.
    ///
    /// The caller makes sure that no other thread is in this function and that it is not called from inside `work`; a
    /// gate that is open or not empty makes it panic.
    pub(crate) fn run(&self, work: &Work<'_>, opened: impl FnOnce()) {
        let state = &self.state.0;
        // The state goes through "owned": closed, with a count that nobody inside has, so that a second owner is seen.
        let before = state.load(Ordering::Acquire);
        let owned = before | INSIDE;
        let free = before & (OPEN | INSIDE) == 0;
        let taken =
            free && state.compare_exchange(before, owned, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        assert!(taken, "a gate has one owner at a time");
        // SAFETY: the compare-and-swap made this thread the only owner of a closed and empty gate, which nobody joins.
        // The lifetime is extended only until `Close` has found the gate closed and empty again, before `work` ends.
        unsafe { *self.work.get() = Some(std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work)) };
        let close = Close(state);
        state.store((before + OPENING) | OPEN, Ordering::SeqCst);
        opened();
        work(0);
        drop(close);
    }

    /// Joins the gate if it is open and was opened since `seen`, and runs the work as `worker`; whether it did.
    pub(crate) fn join(&self, seen: &mut u64, worker: usize) -> bool {
        let state = &self.state.0;
        let found = state.load(Ordering::Acquire);
        if found & OPEN == 0 || found / OPENING == *seen {
            return false;
        }
        if state.compare_exchange(found, found + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        let _leave = Leave(state);
        *seen = found / OPENING;
        // SAFETY: inside an open gate, `work` is set, is not written, and what it refers to is kept alive by the owner.
        let work = unsafe { *self.work.get() };
        work.expect("an open gate has work")(worker);
        true
    }

    /// Whether the gate is open and was opened since `seen`.
    pub(crate) fn is_open_since(&self, seen: u64) -> bool {
        let found = self.state.0.load(Ordering::SeqCst);
        found & OPEN != 0 && found / OPENING != seen
    }
}
