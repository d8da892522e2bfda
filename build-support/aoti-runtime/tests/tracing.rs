//! What the feature `tracing` tells: models that are loaded, runs, and kernels to those who listen that closely.

mod support;

use std::fmt::Write;
use std::sync::{Arc, Mutex};

use aoti_runtime::{DType, DynTensor, Inline, LoadOptions, TensorView, Workspace};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes down what is told up to a level, a line each.
struct Heard {
    most: Level,
    lines: Arc<Mutex<Vec<String>>>,
}

/// The fields of an event but the times, which are never the same.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() != "us" {
            write!(self.0, " {}={value:?}", field.name()).expect("text takes text");
        }
    }
}

impl Heard {
    fn note(&self, begins: String, record: impl FnOnce(&mut Line)) {
        let mut line = Line(begins);
        record(&mut line);
        self.lines.lock().expect("nobody panics with it").push(line.0);
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "aoti_runtime" && *metadata.level() <= self.most
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let metadata = span.metadata();
        self.note(format!("{} span {}", metadata.level(), metadata.name()), |line| span.record(line));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata().level().to_string(), |line| event.record(line));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is told of a model that is loaded and run once.
fn told(most: Level) -> Vec<String> {
    let lines = Arc::default();
    let heard = Heard { most, lines: Arc::clone(&lines) };
    tracing::subscriber::with_default(heard, || {
        let model = support::library(&[]).unwrap().load(LoadOptions::default()).unwrap();
        let mut y = DynTensor::empty(DType::F32);
        let x = TensorView::new(&[1.0f32; 6], &[2, 3]).unwrap();
        model.run(&[x.erase()], &mut [&mut y], None, &mut Workspace::new(), &Inline).unwrap();
    });
    lines.lock().unwrap().clone()
}

#[test]
fn models_runs_and_kernels_are_told_by_their_levels() {
    let all = [
        "INFO message=loaded a model model=\"fake\" level=\"by-hand\" device=cpu weights_bytes=64",
        "DEBUG span run model=\"fake\"",
        "TRACE message=ran a kernel kernel=\"add_bias\" module=\"layer\"",
    ];
    assert_eq!(told(Level::TRACE), all);
    assert_eq!(told(Level::DEBUG), all[..2]);
    assert_eq!(told(Level::INFO), all[..1]);
}
