//! Walks over the steps of a program, and the table of its kernels.

use super::{BufferId, Kernel, KernelId, Program, Step, Storage};
use crate::graph::ConstantId;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use std::collections::BTreeSet;

impl Step {
    /// The lists of steps inside.
    pub fn lists(&self) -> Vec<&[Step]> {
        match self {
            Step::Kernel(_) | Step::Read { .. } | Step::Assert(..) | Step::Require(_) => vec![],
            Step::If { then, otherwise, .. } => vec![then, otherwise],
            Step::Loop { condition, body, .. } => vec![condition, body],
        }
    }

    /// The lists of steps inside, to be changed.
    pub fn lists_mut(&mut self) -> Vec<&mut Vec<Step>> {
        match self {
            Step::Kernel(_) | Step::Read { .. } | Step::Assert(..) | Step::Require(_) => vec![],
            Step::If { then, otherwise, .. } => vec![then, otherwise],
            Step::Loop { condition, body, .. } => vec![condition, body],
        }
    }

    /// Calls `visit` with every step of a list, outer ones before what is inside them.
    pub fn walk<'a>(steps: &'a [Step], visit: &mut dyn FnMut(&'a Step)) {
        for step in steps {
            visit(step);
            for list in step.lists() {
                Step::walk(list, visit);
            }
        }
    }

    /// The same with steps that can be changed.
    pub fn walk_mut(steps: &mut [Step], visit: &mut dyn FnMut(&mut Step)) {
        for step in steps {
            visit(step);
            for list in step.lists_mut() {
                Step::walk_mut(list, visit);
            }
        }
    }
}

impl Program {
    /// Kernels in the order of the steps that run them.
    pub fn running(&self) -> Vec<KernelId> {
        let mut running = Vec::new();
        Step::walk(&self.steps, &mut |step| {
            if let Step::Kernel(id) = step {
                running.push(*id);
            }
        });
        running
    }

    /// Constants that kernels or steps read, or states start from.
    pub fn read_constants(&self) -> BTreeSet<ConstantId> {
        let mut read: BTreeSet<ConstantId> = self.states.iter().map(|(_, initial)| *initial).collect();
        let mut add = |buffer: BufferId| {
            if let Storage::Constant(constant) = self.buffers[buffer].storage {
                read.insert(constant);
            }
        };
        Step::walk(&self.steps, &mut |step| match step {
            Step::Kernel(id) => self.kernels[*id].reads().into_iter().for_each(&mut add),
            Step::Read { buffer, .. } | Step::Assert(buffer, _) => add(*buffer),
            Step::Require(_) => {}
            Step::If { predicate, .. } | Step::Loop { predicate, .. } => add(*predicate),
        });
        read
    }

    /// Puts the kernels into the order of the steps, forgets those that no step runs, and gives each a name of its own.
    pub fn number_kernels(&mut self) {
        let running = self.running();
        let mut old: SecondaryMap<KernelId, Option<Kernel>> = SecondaryMap::new();
        for (id, kernel) in std::mem::take(&mut self.kernels) {
            old[id] = Some(kernel);
        }
        let mut kernels = PrimaryMap::with_capacity(running.len());
        let mut numbers: SecondaryMap<KernelId, Option<KernelId>> = SecondaryMap::new();
        for id in running {
            let kernel = old[id].take().expect("a kernel is run by one step");
            numbers[id] = Some(kernels.push(kernel));
        }
        self.kernels = kernels;
        Step::walk_mut(&mut self.steps, &mut |step| {
            if let Step::Kernel(id) = step {
                *id = numbers[*id].expect("every running kernel has a number");
            }
        });
        super::names::name_kernels(self);
    }
}
