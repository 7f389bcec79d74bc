//! Lines of text from ids, and ids from lines of text: for programs that exchange ids as
//! text, not as arrays.
//!
//! Each id is written as a word: its digits, its piece, or either of them as JSON. The words are made once. After that,
//! writing an id copies its word, which takes less time than finding the id did.

use crate::error::{Error, Halt};
use crate::memory::{with_room, Grow};
use crate::watch::{Check, Checks};

/// This many bytes are copied for every word. Only longer words need a second copy.
const SHORT: usize = 16;
/// Whether to go on is checked once in this many ids that are written, or bytes that are read.
const STEP: usize = 1 << 16;

/// Writes the ids of many texts, a line for each text.
pub struct LineWriter {
    /// The words, one after the other, each followed by what comes between two of them; then `SHORT` zeros.
    blob: Vec<u8>,
    /// Where the word of each id begins in `blob`, and how long it is.
    words: Vec<(u32, u32)>,
    /// What comes between two words.
    between: Vec<u8>,
    /// What comes before the words of a text.
    before: Vec<u8>,
    /// What comes after them: at least the newline.
    after: Vec<u8>,
}

impl LineWriter {
    /// A writer of these words, one for each id.
    ///
    /// ```
    /// use cpbpe::watch::NO_CHECK;
    /// let words: Vec<&[u8]> = vec![b"0", b"1", b"2"];
    /// let writer = cpbpe::LineWriter::new(&words, b" ", b"", b"\n")?;
    /// assert_eq!(writer.write(&[2, 0, 1], &[2, 2, 3], &[], NO_CHECK)?, b"2 0\n\n1\n");
    /// assert_eq!(writer.write(&[2, 0, 1], &[3], &[(1, b"new")], NO_CHECK)?, b"2 new 1\n");
    /// # Ok::<(), cpbpe::Error>(())
    /// ```
    pub fn new(words: &[&[u8]], between: &[u8], before: &[u8], after: &[u8]) -> Result<LineWriter, Error> {
        let size: usize = words.iter().map(|word| word.len() + between.len()).sum();
        if u32::try_from(size).is_err() {
            return Err(Error::OutOfMemory);
        }
        let mut blob = with_room(size + SHORT)?;
        let mut places = with_room(words.len())?;
        for word in words {
            places.push((blob.len() as u32, (word.len() + between.len()) as u32));
            blob.extend_from_slice(word);
            blob.extend_from_slice(between);
        }
        blob.extend_from_slice(&[0; SHORT]);
        Ok(LineWriter { blob, words: places, between: between.into(), before: before.into(), after: after.into() })
    }

    /// The lines of many texts, whose ids come one after the other; `ends` says where each text ends. `others` are words
    /// to be written instead of those of the ids at these positions, which ascend.
    pub fn write(
        &self,
        ids: &[u32],
        ends: &[usize],
        others: &[(usize, &[u8])],
        check: Check,
    ) -> Result<Vec<u8>, Error> {
        let mut out = Output { bytes: Vec::new(), at: 0 };
        let mut others = others;
        let mut begin = 0;
        let mut checks = Checks::new(check, STEP);
        for &end in ends {
            out.append(&self.before)?;
            while begin < end {
                let step = (end - begin).min(STEP);
                let part = ids.get(begin..begin + step).ok_or(Error::UnknownId(ids.len()))?;
                let inside = others.partition_point(|&(place, _)| place < begin + step);
                let (here, later) = others.split_at(inside);
                self.append(part, begin, here, &mut out)?;
                others = later;
                begin += step;
                checks.at(begin)?;
                if begin == end {
                    out.at -= self.between.len();
                }
            }
            out.append(&self.after)?;
        }
        out.bytes.truncate(out.at);
        Ok(out.bytes)
    }

    /// Append the words of ids, the first of which is at the position `first`.
    fn append(&self, ids: &[u32], first: usize, others: &[(usize, &[u8])], out: &mut Output) -> Result<(), Error> {
        let mut done = 0;
        for &(place, word) in others {
            self.append_words(&ids[done..place - first], first + done, out)?;
            out.append(word)?;
            out.append(&self.between)?;
            done = place - first + 1;
        }
        self.append_words(&ids[done..], first + done, out)
    }

    fn append_words(&self, ids: &[u32], first: usize, out: &mut Output) -> Result<(), Error> {
        let mut size = SHORT;
        for (place, &id) in (first..).zip(ids) {
            size += self.words.get(id as usize).ok_or(Error::UnknownId(place))?.1 as usize;
        }
        out.room(size)?;
        let mut at = out.at;
        for &id in ids {
            let (begin, length) = self.words[id as usize];
            let (begin, length) = (begin as usize, length as usize);
            out.bytes[at..at + SHORT].copy_from_slice(&self.blob[begin..begin + SHORT]);
            if length > SHORT {
                out.bytes[at + SHORT..at + length].copy_from_slice(&self.blob[begin + SHORT..begin + length]);
            }
            at += length;
        }
        out.at = at;
        Ok(())
    }
}

/// Bytes that are being written.
struct Output {
    /// What was written, and room after it, which is initialized.
    bytes: Vec<u8>,
    /// How many bytes were written.
    at: usize,
}

impl Output {
    /// Make room for this many bytes more.
    #[inline]
    fn room(&mut self, more: usize) -> Result<(), Halt> {
        let needed = self.at + more;
        if needed > self.bytes.len() {
            let length = self.bytes.len();
            self.bytes.grow(needed.max(length * 2) - length)?;
            self.bytes.resize(self.bytes.capacity(), 0);
        }
        Ok(())
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        self.room(bytes.len())?;
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        Ok(())
    }
}

/// Ids that were read from lines.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadIds {
    /// The ids of all lines, one after the other.
    pub ids: Vec<u32>,
    /// Where in `ids` each line ends.
    pub ends: Vec<usize>,
    /// Where the first word that is no id begins. Reading stopped there. `None` if all was read.
    pub wrong: Option<usize>,
}

/// Read ids from lines, one for each text, of words between spaces. `id_of` turns a word into an id. Lines end with a
/// newline; the last one may lack it.
///
/// ```
/// use cpbpe::watch::NO_CHECK;
/// let read = cpbpe::read_ids(b"12 0\n\n7", NO_CHECK, cpbpe::decimal)?;
/// assert_eq!((read.ids, read.ends, read.wrong), (vec![12, 0, 7], vec![2, 2, 3], None));
/// assert_eq!(cpbpe::read_ids(b"12 -1\n", NO_CHECK, cpbpe::decimal)?.wrong, Some(3));
/// # Ok::<(), cpbpe::Error>(())
/// ```
pub fn read_ids(data: &[u8], check: Check, id_of: impl Fn(&[u8]) -> Option<u32>) -> Result<ReadIds, Error> {
    let mut read = ReadIds { ids: Vec::new(), ends: Vec::new(), wrong: None };
    let mut begin = 0;
    let mut checks = Checks::new(check, STEP);
    while begin < data.len() {
        // Search for the end of the word.
        let length = data[begin..].iter().position(|&byte| byte == b' ' || byte == b'\n');
        let end = length.map_or(data.len(), |length| begin + length);
        if end > begin {
            let Some(id) = id_of(&data[begin..end]) else {
                read.wrong = Some(begin);
                return Ok(read);
            };
            read.ids.try_push(id)?;
        }
        if data.get(end) == Some(&b'\n') {
            read.ends.try_push(read.ids.len())?;
        }
        begin = end + 1;
        checks.at(begin)?;
    }
    if data.last().is_some_and(|&byte| byte != b'\n') {
        read.ends.try_push(read.ids.len())?;
    }
    Ok(read)
}

/// A number in decimal digits, if it is below 2^32.
pub fn decimal(word: &[u8]) -> Option<u32> {
    if word.is_empty() || word.len() > 10 {
        return None;
    }
    let mut number = 0u64;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::NO_CHECK;

    /// The same in the shortest way.
    fn expected(words: &[Vec<u8>], ids: &[u32], ends: &[usize], others: &[(usize, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut begin = 0;
        for &end in ends {
            let line: Vec<Vec<u8>> = (begin..end)
                .map(|place| match others.iter().find(|other| other.0 == place) {
                    Some(other) => other.1.to_vec(),
                    None => words[ids[place] as usize].clone(),
                })
                .collect();
            out.extend(b"[");
            out.extend(line.join(&b", "[..]));
            out.extend(b"]\n");
            begin = end;
        }
        out
    }

    #[test]
    fn words_of_every_length_in_lines_of_every_length() {
        let words: Vec<Vec<u8>> = (0..60).map(|length| (0..length).map(|i| b'a' + i % 26).collect()).collect();
        let slices: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let writer = LineWriter::new(&slices, b", ", b"[", b"]\n").unwrap();
        let ids: Vec<u32> = (0..200_000u64).map(|i| (i * i % 59) as u32).collect();
        let ends = [0, 0, 1, 5, 5, 100, 70_000, 199_999, 200_000, 200_000];
        for others in [&[][..], &[(0, &b"x"[..]), (3, b"yy"), (69_999, b""), (150_000, b"zzz")]] {
            assert_eq!(writer.write(&ids, &ends, others, NO_CHECK).unwrap(), expected(&words, &ids, &ends, others));
        }
        assert_eq!(writer.write(&[1, 60], &[2], &[], NO_CHECK), Err(Error::UnknownId(1)));
        assert_eq!(writer.write(&[1], &[2], &[], NO_CHECK), Err(Error::UnknownId(1)));
        assert_eq!(writer.write(&[], &[], &[], NO_CHECK), Ok(vec![]));
        let stop = || Err(Halt::Stopped);
        assert_eq!(writer.write(&ids, &[200_000], &[], &stop), Err(Error::Stopped));
    }

    #[test]
    fn lines_are_read_back() {
        let numbers: Vec<u32> = vec![0, 9, 10, 4_294_967_295, 65_536];
        let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let text = words.join(" ") + "\n\n" + &words.join("  ") + " ";
        let read = read_ids(text.as_bytes(), NO_CHECK, decimal).unwrap();
        assert_eq!(read.ids, [&numbers[..], &numbers].concat());
        assert_eq!((read.ends, read.wrong), (vec![5, 5, 10], None));
        for wrong in ["x", "-1", "1.0", "4294967296", "99999999999", "1\r", "1\t2", "+1"] {
            let text = format!("7\n8 {wrong} 9\n");
            let read = read_ids(text.as_bytes(), NO_CHECK, decimal).unwrap();
            assert_eq!((read.ids, read.ends, read.wrong), (vec![7, 8], vec![1], Some(4)), "{wrong:?}");
        }
        let stop = || Err(Halt::Stopped);
        assert_eq!(read_ids(&b"1 ".repeat(STEP), &stop, decimal), Err(Error::Stopped));
    }
}
