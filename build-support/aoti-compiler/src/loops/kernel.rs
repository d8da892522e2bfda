//! What stages and kernels consist of, what they read and what they write.

use super::{
    Access, BufferId, Convolution, Effect, Guard, Kernel, KernelClass, KernelKind, MatMul, MatrixOperand,
    Program, Stage, Storage, Term, TermId, TypedTerm,
};
use crate::dtype::DType;
use crate::graph::Combine;
use std::collections::BTreeSet;

impl Stage {
    /// Appends a term, or finds an equal one.
    pub fn term(&mut self, term: Term, dtype: DType) -> TermId {
        let typed = TypedTerm { term, dtype };
        match self.terms.iter().position(|other| *other == typed) {
            Some(position) => position,
            None => {
                self.terms.push(typed);
                self.terms.len() - 1
            }
        }
    }

    /// All loads, with their guards.
    pub fn loads(&self) -> impl Iterator<Item = (&Access, &[Guard])> {
        self.terms.iter().filter_map(|typed| {
            let Term::Load { access, guards, .. } = &typed.term else { return None };
            Some((access, guards.as_slice()))
        })
    }

    /// The accesses of all loads and stores.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        let loads = self.loads().map(|(access, _)| access);
        let stores = self.effects.iter().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access),
            Effect::Accumulate { .. } => None,
        });
        loads.chain(stores)
    }

    /// What it reads and writes, to be changed.
    pub fn accesses_mut(&mut self) -> impl Iterator<Item = &mut Access> {
        let loads = self.terms.iter_mut().filter_map(|typed| {
            let Term::Load { access, .. } = &mut typed.term else { return None };
            Some(access)
        });
        let stores = self.effects.iter_mut().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access),
            Effect::Accumulate { .. } => None,
        });
        loads.chain(stores)
    }

    /// Buffers that are read.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.loads().map(|(access, _)| access.buffer)
    }

    /// Buffers whose values it meets: those that it loads, and those that its stores leave something of.
    pub fn meets(&self) -> impl Iterator<Item = BufferId> + '_ {
        let kept = self.effects.iter().filter_map(|effect| match effect {
            // Combining stores read what is there; indirect ones leave most of it as it is.
            Effect::Store { access, combine, .. } => {
                (*combine != Combine::Set || !access.is_direct()).then_some(access.buffer)
            }
            Effect::Accumulate { .. } => None,
        });
        self.reads().chain(kept)
    }

    /// Buffers that are written.
    pub fn writes(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access.buffer),
            Effect::Accumulate { .. } => None,
        })
    }
}

impl KernelKind {
    /// Its class.
    pub fn class(&self) -> KernelClass<'_> {
        match self {
            KernelKind::Nest(nest) => KernelClass::Loops(nest),
            KernelKind::MatMul(MatMul { axes, epilogue, row_epilogue, .. }) => {
                KernelClass::Contraction { axes, epilogue, rows: row_epilogue.as_ref() }
            }
            KernelKind::Convolution(Convolution { axes, epilogue, .. }) => {
                KernelClass::Contraction { axes, epilogue, rows: None }
            }
            KernelKind::Attention(own) => KernelClass::Attention(own),
            KernelKind::AxisOp(_) | KernelKind::Extern(_) => KernelClass::Whole,
        }
    }

    /// Buffers that it reads beside what its stages load.
    pub fn operands(&self) -> Vec<BufferId> {
        match self {
            KernelKind::Nest(_) => vec![],
            KernelKind::MatMul(own) => vec![own.a.buffer, own.b.buffer],
            KernelKind::Convolution(own) => vec![own.input, own.weight],
            KernelKind::Attention(own) => vec![own.queries.buffer, own.keys.buffer, own.values.buffer],
            KernelKind::AxisOp(own) => own.inputs.clone(),
            KernelKind::Extern(own) => own.inputs.iter().map(|(buffer, _)| *buffer).collect(),
        }
    }

    /// The strided matrices that it reads, to be changed.
    pub fn matrices_mut(&mut self) -> Vec<&mut MatrixOperand> {
        match self {
            KernelKind::MatMul(own) => vec![&mut own.a, &mut own.b],
            KernelKind::Attention(own) => vec![&mut own.queries, &mut own.keys, &mut own.values],
            KernelKind::Nest(_)
            | KernelKind::Convolution(_)
            | KernelKind::AxisOp(_)
            | KernelKind::Extern(_) => vec![],
        }
    }
}

impl Kernel {
    /// The stages of loops, or the epilogue and then those of the row epilogue, to be changed.
    pub fn stages_mut(&mut self) -> impl Iterator<Item = &mut Stage> {
        let [first, then] = self.stage_lists_mut();
        first.iter_mut().chain(then)
    }

    /// The stages of loops, or the epilogue and then those of the row epilogue.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        let [first, then]: [&[Stage]; 2] = match self.kind.class() {
            KernelClass::Loops(nest) => [&nest.stages, &[]],
            KernelClass::Contraction { epilogue, rows, .. } => {
                [std::slice::from_ref(epilogue), rows.map_or(&[], |rows| &rows.stages)]
            }
            KernelClass::Attention(own) => [&own.stages, &[]],
            KernelClass::Whole => [&[], &[]],
        };
        first.iter().chain(then)
    }

    /// The stages that may refer to the stage of this number, and its place among them.
    pub fn stages_beside_mut(&mut self, stage: usize) -> (&mut [Stage], usize) {
        let [first, then] = self.stage_lists_mut();
        let count = first.len();
        if stage < count { (first, stage) } else { (then, stage - count) }
    }

    fn stage_lists_mut(&mut self) -> [&mut [Stage]; 2] {
        match &mut self.kind {
            KernelKind::Nest(nest) => [&mut nest.stages, &mut []],
            KernelKind::MatMul(matmul) => {
                let rows = matmul.row_epilogue.as_mut();
                let rows: &mut [Stage] = rows.map_or(&mut [], |rows| &mut rows.stages);
                [std::slice::from_mut(&mut matmul.epilogue), rows]
            }
            KernelKind::Convolution(conv) => [std::slice::from_mut(&mut conv.epilogue), &mut []],
            KernelKind::Attention(attention) => [&mut attention.stages, &mut []],
            KernelKind::AxisOp(_) | KernelKind::Extern(_) => [&mut [], &mut []],
        }
    }

    /// Buffers that are read, in order of first use.
    pub fn reads(&self) -> Vec<BufferId> {
        let mut buffers = self.kind.operands();
        self.stages().for_each(|stage| buffers.extend(stage.meets()));
        unique(buffers)
    }

    /// The buffers whose values it needs from before: those that it reads, but for what a stage of it has written before, and for
    /// results of products and the like, which are stored one by one, wherever their indices lead.
    pub fn needs(&self) -> Vec<BufferId> {
        let [mut own, mut met, mut needed, mut results] = [const { BTreeSet::<BufferId>::new() }; 4];
        for stage in self.stages() {
            let meets: Vec<BufferId> = stage.meets().collect();
            needed.extend(meets.iter().filter(|buffer| !own.contains(*buffer)));
            met.extend(meets);
            own.extend(stage.writes());
            if !matches!(self.kind, KernelKind::Nest(_)) {
                let combined = stage.effects.iter().filter_map(|effect| match effect {
                    Effect::Store { access, combine, .. } if *combine != Combine::Set => Some(access.buffer),
                    Effect::Store { .. } | Effect::Accumulate { .. } => None,
                });
                let read: BTreeSet<BufferId> = stage.reads().chain(combined).collect();
                results.extend(stage.writes().filter(|buffer| !read.contains(buffer)));
            }
        }
        let is_needed = |buffer: &BufferId| !met.contains(buffer) || needed.contains(buffer);
        self.reads().into_iter().filter(|buffer| is_needed(buffer) && !results.contains(buffer)).collect()
    }

    /// Buffers of which it keeps one row in a worker, in order of first use.
    pub fn rows(&self, program: &Program) -> Vec<BufferId> {
        let is_local = |id: &BufferId| matches!(program.buffers[*id].storage, Storage::Local { .. });
        unique(self.reads().into_iter().chain(self.writes()).filter(is_local).collect())
    }

    /// Buffers that are written, in order of first use.
    pub fn writes(&self) -> Vec<BufferId> {
        let mut buffers: Vec<BufferId> = self.stages().flat_map(Stage::writes).collect();
        if let KernelKind::AxisOp(rows) = &self.kind {
            buffers.extend(&rows.outputs);
        }
        if let KernelKind::Extern(own) = &self.kind {
            buffers.extend(own.outputs.iter().map(|(buffer, _)| *buffer));
        }
        unique(buffers)
    }
}

fn unique(buffers: Vec<BufferId>) -> Vec<BufferId> {
    let mut seen = BTreeSet::new();
    buffers.into_iter().filter(|buffer| seen.insert(*buffer)).collect()
}
