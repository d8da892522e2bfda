//! What happens when the program finds a mistake of its own.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Adds to every panic what its reader should do. The process then ends with 101, as Rust programs do.
pub(crate) fn install_hook() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if CAUGHT.get() {
            MESSAGE.set(describe(info));
            return;
        }
        usual(info);
        let version = env!("CARGO_PKG_VERSION");
        anstream::eprintln!(
            "\nThis is a mistake in cargo-aoti {version}, not in your model. Please report it with the lines above, the \
             command,\nand the model if you may share it."
        );
    }));
}

/// Runs work whose panics are one failure among others; `Err` is what the panic said and where.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    CAUGHT.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(false);
    result.map_err(|_| MESSAGE.take())
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    format!("internal error: {text}{}", place.unwrap_or_default())
}
