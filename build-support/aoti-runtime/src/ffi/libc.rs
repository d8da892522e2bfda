//! The functions of the C library that models call and `wasm32-unknown-unknown` has not: memory from Rust's allocator, and the
//! texts of error messages. Everything else, `memcpy` and mathematics, Rust's own libraries bring along for every program there.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ffi::{c_char, c_int, c_void};
use std::{ptr, slice};

/// What all memory is aligned to that is not asked for with more.
const ALIGNMENT: usize = 16;

/// In front of memory that was handed out: how it was allocated.
struct Head {
    begin: *mut u8,
    layout: Layout,
    bytes: usize,
}

const HEAD: usize = size_of::<Head>();

/// Memory with a head before it, or null.
fn allocate(bytes: usize, alignment: usize, allocator: unsafe fn(Layout) -> *mut u8) -> *mut c_void {
    let alignment = alignment.max(ALIGNMENT);
    let offset = HEAD.next_multiple_of(alignment);
    let layout = offset.checked_add(bytes).map(|all| Layout::from_size_align(all, alignment));
    let Some(Ok(layout)) = layout else { return ptr::null_mut() };
    // SAFETY: there is a head at least, so that the size is not zero.
    let begin = unsafe { allocator(layout) };
    if begin.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: `offset` bytes lie before the memory, which suffice for a head, and both are aligned for one.
    unsafe {
        let given = begin.add(offset);
        given.cast::<Head>().sub(1).write(Head { begin, layout, bytes });
        given.cast()
    }
}

#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
extern "C" fn malloc(bytes: usize) -> *mut c_void {
    allocate(bytes, ALIGNMENT, alloc)
}

#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let all = count.checked_mul(bytes);
    all.map_or(ptr::null_mut(), |all| allocate(all, ALIGNMENT, alloc_zeroed))
}

#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    allocate(bytes, alignment, alloc)
}

/// # Safety
///
/// A pointer can be written to `memory`.
#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
unsafe extern "C" fn posix_memalign(memory: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int {
    /// What WASI's headers call it if there is no memory.
    const ENOMEM: c_int = 48;
    let made = allocate(bytes, alignment, alloc);
    // SAFETY: the caller vouches for the address.
    unsafe { memory.write(made) };
    if made.is_null() { ENOMEM } else { 0 }
}

/// # Safety
///
/// `memory` is null or of one of these functions, and not freed.
#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
unsafe extern "C" fn realloc(memory: *mut c_void, bytes: usize) -> *mut c_void {
    let larger = malloc(bytes);
    if !memory.is_null() && !larger.is_null() {
        // SAFETY: memory of these functions has a head, which says how much there is; the new memory has `bytes`.
        unsafe {
            let before = (*memory.cast::<Head>().sub(1)).bytes;
            ptr::copy_nonoverlapping(memory.cast::<u8>(), larger.cast(), before.min(bytes));
            free(memory);
        }
    }
    larger
}

/// # Safety
///
/// As for [`realloc`].
#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
unsafe extern "C" fn free(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: memory of these functions has a head, which says how it was allocated.
    unsafe {
        let Head { begin, layout, .. } = memory.cast::<Head>().sub(1).read();
        dealloc(begin, layout);
    }
}

/// Arguments as WebAssembly's C convention passes those of `...`: one after another, each aligned to its size.
struct Arguments(*const u8);

impl Arguments {
    /// # Safety
    ///
    /// The next argument is a `T`.
    unsafe fn next<T>(&mut self) -> T {
        // SAFETY: the caller vouches for the type.
        unsafe {
            self.0 = self.0.add(self.0.align_offset(size_of::<T>()));
            let value = self.0.cast::<T>().read();
            self.0 = self.0.add(size_of::<T>());
            value
        }
    }
}

/// What one place of a format says: `%.60s`, `%lld`.
#[derive(Default)]
struct Place {
    precision: Option<usize>,
    longs: usize,
}

/// The text of a format. Knows integers, characters, texts and precision; a place that it does not know ends the text.
///
/// # Safety
///
/// `arguments` are what `format` says.
unsafe fn text(format: &[u8], mut arguments: Arguments) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = format.iter().copied();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let mut place = Place::default();
        let letter = loop {
            match rest.next() {
                Some(b'.') => place.precision = Some(0),
                Some(digit @ b'0'..=b'9') => {
                    let before = place.precision.unwrap_or(0);
                    place.precision =
                        Some(before.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
                }
                Some(b'l') => place.longs += 1,
                Some(b'z') => {}
                letter => break letter,
            }
        };
        // SAFETY: the caller vouches for the arguments.
        let Some(written) = (unsafe { argument(letter, &place, &mut arguments) }) else { break };
        text.extend(written);
    }
    text
}

/// The text of one argument, if its letter is known.
///
/// # Safety
///
/// The next of `arguments` is what `letter` says.
unsafe fn argument(letter: Option<u8>, place: &Place, arguments: &mut Arguments) -> Option<Vec<u8>> {
    // SAFETY: the caller vouches for the argument. Texts end in zero, or have as many bytes as the precision says.
    unsafe {
        let is_wide = place.longs > 1;
        Some(match letter? {
            b'%' => b"%".to_vec(),
            b'c' => vec![arguments.next::<c_int>() as u8],
            b'd' | b'i' if is_wide => arguments.next::<i64>().to_string().into_bytes(),
            b'd' | b'i' => arguments.next::<c_int>().to_string().into_bytes(),
            b'u' if is_wide => arguments.next::<u64>().to_string().into_bytes(),
            b'u' => (arguments.next::<c_int>() as u32).to_string().into_bytes(),
            b's' => {
                let begin = arguments.next::<*const u8>();
                let most = place.precision.unwrap_or(usize::MAX);
                let length = (0..most).find(|at| *begin.add(*at) == 0).unwrap_or(most);
                slice::from_raw_parts(begin, length).to_vec()
            }
            _ => return None,
        })
    }
}

/// # Safety
///
/// There are `bytes` at `buffer`, `format` ends in zero, and `arguments` are what it says.
#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
unsafe extern "C" fn vsnprintf(
    buffer: *mut c_char,
    bytes: usize,
    format: *const c_char,
    arguments: *const c_void,
) -> c_int {
    // SAFETY: the caller vouches for all four.
    unsafe {
        let format = std::ffi::CStr::from_ptr(format).to_bytes();
        let text = text(format, Arguments(arguments.cast()));
        if bytes > 0 {
            let kept = text.len().min(bytes - 1);
            ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), kept);
            buffer.add(kept).write(0);
        }
        c_int::try_from(text.len()).unwrap_or(c_int::MAX)
    }
}

/// In WebAssembly, what `...` stands for is an address of arguments too.
///
/// # Safety
///
/// As for [`vsnprintf`].
#[cfg_attr(target_os = "unknown", unsafe(no_mangle))]
unsafe extern "C" fn snprintf(
    buffer: *mut c_char,
    bytes: usize,
    format: *const c_char,
    arguments: *const c_void,
) -> c_int {
    // SAFETY: the caller vouches for all four.
    unsafe { vsnprintf(buffer, bytes, format, arguments) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_keeps_its_bytes() {
        let zeros = calloc(3, 5).cast::<u8>();
        let aligned = aligned_alloc(256, 100).cast::<u8>();
        let mut page = ptr::null_mut();
        // SAFETY: a pointer can be written there.
        assert_eq!(unsafe { posix_memalign(&raw mut page, 4096, 1) }, 0);
        assert_eq!(page.addr() % 4096, 0);
        assert!(zeros.addr() % ALIGNMENT == 0 && aligned.addr() % 256 == 0);
        // SAFETY: there are as many bytes as was asked for, and each is freed once.
        unsafe {
            assert!((0..15).all(|at| *zeros.add(at) == 0));
            aligned.write_bytes(7, 100);
            let larger = realloc(aligned.cast(), 1000).cast::<u8>();
            assert!((0..100).all(|at| *larger.add(at) == 7));
            let smaller = realloc(larger.cast(), 3).cast::<u8>();
            assert!((0..3).all(|at| *smaller.add(at) == 7));
            free(smaller.cast());
            free(zeros.cast());
            free(page);
            free(ptr::null_mut());
        }
        assert!(calloc(usize::MAX, 2).is_null() && malloc(usize::MAX - 8).is_null());
    }

    /// An argument after the others, at the next multiple of its size.
    fn push(arguments: &mut Vec<u8>, bytes: &[u8]) {
        arguments.resize(arguments.len().next_multiple_of(bytes.len()), 0);
        arguments.extend(bytes);
    }

    #[test]
    fn texts_are_those_of_c() {
        let mut bytes = Vec::new();
        push(&mut bytes, &(-3i32).to_ne_bytes());
        push(&mut bytes, &(1i64 << 40).to_ne_bytes());
        push(&mut bytes, &c"weights".as_ptr().addr().to_ne_bytes());
        push(&mut bytes, &c"weights".as_ptr().addr().to_ne_bytes());
        push(&mut bytes, &u32::MAX.to_ne_bytes());
        // As aligned as the widest.
        let mut arguments = vec![0u64; bytes.len().div_ceil(8)];
        for (word, eight) in arguments.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..eight.len()].copy_from_slice(eight);
            *word = u64::from_ne_bytes(whole);
        }
        let mut buffer = [1; 64];
        let format = c"%d, %lld, %s, %.3s, %zu %%";
        // SAFETY: the arguments are what the format says, and as many bytes are there as is said.
        let length = unsafe { snprintf(buffer.as_mut_ptr(), 64, format.as_ptr(), arguments.as_ptr().cast()) };
        // SAFETY: it ends in zero.
        let text = unsafe { std::ffi::CStr::from_ptr(buffer.as_ptr()) }.to_str().unwrap();
        assert_eq!((text, length), ("-3, 1099511627776, weights, wei, 4294967295 %", text.len() as c_int));
        // SAFETY: as above.
        let length = unsafe { vsnprintf(buffer.as_mut_ptr(), 5, format.as_ptr(), arguments.as_ptr().cast()) };
        assert_eq!((length as usize, buffer[4], buffer[3]), (text.len(), 0, b' ' as c_char));
    }
}
