//! The other side of a call that a model makes: what generated code gives a function of the project, as Rust has it.
//!
//! Knows no operator. That a function has the parameters of its schema is seen when it is compiled
//! ([`fits`](crate::__operator)).

use super::abi::{AotiBools, AotiContext, AotiError, AotiFloats, AotiInts, AotiTensor, AotiTensors};
use super::described::{narrow, sizes_of};
use crate::{DType, Element, TensorView, tensor::Dims};
use std::any::Any;
use std::ffi::{CStr, c_char};
use std::fmt::{self, Display};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::{ptr, slice};

/// What an operator's function gives for its arguments that it cannot work with.
#[derive(Debug)]
pub struct Unfit(String);

impl Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type that a function of [`operator!`](crate::operator) can have as a parameter.
pub trait OperatorParameter: sealed::Sealed + Sized {
    /// What generated code passes.
    #[doc(hidden)]
    type C;
    /// What the schema has: one letter.
    #[doc(hidden)]
    const LETTER: u8;
    /// The type with another lifetime: what is received is borrowed for one call, whatever the function's parameter says.
    #[doc(hidden)]
    type At<'call>;
    /// # Safety
    ///
    /// `given` is what generated code passes for a parameter of this type to the call that `'call` is.
    #[doc(hidden)]
    unsafe fn receive<'call: 'call>(given: Self::C, name: &str) -> Result<Self::At<'call>, Unfit>;
}

/// A result of an operator, to be written by its function: row-major, every element once at least.
#[derive(Debug)]
pub struct TensorViewMut<'a, T> {
    data: &'a mut [T],
    sizes: Dims,
}

impl<'a, T: Element> TensorViewMut<'a, T> {
    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.sizes.as_slice()
    }

    /// The elements in row-major order.
    ///
    /// ```
    /// use aoti_runtime::TensorViewMut;
    ///
    /// fn clear(mut result: TensorViewMut<'_, f32>) {
    ///     result.data_mut().fill(0.0);
    /// }
    /// ```
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The elements for as long as the call lasts.
    pub fn into_data(self) -> &'a mut [T] {
        self.data
    }
}

/// One call of an operator: what its function is given is borrowed for `'call`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Call<'call> {
    pub threads: Threads<'call>,
}

impl<'call> Call<'call> {
    /// # Safety
    ///
    /// As for [`OperatorParameter::receive`], where this is the call.
    pub unsafe fn receive<P: OperatorParameter>(
        self,
        given: P::C,
        name: &str,
    ) -> Result<P::At<'call>, Unfit> {
        // SAFETY: the caller vouches for what is given.
        unsafe { P::receive(given, name) }
    }
}

/// The threads of the run that calls an operator.
#[derive(Clone, Copy)]
pub struct Threads<'a>(&'a AotiContext);

// SAFETY: a loop runner is called from any thread, as `Executor` demands of it.
unsafe impl Send for Threads<'_> {}
// SAFETY: as above.
unsafe impl Sync for Threads<'_> {}

impl fmt::Debug for Threads<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Threads").field(&self.count()).finish()
    }
}

impl Threads<'_> {
    /// How many there are.
    pub fn count(&self) -> usize {
        if self.0.parallel_for.is_some() { usize::try_from(self.0.threads).unwrap_or(1).max(1) } else { 1 }
    }

    /// Runs `body(part, worker)` over parts that cover `0..n` once, and returns when all are done. No two parts that run at
    /// the same time have one worker.
    ///
    /// # Panics
    /// Where a part does; the others are done all the same.
    pub fn for_each(&self, n: usize, body: impl Fn(Range<usize>, usize) + Sync) {
        let Some(parallel_for) = self.0.parallel_for.filter(|_| self.count() > 1) else {
            if n > 0 {
                body(0..n, 0);
            }
            return;
        };
        let panicked = Mutex::new(None);
        let guarded = |part: Range<usize>, worker: usize| {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(part, worker))) {
                keep_first(&panicked, panic);
            }
        };
        // SAFETY: `lend` gets the address of `guarded`, whose type it knows, and the loop runner returns only when every part
        // has. Nothing unwinds through it.
        unsafe {
            parallel_for(
                self.0.pool,
                i64::try_from(n).expect("a range in memory"),
                lender(&guarded),
                (&raw const guarded).cast_mut().cast(),
            );
        }
        if let Some(panic) = panicked.into_inner().unwrap_or_else(PoisonError::into_inner) {
            std::panic::resume_unwind(panic);
        }
    }

    /// Runs `body(elements, first)` over parts of a slice, each of `least` elements or more, but for the last: `first` is the
    /// position of the first of them.
    ///
    /// # Panics
    /// Where a part does.
    pub fn for_each_part<T: Send>(
        &self,
        data: &mut [T],
        least: usize,
        body: impl Fn(&mut [T], usize) + Sync,
    ) {
        struct Start<T>(*mut T);
        // SAFETY: it is used for parts that do not overlap, of a slice of elements that can be sent.
        unsafe impl<T: Send> Sync for Start<T> {}
        let (least, length) = (least.max(1), data.len());
        let start = Start(data.as_mut_ptr());
        let start = &start;
        self.for_each(length.div_ceil(least), |parts, _| {
            // Of elements without a size there may be so many that the end of the last part is no number.
            let (begin, end) = (parts.start * least, parts.end.saturating_mul(least).min(length));
            // SAFETY: parts cover the range once, so this is the only reference to these elements, which lie in `data`.
            let part = unsafe { slice::from_raw_parts_mut(start.0.add(begin), end - begin) };
            body(part, begin);
        });
    }
}

type Lent = unsafe extern "C" fn(*mut std::ffi::c_void, i64, i64, i32);

/// The C function that calls a body of this type.
fn lender<F: Fn(Range<usize>, usize) + Sync>(_: &F) -> Option<Lent> {
    unsafe extern "C" fn lend<F: Fn(Range<usize>, usize) + Sync>(
        body: *mut std::ffi::c_void,
        begin: i64,
        end: i64,
        worker: i32,
    ) {
        // SAFETY: `for_each` passes the address of a body of this type, which outlives the loop.
        let body = unsafe { &*body.cast::<F>() };
        let size = |n: i64| usize::try_from(n).expect("loops begin at 0");
        body(size(begin)..size(end), size(i64::from(worker)));
    }
    Some(lend::<F>)
}

/// Calls an operator's function; what goes wrong in it, panics too, is said in `error`.
///
/// # Safety
///
/// `context` and `error` are what generated code passes.
#[doc(hidden)]
pub unsafe fn run_operator<E: Display>(
    context: *const AotiContext,
    error: *mut AotiError,
    function: impl for<'call> FnOnce(Call<'call>) -> Result<Result<(), E>, Unfit>,
) -> i32 {
    // SAFETY: generated code passes the context of the run, which outlives the call.
    let call = Call { threads: Threads(unsafe { &*context }) };
    // The text of an error is the program's code too, and so is what drops the error.
    let told = catch_unwind(AssertUnwindSafe(|| match function(call) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(unfit) => Err(unfit.to_string()),
    }));
    let message = match told {
        Ok(Ok(())) => return super::abi::AOTI_OK as i32,
        Ok(Err(message)) => message,
        Err(panic) => {
            let message = format!("the function panicked: {}", what_panicked(&*panic));
            forget(panic);
            message
        }
    };
    // SAFETY: generated code passes a place for an error.
    let error = unsafe { &mut *error };
    let room = error.message.len() - 1;
    let bytes = message.bytes().take_while(|byte| *byte != 0).take(room);
    let mut end = 0;
    for (place, byte) in error.message.iter_mut().zip(bytes) {
        *place = byte as c_char;
        end += 1;
    }
    error.message[end] = 0;
    super::abi::AOTI_ERROR_OPERATOR as i32
}

/// Drops what something panicked with. Where that panics in turn, it is leaked: nobody is there to tell.
pub(crate) fn forget(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}

/// Keeps the first of several panics.
pub(crate) fn keep_first(kept: &Mutex<Option<Box<dyn Any + Send>>>, panic: Box<dyn Any + Send>) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_none() {
        *kept = Some(panic);
    } else {
        drop(kept);
        forget(panic);
    }
}

fn what_panicked(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with a value that is no text")
}

/// A list of so many elements at an address.
///
/// # Safety
///
/// `data` is the address of `count` elements that stay as long as `'a`, where `count` is not 0.
unsafe fn list<'a, T>(data: *const T, count: i64) -> &'a [T] {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller vouches for the elements.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(data, count) } }
}

/// The address of the elements and the sizes of a tensor of `T`.
///
/// # Safety
///
/// `tensor` is one of a call.
unsafe fn parts<T: Element>(tensor: &AotiTensor, name: &str) -> Result<(*mut T, usize, Dims), Unfit> {
    if tensor.dtype != T::DTYPE.code() {
        let given = DType::from_code(tensor.dtype).map_or("an unknown type", DType::name);
        return Err(Unfit(format!("`{name}` is {given}, the function takes {}", T::DTYPE)));
    }
    // SAFETY: sizes are as many as the rank says. They are never negative.
    let sizes = unsafe { sizes_of(tensor) }.iter().map(narrow).collect::<Dims>();
    let count = sizes.as_slice().iter().product();
    // Of an empty tensor the address may be anything.
    let data = if count == 0 { ptr::dangling_mut() } else { tensor.data.cast() };
    Ok((data, count, sizes))
}

/// # Safety
///
/// As for [`parts`], whose memory stays as long as `'a`; nobody writes to the tensor meanwhile.
unsafe fn view<'a, T: Element>(tensor: &AotiTensor, name: &str) -> Result<TensorView<'a, T>, Unfit> {
    // SAFETY: the caller vouches for the tensor.
    let (data, count, sizes) = unsafe { parts::<T>(tensor, name)? };
    if T::DTYPE == DType::Bool {
        // Weights hold what a program gave for them.
        // SAFETY: as below; every byte is an element of bytes.
        let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), count) };
        if bytes.iter().any(|byte| *byte > 1) {
            return Err(Unfit(format!("`{name}` holds a byte that is no bool")));
        }
    }
    // SAFETY: generated code passes as many elements as the sizes say.
    let data = unsafe { slice::from_raw_parts(data, count) };
    TensorView::new(data, sizes.as_slice()).map_err(|error| Unfit(format!("`{name}`: {error}")))
}

/// # Safety
///
/// As for [`parts`], whose memory stays as long as `'a`; nobody else reads or writes the tensor meanwhile.
unsafe fn view_mut<'a, T: Element>(tensor: &AotiTensor, name: &str) -> Result<TensorViewMut<'a, T>, Unfit> {
    // SAFETY: the caller vouches for the tensor.
    let (data, count, sizes) = unsafe { parts::<T>(tensor, name)? };
    // Memory that nobody has written yet holds no `bool`, and references to elements must.
    // SAFETY: generated code passes as many elements as the sizes say; zeros are elements of every type.
    let data = unsafe {
        if T::DTYPE == DType::Bool {
            ptr::write_bytes(data, 0, count);
        }
        slice::from_raw_parts_mut(data, count)
    };
    Ok(TensorViewMut { data, sizes })
}

macro_rules! parameters {
    ($([$($generics:tt)*] $type:ty, $at:ty, $c:ty, $letter:literal, |$given:ident, $name:ident| $receive:expr;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $type {}
        impl<$($generics)*> OperatorParameter for $type {
            type C = $c;
            type At<'call> = $at;
            const LETTER: u8 = $letter;
            unsafe fn receive<'call: 'call>($given: $c, $name: &str) -> Result<$at, Unfit> {
                let _ = $name;
                // SAFETY: the caller vouches for what is given.
                unsafe { $receive }
            }
        }
    )*};
}

macro_rules! numbers {
    ($($type:ty, $c:ty, $letter:literal, |$given:ident| $receive:expr;)*) => {$(
        impl sealed::Sealed for $type {}
        impl OperatorParameter for $type {
            type C = $c;
            type At<'call> = $type;
            const LETTER: u8 = $letter;
            unsafe fn receive<'call: 'call>($given: $c, _: &str) -> Result<$type, Unfit> {
                Ok($receive)
            }
        }
    )*};
}

numbers! {
    i64, i64, b'i', |given| given;
    f64, f64, b'f', |given| given;
    bool, u8, b'b', |given| given != 0;
}

parameters! {
    ['a, T: Element] TensorView<'a, T>, TensorView<'call, T>, *const AotiTensor, b'T', |given, name| view(&*given, name);
    ['a, T: Element] Option<TensorView<'a, T>>, Option<TensorView<'call, T>>, *const AotiTensor, b't', |given, name| given.as_ref().map(|own| view(own, name)).transpose();
    ['a, T: Element] Vec<TensorView<'a, T>>, Vec<TensorView<'call, T>>, AotiTensors, b'L', |given, name| {
        list(given.data, given.count).iter().map(|own| view(own, name)).collect()
    };
    ['a, T: Element] TensorViewMut<'a, T>, TensorViewMut<'call, T>, *const AotiTensor, b'R', |given, name| view_mut(&*given, name);
    ['a, T: Element] Vec<TensorViewMut<'a, T>>, Vec<TensorViewMut<'call, T>>, AotiTensors, b'M', |given, name| {
        list(given.data, given.count).iter().map(|own| view_mut(own, name)).collect()
    };
    [] Option<i64>, Option<i64>, *const i64, b'j', |given, name| Ok(given.as_ref().copied());
    [] Option<f64>, Option<f64>, *const f64, b'g', |given, name| Ok(given.as_ref().copied());
    [] Option<bool>, Option<bool>, *const u8, b'c', |given, name| Ok(given.as_ref().map(|flag| *flag != 0));
    ['a] &'a [i64], &'call [i64], AotiInts, b'I', |given, name| Ok(list(given.data, given.count));
    ['a] &'a [f64], &'call [f64], AotiFloats, b'F', |given, name| Ok(list(given.data, given.count));
    [] Vec<bool>, Vec<bool>, AotiBools, b'B', |given, name| Ok(flags(&given));
    ['a] Option<&'a [i64]>, Option<&'call [i64]>, AotiInts, b'J', |given, name| Ok((given.count >= 0).then(|| list(given.data, given.count)));
    ['a] Option<&'a [f64]>, Option<&'call [f64]>, AotiFloats, b'G', |given, name| Ok((given.count >= 0).then(|| list(given.data, given.count)));
    [] Option<Vec<bool>>, Option<Vec<bool>>, AotiBools, b'C', |given, name| Ok((given.count >= 0).then(|| flags(&given)));
    ['a] &'a str, &'call str, *const c_char, b's', |given, name| text(given, name);
    ['a] Option<&'a str>, Option<&'call str>, *const c_char, b'u', |given, name| (!given.is_null()).then(|| text(given, name)).transpose();
}

/// # Safety
///
/// As for [`list`].
unsafe fn flags(given: &AotiBools) -> Vec<bool> {
    // SAFETY: the caller vouches for the list.
    unsafe { list(given.data, given.count) }.iter().map(|flag| *flag != 0).collect()
}

/// # Safety
///
/// `given` is text that ends with a zero and stays as long as `'a`.
unsafe fn text<'a>(given: *const c_char, name: &str) -> Result<&'a str, Unfit> {
    // SAFETY: the caller vouches for the text.
    let text = unsafe { CStr::from_ptr(given) };
    text.to_str().map_err(|_| Unfit(format!("`{name}` is no UTF-8")))
}

/// Whether a function with these parameters has the signature that is stated, a letter for each.
#[doc(hidden)]
pub const fn fits(letters: &[u8], stated: &str) -> bool {
    let stated = stated.as_bytes();
    if letters.len() != stated.len() {
        return false;
    }
    let mut place = 0;
    while place < letters.len() {
        if letters[place] != stated[place] {
            return false;
        }
        place += 1;
    }
    true
}

#[cfg(test)]
mod tests;
