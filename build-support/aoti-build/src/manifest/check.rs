//! Checks a metadata table key by key, collecting every problem.

mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aoti_compiler::json::FromJson;
use aoti_toolchain::{Device, UserToolchain};
use serde_json::{Map, Value};

use super::{Architectures, RawModel, RawTable, Table};
use crate::locate::{Location, Spot};
use crate::model::{MathLibrary, Model, Names, Tf32, Weights, WeightsType};
use crate::operators::{Operator, OperatorCode};
use crate::problem::{Code, Problem, Problems, suggest};

const OWN_TABLE_KEYS: [&str; 6] = ["devices", "allow-tf32", "libraries", "models", "operators", "toolchain"];
pub(super) const OPERATOR_KEYS: [&str; 5] = ["schema", "symbol", "source", "decides-sizes", "graph"];
pub(super) const MODEL_KEYS: [&str; 13] = [
    "path",
    "programs",
    "weights",
    "named-weights",
    "weights-type",
    "link",
    "cpu",
    "allow-tf32",
    "outputs",
    "dims",
    "shapes",
    "sizes",
    "test",
];
const TF32_KEYS: [&str; 2] = ["matmul", "conv"];

/// The keys of the table, of which each device has one.
pub(super) fn table_keys() -> Vec<&'static str> {
    Device::ALL.into_iter().map(Device::as_str).chain(OWN_TABLE_KEYS).collect()
}

pub(super) struct Checker<'a> {
    table: Option<&'a Table>,
    /// The folder of the package whose build script says it, if that is who does.
    script: Option<&'a Path>,
    /// The text of the table's manifest, read when it is first wanted.
    text: Option<Option<Arc<str>>>,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(table: Option<&'a Table>) -> Self {
        Checker { table, script: None, text: None, problems: Vec::new() }
    }

    /// A checker of what a build script says itself.
    pub(super) fn of_script(folder: &'a Path) -> Self {
        Checker { script: Some(folder), ..Checker::new(None) }
    }

    pub(super) fn finish(self) -> Result<(), Problems> {
        if self.problems.is_empty() { Ok(()) } else { Err(Problems(self.problems)) }
    }

    /// The table, as far as it makes sense; the rest is reported.
    pub(super) fn table(&mut self, value: &Value) -> RawTable {
        let spot = Spot::table();
        let Some(map) = self.map(value, &spot) else { return RawTable::default() };
        self.keys(map, &spot, &table_keys());
        let mut list = |key: &str| self.field::<Vec<String>>(map, &spot, key).unwrap_or_default();
        let [devices, cpu, libraries] = ["devices", "cpu", "libraries"].map(&mut list);
        let gpus = Device::GPUS.map(|device| (device, list(device.as_str()))).into();
        let tf32 = self.tf32(map, &spot);
        let operators = self.table_of_operators(value);
        let mut raw =
            RawTable { devices, cpu, gpus, tf32, libraries, models: None, toolchains: None, operators };
        if let Some(tables) = map.get("toolchain") {
            raw.toolchains = self.toolchains(tables);
        }
        if let Some(models) = map.get("models")
            && let Some(models) = self.map(models, &spot.entry("models"))
        {
            let read = |(name, value): (&String, &Value)| Some((name.clone(), self.raw_model(name, value)?));
            raw.models = Some(models.iter().filter_map(read).collect::<BTreeMap<_, _>>());
        }
        raw
    }

    fn raw_model(&mut self, name: &str, value: &Value) -> Option<RawModel> {
        let place = Spot::table().entry("models").entry(name);
        let map = self.map(value, &place)?;
        self.keys(map, &place, &MODEL_KEYS);
        Some(RawModel {
            path: self.field(map, &place, "path"),
            programs: self.programs(map, &place),
            weights: self.word(map, &place, "weights", &["embed", "sidecar", "external"]),
            named_weights: self.field(map, &place, "named-weights"),
            weights_type: self.word(map, &place, "weights-type", &["own", "int8", "int4", "bf16"]),
            link: self.word(map, &place, "link", &["static", "dylib"]),
            cpu: self.field(map, &place, "cpu"),
            tf32: self.tf32(map, &place),
            names: Names {
                outputs: self.field(map, &place, "outputs").unwrap_or_default(),
                dims: self.dims(map, &place),
                ..Names::default()
            },
            shapes: self.field(map, &place, "shapes").unwrap_or_default(),
            sizes: self.field(map, &place, "sizes").unwrap_or_default(),
            test: self.field(map, &place, "test").unwrap_or(true),
        })
    }

    /// What GPUs may round: all or nothing of `f32`, or what is named, and of the rest what PyTorch does.
    fn tf32(&mut self, map: &Map<String, Value>, place: &Spot<'_>) -> Option<Tf32> {
        let value = map.get("allow-tf32")?;
        if let Some(all) = value.as_bool() {
            return Some(Tf32 { matmul: all, conv: all });
        }
        let place = place.entry("allow-tf32");
        if !value.is_object() {
            let help = "say `true`, `false`, or `{ matmul = true, conv = true }`".to_owned();
            self.report(Code::Value, "`allow-tf32` is no table".to_owned(), &place, Some(help));
            return None;
        }
        let own = self.map(value, &place)?;
        self.keys(own, &place, &TF32_KEYS);
        let Tf32 { matmul, conv } = Tf32::default();
        let mut is_allowed = |key: &str, default: bool| self.field(own, &place, key).unwrap_or(default);
        Some(Tf32 { matmul: is_allowed("matmul", matmul), conv: is_allowed("conv", conv) })
    }

    /// Operators of the project's own, as far as they make sense.
    pub(super) fn table_of_operators(&mut self, value: &Value) -> Vec<Operator> {
        let place = Spot::table().entry("operators");
        let Some(map) = value.get("operators").and_then(|value| self.map(value, &place)) else {
            return Vec::new();
        };
        map.iter().filter_map(|(name, value)| self.raw_operator(name, value, &place.entry(name))).collect()
    }

    fn raw_operator(&mut self, name: &str, value: &Value, place: &Spot<'_>) -> Option<Operator> {
        let map = self.map(value, place)?;
        self.keys(map, place, &OPERATOR_KEYS);
        let [schema, symbol] = ["schema", "symbol"].map(|key| self.field::<String>(map, place, key));
        let [source, graph] = ["source", "graph"].map(|key| self.field::<PathBuf>(map, place, key));
        let decides_sizes = self.field::<bool>(map, place, "decides-sizes").unwrap_or(false);
        let Some(schema) = schema else {
            if !map.contains_key("schema") {
                let help = "say `schema = \"(Tensor x) -> Tensor\"`, as torch.library has it".to_owned();
                self.report(Code::Missing, format!("operator `{name}` has no `schema`"), place, Some(help));
            }
            return None;
        };
        let message = match (symbol, graph, source) {
            (Some(symbol), None, source) => {
                let code = OperatorCode::Function { symbol, source, decides_sizes };
                return Some(Operator { name: name.to_owned(), schema, code });
            }
            (None, Some(_), None) if decides_sizes => {
                format!("operator `{name}` has a `graph`, whose sizes follow from those of its operands")
            }
            (None, Some(graph), None) => return Some(Operator::graph(name, schema, graph)),
            (Some(_), Some(_), _) => format!("operator `{name}` has a `symbol` and a `graph`"),
            (None, Some(_), Some(_)) => format!("operator `{name}` has a `graph`, which has no `source`"),
            (None, None, _) => format!("operator `{name}` has neither `symbol` nor `graph`"),
        };
        let help = "`symbol` names a C function, which its C++ `source` or the program defines; `graph` a file of `.aoti` text";
        self.report(Code::Value, message, place, Some(help.to_owned()));
        None
    }

    /// Operators with paths from a folder; those that are wrong are reported.
    pub(super) fn operators(&mut self, operators: &[Operator], base: &Path) -> Vec<Operator> {
        let place = Spot::table().entry("operators");
        let operators: Vec<Operator> =
            operators.iter().map(|operator| operator.clone().within(base)).collect();
        for operator in &operators {
            self.operator(operator, &place.entry(&operator.name));
        }
        operators
    }

    /// Checks an operator.
    pub(super) fn operator(&mut self, operator: &Operator, place: &Spot<'_>) {
        let key = match &operator.code {
            OperatorCode::Function { .. } => "source",
            OperatorCode::Graph(_) => "graph",
        };
        if let Some(path) = operator.file().filter(|path| !path.is_file()) {
            let message = format!("there is no file `{}`", path.display());
            let help = "paths are relative to the manifest with the table".to_owned();
            self.report(Code::Missing, message, &place.entry(key), Some(help));
            return;
        }
        match operator.check() {
            Err(error) => self.report(Code::Missing, error.to_string(), &place.entry(key), None),
            Ok(Ok(())) => {}
            Ok(Err(found)) => {
                for finding in found.0 {
                    self.report(Code::Value, finding.message, place, finding.help);
                }
            }
        }
    }

    /// Names of dimensions, by the program's.
    fn dims(&mut self, model: &Map<String, Value>, place: &Spot<'_>) -> Vec<(String, String)> {
        let place = place.entry("dims");
        let Some(map) = model.get("dims").and_then(|value| self.map(value, &place)) else {
            return Vec::new();
        };
        let named = |name: &String| Some((name.clone(), self.field::<String>(map, &place, name)?));
        map.keys().filter_map(named).collect()
    }

    /// The project's own toolchains.
    fn toolchains(&mut self, value: &Value) -> Option<BTreeMap<String, UserToolchain>> {
        let mut tables = BTreeMap::new();
        let toolchains = Spot::table().entry("toolchain");
        for (name, value) in self.map(value, &toolchains)? {
            let place = toolchains.entry(name);
            let Some(map) = self.map(value, &place) else { continue };
            self.keys(map, &place, &UserToolchain::KEYS);
            let known = |(key, _): &(&String, &Value)| UserToolchain::KEYS.contains(&key.as_str());
            let known: Map<String, Value> =
                map.iter().filter(known).map(|(key, value)| (key.clone(), value.clone())).collect();
            match serde_json::from_value::<UserToolchain>(Value::Object(known)) {
                Ok(table) => drop(tables.insert(name.clone(), table)),
                Err(error) => self.report(Code::Value, error.to_string(), &place, None),
            }
        }
        Some(tables)
    }

    /// Architectures of GPUs, of which none may have a name that no GPU can have.
    pub(super) fn architectures(&mut self, all: &Architectures) {
        for (device, names) in all {
            self.architectures_of(*device, names);
        }
    }

    fn architectures_of(&mut self, device: Device, names: &[String]) {
        let is_one = |name: &&String| {
            *name != "native" && aoti_toolchain::GpuArchitecture::parse(device, name).is_none()
        };
        for name in names.iter().filter(is_one) {
            let known: Vec<String> =
                aoti_toolchain::gpu_architectures(device).iter().map(ToString::to_string).collect();
            let known: Vec<&str> = ["native"].into_iter().chain(known.iter().map(String::as_str)).collect();
            let message = format!("`{name}` is no {} architecture", device.as_str());
            let spot = Spot::table().entry(device.as_str()).item(name);
            self.report(Code::Device, message, &spot, suggestion(name, &known));
        }
    }

    /// Libraries by name; those that there are not are reported.
    pub(super) fn libraries(&mut self, names: &[String]) -> Vec<MathLibrary> {
        let mut all = Vec::new();
        for name in names {
            match MathLibrary::ALL.into_iter().find(|library| library.name() == name) {
                Some(library) => all.push(library),
                None => {
                    let known = MathLibrary::ALL.map(MathLibrary::name);
                    let help = suggestion(name, &known)
                        .unwrap_or_else(|| format!("there are `{}`", known.join("` and `")));
                    let message = format!("no library `{name}` is known");
                    self.report(
                        Code::Value,
                        message,
                        &Spot::table().entry("libraries").item(name),
                        Some(help),
                    );
                }
            }
        }
        all.sort();
        all.dedup();
        all
    }

    /// One model of the package in this folder, if it can be built.
    pub(super) fn model(&mut self, name: &str, raw: &RawModel, base: &Path, package: &Path) -> Option<Model> {
        let place = Spot::table().entry("models").entry(name);
        let mut model = match (&raw.path, &raw.programs) {
            (Some(path), None) => {
                let path = base.join(path);
                let is_there = self.file(&path, &place, "paths are relative to the manifest with the table");
                is_there.then(|| Model::new(name, path))?
            }
            (None, Some(programs)) => self.model_of_programs(name, raw, programs, base)?,
            (Some(_), Some(_)) => {
                let message = format!("model `{name}` has a `path` and `programs`");
                let help = Some("a model is one file or several programs".to_owned());
                self.report(Code::Value, message, &place.entry("path").key(), help);
                return None;
            }
            (None, None) => {
                let help = format!("say `path = \"models/{name}.pt2\"`");
                self.report(Code::Missing, format!("model `{name}` has no `path`"), &place, Some(help));
                return None;
            }
        };
        (model.weights, model.link, model.names) = (raw.weights, raw.link, raw.names.clone());
        model.shapes.clone_from(&raw.shapes);
        model.sizes.clone_from(&raw.sizes);
        if let Some(levels) = &raw.cpu {
            model.levels = self.levels_at(levels, &place.entry("cpu"));
        }
        model.named_weights = raw.named_weights.unwrap_or_default();
        model.weights_type = raw.weights_type;
        self.weights_type(&model);
        model.tf32 = raw.tf32;
        model.test = raw.test;
        model.find_samples(package);
        Some(model)
    }

    /// Checks a model that a build script gives.
    pub(super) fn given(&mut self, model: &Model) {
        let place = Spot::table().entry("models").entry(&model.name);
        for (_, path) in model.program_files() {
            self.file(path, &place, "paths are relative to the folder of the package");
        }
        self.levels_at(&model.levels, &place.entry("cpu"));
        self.weights_type(model);
    }

    /// Weights that a run may replace stay as the program has them.
    fn weights_type(&mut self, model: &Model) {
        let is_named = model.named_weights || model.weights == Weights::External;
        if is_named && model.weights_type != WeightsType::Own {
            let place = Spot::table().entry("models").entry(&model.name);
            let message =
                format!("model `{}` takes weights by name, which no `weights-type` rounds", model.name);
            let help = "use `weights = \"embed\"` or `\"sidecar\"`, without `named-weights`".to_owned();
            self.report(Code::Value, message, &place.entry("weights-type"), Some(help));
        }
    }

    /// Whether a model's file is there.
    fn file(&mut self, path: &Path, place: &Spot<'_>, help: &str) -> bool {
        let is_there = path.is_file();
        if !is_there {
            let message = format!("there is no file `{}`", path.display());
            self.report(Code::Missing, message, &place.entry("path"), Some(help.to_owned()));
        }
        is_there
    }

    /// Reports architectures of devices that nothing is built for.
    pub(super) fn unused(&mut self, all: &Architectures, devices: &[String]) {
        for (device, architectures) in all {
            let name = device.as_str();
            if !architectures.is_empty() && !devices.iter().any(|named| named == name) {
                let message = format!("`{name}` lists architectures, but `devices` does not name `{name}`");
                let help = format!("add `\"{name}\"` to `devices`, or leave `{name}` out");
                self.report(Code::Device, message, &Spot::table().entry(name).key(), Some(help));
            }
        }
    }

    /// Reports devices that are not known.
    pub(super) fn devices(&mut self, devices: &[String]) {
        let list = Spot::table().entry("devices");
        for device in devices {
            let spot = list.item(device);
            match device.as_str() {
                known if Device::from_name(known).is_some() => {}
                "gpu" => {
                    let names = Device::GPUS.map(|device| format!("`{}`", device.as_str()));
                    let help = Some(format!("say which: {}", names.join(" or ")));
                    self.report(Code::Device, "there is no device `gpu`".to_owned(), &spot, help);
                }
                unknown => {
                    let names = Device::ALL.map(Device::as_str);
                    let help = suggestion(unknown, &names);
                    self.report(Code::Device, format!("there is no device `{unknown}`"), &spot, help);
                }
            }
        }
    }

    /// The levels, of which none may be unknown to every toolchain.
    pub(super) fn levels(&mut self, levels: &[String]) -> Vec<String> {
        self.levels_at(levels, &Spot::table().entry("cpu"))
    }

    fn levels_at(&mut self, levels: &[String], place: &Spot<'_>) -> Vec<String> {
        if levels.is_empty() {
            return Vec::new();
        }
        let definitions = aoti_toolchain::definitions();
        let known: BTreeSet<&str> =
            definitions.iter().flat_map(|definition| definition.levels.keys().map(String::as_str)).collect();
        for level in levels.iter().filter(|level| !known.contains(level.as_str())) {
            let known: Vec<&str> = known.iter().copied().collect();
            let message = format!("no toolchain knows the level `{level}`");
            self.report(Code::Device, message, &place.item(level), suggestion(level, &known));
        }
        levels.to_vec()
    }

    /// Reports models that would be one module.
    pub(super) fn duplicates(&mut self, models: &[Model]) {
        let mut seen: BTreeMap<String, &Model> = BTreeMap::new();
        for model in models {
            let Some(first) = seen.insert(model.identifier(), model) else { continue };
            let (a, b) = (first.path.display(), model.path.display());
            let message = format!("`{a}` and `{b}` both become the model `{}`", model.identifier());
            let help = "name them in `[package.metadata.aoti.models.<name>]`".to_owned();
            self.report(Code::Duplicate, message, &Spot::table().entry("models").key(), Some(help));
        }
    }

    fn map<'v>(&mut self, value: &'v Value, place: &Spot<'_>) -> Option<&'v Map<String, Value>> {
        let map = value.as_object();
        if map.is_none() {
            self.report(Code::Value, format!("expected a table, found {}", kind(value)), place, None);
        }
        map
    }

    fn keys(&mut self, map: &Map<String, Value>, place: &Spot<'_>, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let help = suggestion(key, known);
            self.report(Code::UnknownKey, format!("unknown key `{key}`"), &place.entry(key).key(), help);
        }
    }

    fn field<T: FromJson>(&mut self, map: &Map<String, Value>, place: &Spot<'_>, key: &str) -> Option<T> {
        let value = map.get(key)?;
        match T::from_json(value.clone()) {
            Ok(value) => Some(value),
            Err(error) => {
                self.report(Code::Value, error.to_string(), &place.entry(key), None);
                None
            }
        }
    }

    fn word<T: FromJson + Default>(
        &mut self,
        map: &Map<String, Value>,
        place: &Spot<'_>,
        key: &str,
        known: &[&str],
    ) -> T {
        let Some(value) = map.get(key) else { return T::default() };
        if let Ok(value) = T::from_json(value.clone()) {
            return value;
        }
        let given = value.as_str().map_or_else(|| kind(value).to_owned(), |text| format!("`{text}`"));
        let help = value.as_str().and_then(|text| suggestion(text, known));
        self.report(Code::Value, format!("`{key}` cannot be {given}"), &place.entry(key), help);
        T::default()
    }

    fn report(&mut self, code: Code, message: String, spot: &Spot<'_>, help: Option<String>) {
        let (mut place, mut location) = ("no metadata table; models/*.{pt2,onnx,aoti}".to_owned(), None);
        if let Some(folder) = self.script {
            place = format!("{}: {}", folder.join("build.rs").display(), spot.keys.join("."));
        } else if let Some(table) = self.table {
            let keys: Vec<&str> = std::iter::once(table.name).chain(spot.keys.iter().copied()).collect();
            place = format!("{}: {}", table.file.display(), keys.join("."));
            let text =
                self.text.get_or_insert_with(|| std::fs::read_to_string(&table.file).ok().map(Arc::from));
            location = text.as_ref().and_then(|text| Location::of(&table.file, text, table.name, spot));
        }
        self.problems.push(Problem { code, message, place, location, help });
    }
}

fn suggestion(given: &str, known: &[&str]) -> Option<String> {
    Some(match suggest(given, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of `{}`", known.join("`, `")),
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}
