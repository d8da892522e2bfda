//! Checks the programs of a model that has several.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Checker, RawModel};
use crate::locate::Spot;
use crate::model::{Model, Names, Program};
use crate::problem::Code;

const PROGRAM_KEYS: [&str; 3] = ["path", "outputs", "dims"];

impl Checker<'_> {
    /// The programs of a model that has several: each a path, or a table with one and with names.
    pub(super) fn programs(&mut self, model: &Map<String, Value>, place: &Spot<'_>) -> Option<Vec<Program>> {
        let place = place.entry("programs");
        let map = self.map(model.get("programs")?, &place)?;
        let mut programs = Vec::new();
        for (name, value) in map {
            let (own, name) = (place.entry(name), name.clone());
            if let Some(path) = value.as_str() {
                programs.push(Program { name, path: path.into(), names: Names::default() });
                continue;
            }
            let Some(table) = self.map(value, &own) else { continue };
            self.keys(table, &own, &PROGRAM_KEYS);
            let outputs = self.field(table, &own, "outputs").unwrap_or_default();
            let names = Names { outputs, dims: self.dims(table, &own), ..Names::default() };
            match self.field(table, &own, "path") {
                Some(path) => programs.push(Program { name, path, names }),
                None if table.contains_key("path") => {}
                None => {
                    let help = Some(format!("say `path = \"models/{name}.pt2\"`"));
                    self.report(Code::Missing, format!("program `{name}` has no `path`"), &own, help);
                }
            }
        }
        if map.is_empty() {
            let help = Some("say `programs = { prefill = \"models/prefill.pt2\", … }`, or `path`".to_owned());
            self.report(Code::Missing, "`programs` names no program".to_owned(), &place, help);
        }
        // Whether a table keeps its order is up to whoever reads it.
        programs.sort_by(|one, other| one.name.cmp(&other.name));
        Some(programs)
    }

    /// A model of programs, if all files are there.
    pub(super) fn model_of_programs(
        &mut self,
        name: &str,
        raw: &RawModel,
        programs: &[Program],
        base: &Path,
    ) -> Option<Model> {
        let place = Spot::table().entry("models").entry(name);
        for (key, is_given) in
            [("outputs", !raw.names.outputs.is_empty()), ("dims", !raw.names.dims.is_empty())]
        {
            if is_given {
                let message = format!("`{key}` of a model with several programs belongs to each of them");
                let help = format!("say `programs = {{ decode = {{ path = \"…\", {key} = … }} }}`");
                self.report(Code::Value, message, &place.entry(key).key(), Some(help));
            }
        }
        let mut model = Model::new(name, PathBuf::new());
        model.programs = programs.to_vec();
        let list = place.entry("programs");
        let mut are_there = !programs.is_empty();
        for program in &mut model.programs {
            program.path = base.join(&program.path);
            let own = list.entry(&program.name);
            are_there &= self.file(&program.path, &own, "paths are relative to the manifest with the table");
        }
        model.path.clone_from(&model.programs.first()?.path);
        are_there.then_some(model)
    }
}
