//! Accesses of neighbouring lanes that begin at multiples of their bytes, which compilers do not find out.

/// Bytes of the widest access of a thread.
pub(in crate::codegen) const WIDEST_ACCESS: usize = 16;

/// Of which number of lanes accesses are whole.
#[derive(Clone, Copy)]
pub(in crate::codegen) enum Whole {
    /// Of this one, which there always is.
    Always(i64),
    /// Of this one, beside which there is one lane at borders.
    Inside(i64),
}

impl Whole {
    /// The number.
    pub(super) fn lanes(self) -> i64 {
        let (Whole::Always(lanes) | Whole::Inside(lanes)) = self;
        lanes
    }

    /// The address of elements of so many bytes, marked.
    pub(super) fn marked(self, element: &str, bytes: usize) -> String {
        match self {
            Whole::Always(lanes) => {
                let lanes = usize::try_from(lanes).expect("lanes are few");
                format!("aligned<{}>({element})", (lanes * bytes).min(WIDEST_ACCESS))
            }
            Whole::Inside(_) => format!("whole_lanes(lanes, {element})"),
        }
    }
}
