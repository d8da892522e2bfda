//! GPU architectures: what the scheduler and the templates want to know of them.

use super::{MathLibrary, NearPolicy, SplitPolicy, Vendor};
use std::fmt;

/// What of `f32` matrix units may multiply as TF32: numbers of 11 bits, with sums in `f32`. By default what PyTorch
/// computes so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tf32 {
    /// Matrix products: `torch.backends.cuda.matmul.allow_tf32`.
    pub matmul: bool,
    /// Convolutions: `torch.backends.cudnn.allow_tf32`.
    pub conv: bool,
}

impl Tf32 {
    /// Nothing: every product is that of `f32`.
    pub const NONE: Tf32 = Tf32 { matmul: false, conv: false };
}

impl Default for Tf32 {
    fn default() -> Tf32 {
        Tf32 { matmul: false, conv: true }
    }
}

/// One GPU architecture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuTarget {
    /// The maker.
    pub vendor: Vendor,
    /// The architecture by its compiler's name, such as `sm_90a` or `gfx942`.
    pub architecture: String,
    /// Threads that run in step: a warp or a wavefront.
    pub warp: i64,
    /// Threads of a block at most.
    pub max_threads: i64,
    /// Blocks at most that can read each other's shared memory: one where none can.
    pub cluster_blocks: i64,
    /// Whether multiprocessors have an engine that copies boxes of tensors, for which there are templates.
    pub has_tma: bool,
    /// Bytes of shared memory that every block may have without asking.
    pub shared_bytes: i64,
    /// Bytes of shared memory that a block may ask for.
    pub max_shared_bytes: i64,
    /// Operations of one expression that stay in registers.
    pub inline_operations: usize,
    /// Operands of a concatenation that is worth no buffer.
    pub inline_operands: usize,
    /// Elements up to which one block is as fast as several, for which a kernel more would have to be launched.
    pub block_elements: i64,
    /// Elements whose element-wise work takes about as long as a launch.
    pub launch_elements: i64,
    /// Bytes of the widest load of one thread.
    pub load_bytes: i64,
    /// Bytes of the cache that all blocks share.
    pub cache_bytes: i64,
    /// Bytes that memory of a kernel's buffers is aligned to.
    pub allocation_alignment: i64,
    /// When long sums are split: each result is the work of a team of threads where neighbours in memory are added up, and
    /// of a few threads where they are results of their own.
    pub splits: SplitPolicy,
    /// What its matrix units do, if it has such.
    pub matrix_units: Option<MatrixUnits>,
    /// What of `f32` its matrix units may multiply as TF32, if they can.
    pub tf32: Tf32,
    /// The vendor's library, where products may be left to it.
    pub library: Option<MathLibrary>,
}

/// What the templates for matrix units can do on an architecture, beside products of halves with sums in `f32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MatrixUnits {
    /// Its instructions as `gpu/device.h` calls them; empty where architectures with others share code.
    pub name: &'static str,
    /// Products of `f32` that lose nothing: as they are, or as sums of narrower numbers.
    pub multiplies_f32: bool,
    /// Copies to shared memory that no thread waits for, so that several pieces of the operands are on their way. Elsewhere the next
    /// piece is in registers.
    pub copies_ahead: bool,
    /// The instruction `mma` of a warp, with which there are templates for a few rows, for attention and for `f32` as TF32.
    pub multiplies_by_warp: bool,
    /// Sums of a tile that the registers of a thread have room for.
    pub thread_sums: i64,
}

impl MatrixUnits {
    /// What holds on both of two architectures.
    fn common(self, other: MatrixUnits) -> MatrixUnits {
        MatrixUnits {
            name: if self.name == other.name { self.name } else { "" },
            multiplies_f32: self.multiplies_f32 && other.multiplies_f32,
            copies_ahead: self.copies_ahead && other.copies_ahead,
            multiplies_by_warp: self.multiplies_by_warp && other.multiplies_by_warp,
            thread_sums: self.thread_sums.min(other.thread_sums),
        }
    }
}

/// What is known of architectures of a back end, by the beginning of their names. Where devices of a family differ, what the smaller
/// of them have.
#[derive(Debug)]
pub(super) struct Architecture {
    /// Every architecture whose name begins so; longer prefixes come first.
    pub(super) prefix: &'static str,
    pub(super) warp: i64,
    pub(super) cluster_blocks: i64,
    pub(super) has_tma: bool,
    pub(super) max_shared_bytes: i64,
    pub(super) cache_bytes: i64,
    pub(super) matrix_units: Option<MatrixUnits>,
}

/// All architectures in the tables, with their vendors.
fn architectures() -> impl Iterator<Item = (Vendor, &'static Architecture)> {
    Vendor::ALL
        .into_iter()
        .flat_map(|vendor| vendor.backend().architectures.iter().map(move |own| (vendor, own)))
}

impl GpuTarget {
    /// Blocks that leave a good part of the multiprocessors of a large GPU idle.
    pub const FEW_BLOCKS: i64 = 96;
    /// Rows of a product whose right operand is read once, each column by threads that share it.
    pub const FEW_ROWS: i64 = 4;
    /// Rows of a product that take no longer than reading its right operand does, where units multiply them together.
    pub const SKINNY_ROWS: i64 = 16;

    /// Results side by side up to which a block has a place for each.
    pub const FEW_COLUMNS: i64 = 31;

    /// Multiprocessors of a large GPU.
    pub const MULTIPROCESSORS: i64 = 132;
    /// Positions from which on there is work for every thread of a large GPU, several elements each.
    pub const MANY_POSITIONS: i64 = 1 << 17;
    /// Depths that are multiplied at once with whole numbers of a few bits: groups of such consist of as many.
    pub const GROUP_RUN: usize = 32;

    /// What holds on all of several architectures of one vendor; `None` where one is not known or of another vendor.
    pub fn common<S: AsRef<str>>(architectures: &[S]) -> Option<GpuTarget> {
        let all =
            architectures.iter().map(|name| GpuTarget::named(name.as_ref())).collect::<Option<Vec<_>>>()?;
        let (first, rest) = all.split_first()?;
        let mut common = first.clone();
        for other in rest {
            if other.vendor != first.vendor {
                return None;
            }
            common.architecture = format!("{}+{}", common.architecture, other.architecture);
            // Code for narrow warps would leave half of a wide one idle, that for wide ones is right on both.
            common.warp = common.warp.max(other.warp);
            common.cluster_blocks = common.cluster_blocks.min(other.cluster_blocks);
            common.splits.near = common.splits.near.filter(|_| other.splits.near.is_some());
            common.has_tma &= other.has_tma;
            common.max_shared_bytes = common.max_shared_bytes.min(other.max_shared_bytes);
            common.cache_bytes = common.cache_bytes.min(other.cache_bytes);
            common.matrix_units =
                common.matrix_units.zip(other.matrix_units).map(|(one, two)| one.common(two));
        }
        Some(common)
    }

    /// Whether it has the matrix instruction of a warp that the templates for halves and for `f32` are made of.
    pub fn multiplies_by_warp(&self) -> bool {
        self.matrix_units.is_some_and(|units| units.multiplies_by_warp)
    }

    /// The same where units may multiply so.
    #[must_use]
    pub fn allowing(self, tf32: Tf32) -> GpuTarget {
        GpuTarget { tf32: if self.multiplies_by_warp() { tf32 } else { Tf32::NONE }, ..self }
    }

    /// The same where products may be left to these libraries.
    #[must_use]
    pub fn with_libraries(self, libraries: &[MathLibrary]) -> GpuTarget {
        let library = self.vendor.backend().library.filter(|own| libraries.contains(own));
        GpuTarget { library, ..self }
    }

    /// Which architectures are known, as people are told.
    pub(crate) fn all_known() -> String {
        let mut known: Vec<(Vendor, &str)> =
            architectures().map(|(vendor, own)| (vendor, own.prefix)).collect();
        known.sort_unstable_by_key(|(vendor, prefix)| (*vendor, prefix.len(), *prefix));
        let prefixes: Vec<&str> = known.into_iter().map(|(_, prefix)| prefix).collect();
        format!("known are those whose names begin with {}", prefixes.join(", "))
    }

    /// The facts of an architecture by its compiler's name; `None` where no line of the table fits.
    pub fn named(architecture: &str) -> Option<GpuTarget> {
        let (vendor, known) = architectures().find(|(_, known)| architecture.starts_with(known.prefix))?;
        Some(GpuTarget {
            vendor,
            architecture: architecture.to_owned(),
            warp: known.warp,
            max_threads: 1024,
            cluster_blocks: known.cluster_blocks,
            has_tma: known.has_tma,
            shared_bytes: 48 * 1024,
            max_shared_bytes: known.max_shared_bytes,
            inline_operations: 48,
            inline_operands: 4,
            block_elements: 16 * 1024,
            launch_elements: 1 << 20,
            load_bytes: 16,
            cache_bytes: known.cache_bytes,
            allocation_alignment: 256,
            // The blocks of a cluster split products. Several hundred rows keep a device busy as they are: the second kernels of layer
            // norms over 1024 rows took a ninth of BERT's time on an H100.
            splits: SplitPolicy {
                shared: Some(1 << 16),
                elements: 1 << 18,
                part: 256,
                rows: 2048,
                columns: 32768,
                chunk: 1,
                few: GpuTarget::FEW_COLUMNS,
                fewest: 4,
                near: (known.cluster_blocks > 1).then_some(NearPolicy {
                    blocks: known.cluster_blocks,
                    busy: 2 * GpuTarget::MULTIPROCESSORS,
                    rows: 16,
                    elements: 20 * 1024,
                }),
                products: None,
            },
            matrix_units: known.matrix_units,
            tf32: Tf32::NONE,
            library: None,
        })
    }
}

impl fmt::Display for GpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.architecture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::backend::{MFMA, MMA, WMMA};

    #[test]
    fn architectures_are_found_by_their_family() {
        let hopper = GpuTarget::named("sm_90a").expect("it is in the table");
        assert_eq!((hopper.vendor.device(), hopper.warp, hopper.max_shared_bytes), ("cuda", 32, 227 * 1024));
        assert_eq!(GpuTarget::named("gfx942").expect("it is in the table").warp, 64);
        assert_eq!(GpuTarget::named("gfx1100").expect("it is in the table").warp, 32);
        assert_eq!(GpuTarget::named("gfx90a").expect("it is in the table").matrix_units, MFMA);
        let old = GpuTarget::named("gfx906").expect("it is in the table");
        assert_eq!((old.vendor.device(), old.matrix_units), ("rocm", None));
        assert_eq!(GpuTarget::named("mali"), None);
    }

    #[test]
    fn several_architectures_have_what_each_of_them_has() {
        let common = GpuTarget::common(&["sm_90a", "sm_80"]).expect("both are in the table");
        assert_eq!((common.max_shared_bytes, common.matrix_units), (163 * 1024, MMA));
        assert_eq!(common.architecture, "sm_90a+sm_80");
        assert_eq!(GpuTarget::common(&["sm_90a", "sm_75"]).expect("both are").matrix_units, None);
        let both = WMMA.map(|units| MatrixUnits { name: "", ..units });
        assert_eq!(GpuTarget::common(&["gfx942", "gfx1100"]).expect("both are").matrix_units, both);
        assert_eq!(GpuTarget::common(&["gfx942", "gfx1030"]).expect("both are").matrix_units, None);
        assert_eq!(GpuTarget::common(&["sm_90a", "gfx90a"]), None);
        assert_eq!(GpuTarget::common::<&str>(&[]), None);
    }
}
