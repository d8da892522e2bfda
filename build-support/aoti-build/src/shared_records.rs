//! Records that machines of one class share through the cache: a folder, the layers behind it, a team's server. What is
//! there was written by anybody, and is read as a lock is.
//!
//! A record is kept under all that it depends on, the ways it won against among them: what was measured over fewer or other
//! ways answers another question.

use std::path::Path;

use aoti_compiler::schedule::Setting;
use aoti_toolchain::Work;

use crate::error::Error;
use crate::files::{self, file_error};
use crate::lock::{Lock, Place, Record, read};
use crate::progress::{Forward, Progress};
use crate::session::Session;

const OUTPUT: &str = "record.toml";

/// What a measurement is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The kernel, the class of machines, the number of threads and the sizes.
    pub place: &'a Place,
    /// The native compiler.
    pub compiler: &'a str,
    /// The ways to run the kernel that are to be compared.
    pub candidates: &'a [&'a Setting],
}

impl Session {
    /// The record of somebody's measurement, if the cache has one that answers the question.
    pub fn shared_record(&self, question: &Question<'_>, progress: &dyn Progress) -> Option<Record> {
        let outputs = self.executor.kept(&self.shared_work(question), &Forward(progress))?;
        let path = &outputs.file(OUTPUT)?.path;
        question.answer(&std::fs::read(path).ok()?)
    }

    /// Lets others have a record, in the place of an earlier one.
    ///
    /// # Errors
    /// When a temporary file cannot be written; a cache that fails is a warning.
    pub fn share_record(
        &self,
        question: &Question<'_>,
        record: &Record,
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let mut lock = Lock::default();
        lock.records.insert(question.place.clone(), record.clone());
        self.executor.replace(&self.shared_work(question), &Forward(progress), |folder| {
            let path = folder.join(OUTPUT);
            files::write_parts(&path, &mut std::iter::once(lock.to_string().as_bytes()))
                .map_err(file_error("write", &path))
        })
    }

    fn shared_work(&self, question: &Question<'_>) -> Work {
        let Place { kernel, machine, threads, sizes } = question.place;
        let candidates = question.candidates.iter().map(|way| format!("{way} v{}", way.version()));
        Work {
            label: format!("record of {kernel} on {machine}, {threads} threads"),
            target: self.target.clone(),
            ingredients: vec![
                ("kernel", kernel.to_string()),
                ("machine", machine.clone()),
                ("threads", threads.to_string()),
                ("sizes", sizes.to_string()),
                ("compiler", question.compiler.to_owned()),
                ("ways", candidates.collect::<Vec<_>>().join("\n")),
            ],
            outputs: vec![OUTPUT.to_owned()],
        }
    }
}

impl Question<'_> {
    /// The record in a text, if it answers this question.
    fn answer(&self, text: &[u8]) -> Option<Record> {
        let mut lock = read::read(Path::new(OUTPUT), text).ok()?.lock;
        let record = lock.records.remove(self.place)?;
        let fits = lock.records.is_empty()
            && record.compiler == self.compiler
            && record.template == record.setting.version()
            && self.candidates.contains(&&record.setting);
        fits.then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::tests::{place, record};

    #[test]
    fn only_the_answer_to_the_question_counts() {
        let (own, other) =
            (place("0123456789abcdef", "x86_64.v4", 1), place("0123456789abcdef", "x86_64.v4", 2));
        let loops: Setting = "loops".parse().expect("a choice");
        let candidates = [&loops];
        let question = Question { place: &own, compiler: "g++ 12", candidates: &candidates };
        let text = |places: &[&Place], record: &Record| {
            let mut lock = Lock::default();
            places.iter().for_each(|place| drop(lock.records.insert((*place).clone(), record.clone())));
            lock.to_string().into_bytes()
        };
        let right = record("loops");
        assert_eq!(question.answer(&text(&[&own], &right)), Some(right.clone()));
        assert_eq!(question.answer(&text(&[&other], &right)), None, "of two threads");
        assert_eq!(question.answer(&text(&[&own, &other], &right)), None);
        assert_eq!(question.answer(b"version = 1\n"), None);
        assert_eq!(question.answer(b"\xff nonsense"), None);
        let foreign = Record { compiler: "clang 19".to_owned(), ..right.clone() };
        assert_eq!(question.answer(&text(&[&own], &foreign)), None);
        let old = Record { template: right.template + 1, ..right.clone() };
        assert_eq!(question.answer(&text(&[&own], &old)), None);
        let unasked = record("gemm.packed split rows 64 lanes outer grain 65536");
        assert_eq!(question.answer(&text(&[&own], &unasked)), None, "no way of this kernel");
    }
}
