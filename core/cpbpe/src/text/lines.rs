//! Many short texts in one piece of memory: its lines.

use crate::error::Halt;
use crate::memory::{with_room, Grow};

/// The lines of a text, of which empty ones are left out.
pub struct Lines<'a> {
    /// The others, without their newlines. They are not known to be UTF-8.
    pub texts: Vec<(&'a [u8], bool)>,
    /// The numbers of the empty ones, from 0.
    pub empty: Vec<i64>,
}

impl<'a> Lines<'a> {
    /// Cut a text after each newline; the last line may lack its own.
    pub fn of(data: &'a [u8]) -> Result<Lines<'a>, Halt> {
        let (mut texts, mut empty) = (with_room(data.len() / 64)?, Vec::new());
        let (mut begin, mut number) = (0, 0);
        let mut add = |line: &'a [u8]| -> Result<(), Halt> {
            if line.is_empty() {
                empty.grow(1)?;
                empty.push(number);
            } else {
                texts.grow(1)?;
                texts.push((line, false));
            }
            number += 1;
            Ok(())
        };
        for end in memchr::memchr_iter(b'\n', data) {
            add(&data[begin..end])?;
            begin = end + 1;
        }
        if begin < data.len() {
            add(&data[begin..])?;
        }
        Ok(Lines { texts, empty })
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    fn lines(data: &[u8]) -> (Vec<&[u8]>, Vec<i64>) {
        let found = Lines::of(data).unwrap();
        (found.texts.into_iter().map(|(text, _)| text).collect(), found.empty)
    }

    #[test]
    fn a_text_has_lines() {
        assert_eq!(lines(b""), (vec![], vec![]));
        assert_eq!(lines(b"\n"), (vec![], vec![0]));
        assert_eq!(lines(b"a"), (vec![&b"a"[..]], vec![]));
        assert_eq!(lines(b"a\n\nb\r\n\n"), (vec![&b"a"[..], &b"b\r"[..]], vec![1, 3]));
        assert_eq!(lines(b"\n\na"), (vec![&b"a"[..]], vec![0, 1]));
    }
}
