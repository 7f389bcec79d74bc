//! Which characters are accepted; `accept_characters` in `cpbpe/reference_train.py` says it plainly.

use std::collections::HashSet;

use crate::train::columns::Words;
use crate::train::learn::{Failure, Learned, Monitor, Spec};
use crate::train::piece::{BOUNDARY, UNKNOWN};

/// How often each code point stands in the text.
pub fn count_characters(words: &Words, monitor: &Monitor) -> Result<Vec<u64>, Failure> {
    let mut counts = vec![0u64; 0x11_0000];
    let mut bytes = 0u128;
    for at in 0..words.len() {
        if at % (1 << 16) == 0 {
            monitor.done(at)?;
        }
        let (word, count) = words.get(at);
        bytes += word.len() as u128 * u128::from(count);
        for c in word.chars() {
            counts[c as usize] = counts[c as usize].wrapping_add(count);
        }
    }
    if bytes > i64::MAX as u128 {
        return Err(Failure::TooMany);
    }
    Ok(counts)
}

/// Whether a piece may hold a character at all.
fn acceptable(c: char) -> bool {
    !matches!(c, UNKNOWN | BOUNDARY | '\0' | ' ')
}

/// The accepted characters and the others of the text, in the order of the model.
pub fn accept(counts: &[u64], spec: &Spec) -> Learned {
    let required: HashSet<char> = spec.required.iter().copied().filter(|&c| c != '\0').collect();
    let count = |c: char| counts[c as usize];
    let in_text = ('\u{1}'..=char::MAX).filter(|&c| count(c) > 0);
    let mut candidates: Vec<char> =
        in_text.chain(required.iter().copied().filter(|&c| counts[c as usize] == 0)).collect();
    let total: u64 = candidates.iter().map(|&c| count(c)).sum();
    candidates.sort_unstable_by_key(|&c| (!required.contains(&c), u64::MAX - count(c), c));
    let mut covered = 0;
    let mut full = total == 0;
    let mut found = Learned { boundaries: count(BOUNDARY), nuls: count('\0'), ..Learned::default() };
    for c in candidates {
        full |= !spec.auto_coverage && (covered as f64 / total as f64) as f32 >= spec.coverage;
        let wanted = if spec.auto_coverage { count(c) > 0 } else { !full };
        if wanted && acceptable(c) {
            found.characters.push((c, count(c)));
        } else if c != BOUNDARY && count(c) > 0 {
            found.dropped.push((c, count(c)));
        }
        covered += count(c);
    }
    for list in [&mut found.characters, &mut found.dropped] {
        list.sort_unstable_by_key(|&(c, count)| (u64::MAX - count, c));
    }
    found.symbols.push(total + found.nuls);
    found
}
