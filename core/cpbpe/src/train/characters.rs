//! Which characters are accepted; `accept_characters` in the reference explains how.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::error::Error;
use crate::memory::zeros;
use crate::train::limits::{BOUNDARY, UNKNOWN};
use crate::train::threads::{in_threads, CHECK_INTERVAL};
use crate::train::values::{Characters, LearnSpec};
use crate::train::words::WordsRef;
use crate::watch::Monitor;

/// Fewer words than this are not worth a thread.
const PARALLEL: usize = 1 << 15;

/// How often each code point occurs in the text. Fails if the text, including repetitions, has 2**63 bytes or more. So
/// no sum of counts can overflow from here on.
pub fn count_characters(words: &WordsRef, threads: usize, monitor: &Monitor) -> Result<Vec<u64>, Error> {
    let parts = if words.len() < PARALLEL { 1 } else { threads.max(1) };
    let count_part = |number: usize| {
        let mut counts: Vec<u64> = zeros(0x11_0000)?;
        let (mut bytes, mut highest) = (0u128, '\0');
        for at in words.len() * number / parts..words.len() * (number + 1) / parts {
            if at % CHECK_INTERVAL == 0 {
                monitor.advance(at)?;
            }
            let (word, count) = words.get(at);
            bytes += word.len() as u128 * u128::from(count);
            for c in word.chars() {
                counts[c as usize] = counts[c as usize].wrapping_add(count);
                highest = highest.max(c);
            }
        }
        Ok((counts, bytes, highest))
    };
    let counted: Result<Vec<(Vec<u64>, u128, char)>, Error> = in_threads(0..parts, count_part).into_iter().collect();
    let mut counted = counted?.into_iter();
    let (mut counts, mut bytes, _) = counted.next().unwrap_or_default();
    for (others, more, highest) in counted {
        bytes += more;
        // (Most of the table is empty. Those parts take no memory as long as nobody reads them.)
        counts.iter_mut().zip(&others[..=highest as usize]).for_each(|(sum, more)| *sum = sum.wrapping_add(*more));
    }
    if bytes > i64::MAX as u128 {
        return Err(Error::BytesOverflow);
    }
    Ok(counts)
}

/// Whether any piece may contain a character. (A space here is a space of real text, not of compact text.)
fn acceptable(c: char) -> bool {
    !matches!(c, UNKNOWN | BOUNDARY | '\0' | ' ')
}

/// Accept characters, given the count of every code point.
pub fn accept_characters(counts: &[u64], spec: &LearnSpec) -> Characters {
    let count = |c: char| counts[c as usize];
    // 1. The candidates: required characters first, then the most frequent.
    let required: HashSet<char> = spec.required_chars.iter().copied().filter(|&c| c != '\0').collect();
    let in_text = ('\u{1}'..=char::MAX).filter(|&c| count(c) > 0);
    let not_in_text = required.iter().copied().filter(|&c| count(c) == 0);
    let mut candidates: Vec<char> = in_text.chain(not_in_text).collect();
    candidates.sort_unstable_by_key(|&c| (!required.contains(&c), Reverse(count(c)), c));
    // 2. Accept one after the other until enough of the text is covered.
    let total: u64 = candidates.iter().map(|&c| count(c)).sum();
    let mut covered = 0;
    let mut enough = total == 0;
    let (mut accepted, mut dropped) = (Vec::new(), Vec::new());
    for c in candidates {
        enough |= !spec.auto_character_coverage && (covered as f64 / total as f64) as f32 >= spec.character_coverage;
        let wanted = if spec.auto_character_coverage { count(c) > 0 } else { !enough };
        if wanted && acceptable(c) {
            accepted.push((c, count(c)));
        } else if c != BOUNDARY && count(c) > 0 {
            dropped.push((c, count(c)));
        }
        covered += count(c);
    }
    // 3. In the model, the most frequent come first, required or not.
    for list in [&mut accepted, &mut dropped] {
        list.sort_unstable_by_key(|&(c, count)| (Reverse(count), c));
    }
    let nuls = count('\0');
    Characters { accepted, dropped, boundaries: count(BOUNDARY), nuls, total: total + nuls }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::words::Words;

    #[test]
    fn many_words_are_counted_in_threads() {
        let mut words = Words::default();
        for number in 0..PARALLEL as u32 + 5 {
            let c = char::from_u32(number * 7 % 0xD800).unwrap();
            words.push(format!("a{c}").as_bytes(), u64::from(number)).unwrap();
        }
        words.push("\u{10FFFF}".as_bytes(), 3).unwrap();
        let monitor = Monitor::default();
        let one = count_characters(&words.view(), 1, &monitor).unwrap();
        let a = (PARALLEL as u64 + 4) * (PARALLEL as u64 + 5) / 2;
        assert!(one[usize::from(b'a')] >= a && one[0x10_FFFF] == 3 && one[7] >= 1);
        assert_eq!(count_characters(&words.view(), 3, &monitor).unwrap(), one);
        words.push(b"a", u64::MAX / 2).unwrap();
        let [one, three] = [1, 3].map(|threads| count_characters(&words.view(), threads, &monitor));
        assert!(matches!((one, three), (Err(Error::BytesOverflow), Err(Error::BytesOverflow))));
    }
}
