//! Characters that were seen once. A chunk of one character is remembered when it comes for the second time: there are
//! texts in which every character is another one, and the memory for them took more time than all the rest.

use crate::cache::key::Key;

/// How many characters are kept in mind.
const SIZE: usize = 1 << 14;

/// See the top of this file.
#[derive(Default)]
pub struct Once(Vec<u32>);

impl Once {
    /// Whether a chunk of one character comes for the first time, as far as is known.
    pub fn is_new(&mut self, key: Key) -> bool {
        if self.0.is_empty() {
            self.0 = vec![0; SIZE];
        }
        let character = key.halves[0] as u32;
        std::mem::replace(&mut self.0[key.hash as usize % SIZE], character) != character
    }
}
