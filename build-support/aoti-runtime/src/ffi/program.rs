//! Several programs of one library.

use super::model::{LoadOptions, Model};
use crate::Error;

impl Model {
    /// Another program of the library, if it has several, with this one's weights, on its device. States of either serve both.
    ///
    /// # Errors
    /// A name that no program has, and what goes wrong as the model is loaded.
    pub fn program(&self, name: &str) -> Result<Model, Error> {
        let (weights, cpu_level, device) = (self.weights(), self.cpu_level, self.device());
        Model::from_checked_api(self.api.program(name)?, LoadOptions { weights, cpu_level, device })
    }
}
