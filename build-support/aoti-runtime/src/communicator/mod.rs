//! What connects the ranks of a model that is spread over several devices, threads or processes.
//!
//! Knows nothing of models: a run asks its [`Communicator`] for one [`Collective`] after the other.

mod reduce;
mod sockets;
mod threads;

pub use sockets::SocketGroup;
pub use threads::{ThreadGroup, ThreadRank};

use crate::{DType, Device};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Computes with other ranks what the program of each says. [`Model::set_communicator`](crate::Model::set_communicator) gives a
/// model its own.
///
/// Every rank runs a program of its own, and all meet in the same collectives in the same order. Implement it to connect ranks
/// by MPI or anything else; [`ThreadGroup`] is for threads of one process and [`SocketGroup`] for processes.
pub trait Communicator: Send + Sync {
    /// Does this rank's part of a collective. Where the memory is a processor's, the output is written when it returns; where it is
    /// a device's, what writes it is on the stream.
    ///
    /// # Errors
    /// A sentence without a full stop that says why the ranks could not do it; the run ends with it.
    fn exchange(&self, collective: Collective<'_>) -> Result<(), String>;

    /// Whether what `exchange` puts on a stream may be captured in a graph and launched again with it.
    fn is_capturable(&self) -> bool {
        false
    }

    /// Asked while a run waits for a device, about every millisecond, with how long it has waited.
    ///
    /// # Errors
    /// Why it will not be done. What was put on the stream has been ended then.
    fn poll(&self, _waited: Duration) -> Result<(), String> {
        Ok(())
    }

    /// Told that a run of this rank has failed: it may have missed collectives, and others would wait for it in vain.
    fn failed(&self, reason: &str) {
        let _ = reason;
    }
}

/// What the ranks of a group compute together.
#[derive(Debug)]
pub struct Collective<'a> {
    /// What is exchanged.
    pub kind: CollectiveKind<'a>,
    /// Elements of input and output; complex tensors are tensors of their parts.
    pub dtype: DType,
    /// The group's name in the program.
    pub group: &'a str,
    /// How many ranks the group has, where the program says.
    pub ranks: Option<usize>,
    /// The operand of this rank and its result.
    pub memory: Memory<'a>,
}

/// What ranks exchange: blocks that lie one behind the other in the order of the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CollectiveKind<'a> {
    /// Each rank gets all ranks' inputs, reduced.
    AllReduce(Reduction),
    /// Each rank gets all ranks' inputs, one behind the other.
    AllGather,
    /// Each rank gets its block of all ranks' inputs, reduced.
    ReduceScatter(Reduction),
    /// Each rank sends each rank a block.
    AllToAll {
        /// Elements for each rank.
        send: &'a [i64],
        /// Elements from each rank.
        receive: &'a [i64],
    },
    /// Each rank gets the input of one.
    Broadcast {
        /// Its number in the group.
        root: usize,
    },
}

/// How elements of several ranks become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean.
    Average,
    /// Their product.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Bits that all have.
    And,
    /// Bits that one has.
    Or,
    /// Bits that an odd number has.
    Xor,
}

impl Reduction {
    /// All, by their numbers in the C interface.
    pub(crate) const ALL: [Reduction; 8] = [
        Reduction::Sum,
        Reduction::Average,
        Reduction::Product,
        Reduction::Min,
        Reduction::Max,
        Reduction::And,
        Reduction::Or,
        Reduction::Xor,
    ];
}

/// Where a rank's operand and result lie.
#[derive(Debug)]
pub enum Memory<'a> {
    /// In memory of the processor.
    Processor {
        /// The operand's bytes.
        input: &'a [u8],
        /// Those of the result.
        output: &'a mut [u8],
    },
    /// In memory of a device. The addresses are of row-major tensors, which are used on the stream alone.
    Device {
        /// The device.
        device: Device,
        /// The operand.
        input: *const c_void,
        /// Its elements.
        input_count: usize,
        /// The result.
        output: *mut c_void,
        /// Its elements.
        output_count: usize,
        /// The run's stream.
        stream: *mut c_void,
    },
}

impl CollectiveKind<'_> {
    /// As in messages.
    pub fn name(&self) -> &'static str {
        match self {
            CollectiveKind::AllReduce(_) => "all_reduce",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::ReduceScatter(_) => "reduce_scatter",
            CollectiveKind::AllToAll { .. } => "all_to_all",
            CollectiveKind::Broadcast { .. } => "broadcast",
        }
    }
}

/// Communicators for programs with several groups, by the groups' names.
#[derive(Default)]
pub struct Groups {
    by_name: BTreeMap<String, Arc<dyn Communicator>>,
}

impl Groups {
    /// None so far.
    pub fn new() -> Groups {
        Groups::default()
    }

    /// The same with one more group.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, communicator: Arc<dyn Communicator>) -> Groups {
        self.by_name.insert(name.into(), communicator);
        self
    }
}

impl Communicator for Groups {
    fn exchange(&self, collective: Collective<'_>) -> Result<(), String> {
        let Some(own) = self.by_name.get(collective.group) else {
            let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            return Err(format!("there is no group `{}`, only {known:?}", collective.group));
        };
        own.exchange(collective)
    }

    fn is_capturable(&self) -> bool {
        self.by_name.values().all(|own| own.is_capturable())
    }

    fn poll(&self, waited: Duration) -> Result<(), String> {
        self.by_name.values().try_for_each(|own| own.poll(waited))
    }

    fn failed(&self, reason: &str) {
        self.by_name.values().for_each(|own| own.failed(reason));
    }
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
