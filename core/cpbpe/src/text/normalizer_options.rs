//! The switches of a normalizer, as a model has them.

use crate::text::forms::Form;

/// How text is rewritten; see `NormalizerSpec` in `cpbpe/model/spec.py`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalizerOptions {
    /// What the model calls its rules.
    pub name: Vec<u8>,
    /// The compiled rules, empty when there are none.
    pub charsmap: Vec<u8>,
    /// Put a space in front.
    pub add_dummy_prefix: bool,
    /// Drop spaces at both ends, make runs one.
    pub remove_extra_whitespaces: bool,
    /// Write a space as U+2581.
    pub escape_whitespaces: bool,
    /// `add_dummy_prefix` puts the space at the end.
    pub suffix: bool,
    /// Put a space in front also of what begins with one.
    pub prefix_before_space: bool,
    /// The Unicode normal form, for byte-level models.
    pub unicode_form: Option<Form>,
}

impl Default for NormalizerOptions {
    fn default() -> Self {
        NormalizerOptions {
            name: Vec::new(),
            charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
            suffix: false,
            prefix_before_space: true,
            unicode_form: None,
        }
    }
}
