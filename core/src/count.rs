//! Counts words: a hash table whose words lie one after the other in one buffer, and sorted columns made of tables.
//!
//! Words are compact (a space for U+2581) in tables and as they are in columns.

use std::cmp::Ordering;
use std::hash::{BuildHasher, RandomState};

use crate::utf8::SPACE;

/// A slot holds a tag of the hash in its upper bits, and below it where the record begins, plus one.
const PLACE_BITS: u32 = 40;
const PLACE: u64 = (1 << PLACE_BITS) - 1;
/// The count comes first in a record.
const COUNT: usize = 8;
/// A length of one byte that says that eight more bytes tell the length.
const LONG: u8 = u8::MAX;
/// More words than a table of so many slots should hold: three quarters.
fn limit(slots: usize) -> usize {
    slots / 4 * 3
}

/// Words with their counts. A record in `blob` is a count, a length and the word; a slot points to it. So a word
/// costs about 20 bytes more than its text, and finding one that is there costs two cache misses.
pub struct Table {
    slots: Vec<u64>,
    blob: Vec<u8>,
    words: usize,
    seed: u64,
}

impl Default for Table {
    /// The seed is random, so that no corpus can be made whose words collide.
    fn default() -> Table {
        Table { slots: vec![0; 1 << 10], blob: Vec::new(), words: 0, seed: RandomState::new().hash_one(0) | 1 }
    }
}

/// Up to 8 bytes as a number.
#[inline]
fn load(bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let half = |at: usize| bytes[at..at + 4].try_into().map_or(0, |four| u64::from(u32::from_le_bytes(four)));
    match length {
        8.. => bytes[..8].try_into().map_or(0, u64::from_le_bytes),
        4.. => half(0) | half(length - 4) << 32,
        1.. => u64::from(bytes[0]) | u64::from(bytes[length / 2]) << 8 | u64::from(bytes[length - 1]) << 16,
        0 => 0,
    }
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The word and the count of the record at `at`, and where the next begins.
#[inline]
fn record(blob: &[u8], at: usize) -> (&[u8], u64, usize) {
    let count = blob[at..at + COUNT].try_into().map_or(0, u64::from_le_bytes);
    let mut begin = at + COUNT + 1;
    let mut length = usize::from(blob[begin - 1]);
    if length == usize::from(LONG) {
        length = blob[begin..begin + 8].try_into().map_or(0, u64::from_le_bytes) as usize;
        begin += 8;
    }
    (&blob[begin..begin + length], count, begin + length)
}

impl Table {
    #[inline]
    fn hash(&self, word: &[u8]) -> u64 {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let length = word.len();
        if length <= 16 {
            let tail = if length > 8 { load(&word[length - 8..]) } else { 0 };
            return mix(load(word) ^ self.seed, (tail ^ ODD).wrapping_add(length as u64) ^ self.seed.rotate_left(32));
        }
        let mut state = self.seed ^ length as u64;
        for block in word.chunks(16) {
            let (low, high) = block.split_at(block.len().min(8));
            state = mix(load(low) ^ state, load(high) ^ ODD ^ self.seed).wrapping_add(state.rotate_left(23));
        }
        mix(state, ODD)
    }

    /// Count a word `count` times more. A count that would exceed 64 bits stays at their maximum.
    #[inline]
    pub fn add(&mut self, word: &[u8], count: u64) {
        let hash = self.hash(word);
        let tag = hash & !PLACE;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if slot & !PLACE == tag {
                let place = (slot & PLACE) as usize - 1;
                let (found, old, _) = record(&self.blob, place);
                if found == word {
                    self.blob[place..place + COUNT].copy_from_slice(&old.saturating_add(count).to_le_bytes());
                    return;
                }
            }
            at = (at + 1) & mask;
        }
        self.slots[at] = tag | (self.blob.len() as u64 + 1);
        self.push(word, count);
        if self.words > limit(self.slots.len()) {
            self.grow();
        }
    }

    #[cold]
    fn push(&mut self, word: &[u8], count: u64) {
        self.blob.extend_from_slice(&count.to_le_bytes());
        match u8::try_from(word.len()) {
            Ok(length) if length < LONG => self.blob.push(length),
            _ => {
                self.blob.push(LONG);
                self.blob.extend_from_slice(&(word.len() as u64).to_le_bytes());
            }
        }
        self.blob.extend_from_slice(word);
        self.words += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        self.slots = Vec::new(); // given back first
        self.slots = vec![0; slots];
        let mut place = 0;
        while place < self.blob.len() {
            let (word, _, next) = record(&self.blob, place);
            let hash = self.hash(word);
            let mut at = hash as usize & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = hash & !PLACE | (place as u64 + 1);
            place = next;
        }
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.words
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// About how many bytes it takes.
    pub fn memory(&self) -> usize {
        self.slots.len() * 8 + self.blob.len()
    }

    /// Add all words of another table.
    pub fn absorb(&mut self, other: &Table) {
        let mut place = 0;
        while place < other.blob.len() {
            let (word, count, next) = record(&other.blob, place);
            self.add(word, count);
            place = next;
        }
    }
}

/// Words sorted by their bytes, none twice; `Words` in `cpbpe/train_engine.py`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The words, one after the other.
    pub blob: Vec<u8>,
    /// Where each ends in `blob`, as u64.
    pub ends: Vec<u8>,
    /// How often each was seen, as u64.
    pub counts: Vec<u8>,
}

impl Columns {
    /// Append a word that comes after all others.
    pub fn push(&mut self, word: &[u8], count: u64) {
        self.blob.extend_from_slice(word);
        self.end(count);
    }

    /// End a word.
    fn end(&mut self, count: u64) {
        self.ends.extend_from_slice(&(self.blob.len() as u64).to_le_bytes());
        self.counts.extend_from_slice(&count.to_le_bytes());
    }

    /// Append columns whose words all come later.
    fn append(&mut self, other: &Columns) {
        let begin = self.blob.len() as u64;
        self.blob.extend_from_slice(&other.blob);
        let ends = other.ends.chunks_exact(8).map(|end| end.try_into().map_or(0, u64::from_le_bytes) + begin);
        self.ends.extend(ends.flat_map(u64::to_le_bytes));
        self.counts.extend_from_slice(&other.counts);
    }
}

/// The real text of a compact word: a space is U+2581, and U+2581 is a space.
pub fn expand(word: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < word.len() {
        if word[at] == b' ' {
            out.extend_from_slice(SPACE);
            at += 1;
        } else if word[at..].starts_with(SPACE) {
            out.push(b' ');
            at += SPACE.len();
        } else {
            out.push(word[at]);
            at += 1;
        }
    }
}

/// What to sort a word by: its first 8 bytes as they are once expanded, and where it is (table, place).
type Key = (u64, u64);

/// The first 8 bytes of the real text, zeros behind. No word holds U+0000 beside anything, so zeros tell the end.
#[inline]
fn key(word: &[u8], scratch: &mut Vec<u8>) -> u64 {
    let first = &word[..word.len().min(8)];
    let mut bytes = [0; 8];
    if first.iter().any(|&byte| byte == b' ' || byte == SPACE[0]) {
        scratch.clear();
        expand(&word[..word.len().min(10)], scratch);
        let length = scratch.len().min(8);
        bytes[..length].copy_from_slice(&scratch[..length]);
    } else {
        bytes[..first.len()].copy_from_slice(first);
    }
    u64::from_be_bytes(bytes)
}

/// How the real texts of two words compare.
fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let same = left.iter().zip(right).take_while(|(a, b)| a == b).count();
    // Where they differ, a space counts as the three bytes that it stands for. If one of the two has a space there,
    // then in the other a character begins there.
    let head = |word: &[u8]| match word.first() {
        Some(b' ') => [SPACE[0], SPACE[1], SPACE[2]],
        _ => [0, 1, 2].map(|at| word.get(at).copied().unwrap_or(0)),
    };
    head(&left[same..]).cmp(&head(&right[same..]))
}

/// All words of some tables in columns, counts added up.
pub fn sorted(tables: &[Table], threads: usize) -> Columns {
    let record_of =
        |location: u64| record(&tables[(location >> PLACE_BITS) as usize].blob, (location & PLACE) as usize);
    // Most words begin with a space. They are sorted apart, by what comes behind it, which tells more of them.
    let mut keys: [Vec<Key>; 2] = Default::default();
    let mut scratch = Vec::new();
    for (number, table) in (0u64..).zip(tables) {
        let mut place = 0;
        while place < table.blob.len() {
            let (word, _, next) = record(&table.blob, place);
            let spaced = word[0] == b' ';
            let location = number << PLACE_BITS | place as u64;
            keys[usize::from(spaced)].push((key(&word[usize::from(spaced)..], &mut scratch), location));
            place = next;
        }
    }
    let order = |a: &Key, b: &Key| match a.0.cmp(&b.0) {
        Ordering::Equal => compare(record_of(a.1).0, record_of(b.1).0),
        unequal => unequal,
    };
    let mut found = Columns::default();
    let [mut plain, mut spaced] = keys;
    sort(&mut plain, &order, threads);
    sort(&mut spaced, &order, threads);
    // No word of the first list begins with U+2581, so the second list has its place at one point.
    let middle = plain.partition_point(|key| key.0 < u64::from_be_bytes([SPACE[0], SPACE[1], SPACE[2], 0, 0, 0, 0, 0]));
    for keys in [&plain[..middle], &spaced[..], &plain[middle..]] {
        for part in written(keys, &record_of, threads) {
            found.append(&part);
        }
    }
    found
}

/// What a thread has found. If it panicked, so do we.
pub fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn sort(keys: &mut [Key], order: &(impl Fn(&Key, &Key) -> Ordering + Sync), threads: usize) {
    if threads < 2 || keys.len() < 1 << 15 {
        keys.sort_unstable_by(order);
        return;
    }
    let middle = keys.len() / threads * (threads / 2);
    keys.select_nth_unstable_by(middle, order);
    let (low, high) = keys.split_at_mut(middle);
    std::thread::scope(|scope| {
        scope.spawn(|| sort(low, order, threads / 2));
        sort(high, order, threads - threads / 2);
    });
}

/// Columns of sorted keys, in as many parts as there are threads.
fn written<'a>(
    keys: &[Key],
    record_of: &(impl Fn(u64) -> (&'a [u8], u64, usize) + Sync),
    threads: usize,
) -> Vec<Columns> {
    let same = |a: &Key, b: &Key| a.0 == b.0 && record_of(a.1).0 == record_of(b.1).0;
    let write = |keys: &[Key]| {
        let mut part = Columns::default();
        part.ends.reserve_exact(keys.len() * 8);
        part.counts.reserve_exact(keys.len() * 8);
        let mut at = 0;
        while at < keys.len() {
            let (word, mut count, _) = record_of(keys[at].1);
            expand(word, &mut part.blob);
            at += 1;
            while at < keys.len() && same(&keys[at - 1], &keys[at]) {
                count = count.saturating_add(record_of(keys[at].1).1);
                at += 1;
            }
            part.end(count);
        }
        part
    };
    let parts = if keys.len() < 1 << 15 { 1 } else { threads.max(1) };
    let mut rest = keys;
    let mut slices = Vec::new();
    for number in 0..parts {
        let mut end = rest.len() / (parts - number);
        while end > 0 && end < rest.len() && same(&rest[end - 1], &rest[end]) {
            end += 1;
        }
        let (part, others) = rest.split_at(end);
        slices.push(part);
        rest = others;
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = slices[1..].iter().map(|slice| scope.spawn(move || write(slice))).collect();
        let mut done = vec![write(slices[0])];
        done.extend(workers.into_iter().map(joined));
        done
    })
}

/// A word was counted 2**63 times or more.
#[derive(Debug, PartialEq, Eq)]
pub struct TooMany;

impl Columns {
    /// Counts are to fit into a signed number.
    pub fn checked(self) -> Result<Columns, TooMany> {
        let too_many = |count: &[u8]| count[7] >= 0x80;
        if self.counts.chunks_exact(8).any(too_many) {
            Err(TooMany)
        } else {
            Ok(self)
        }
    }
}
