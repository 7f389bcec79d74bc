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

/// Words of up to so many bytes are handled as one number.
const SHORT: usize = 16;
/// So many bytes must stand behind every word that `Table::add_short` is given, whatever they are.
pub const SLACK: usize = SHORT;
/// Words in the small memory in front of a table; a power of two.
const RECENT: usize = 1 << 11;

/// So many words are looked up together, so that their cache misses overlap.
const BATCH: usize = 32;

/// A short word that was seen lately, and how often since it came to be remembered.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// Its bytes, zeros behind.
    bytes: [u64; 2],
    /// Its length; 0 for none.
    length: u64,
    count: u64,
}

/// Words with their counts. A record in `blob` is a count, a length and the word; a slot points to it. So a word
/// costs about 20 bytes more than its text, and finding one that is there costs two cache misses. Most words of a text
/// are the same few, though, and are counted in `recent`, which the nearest cache holds; what is pushed out from there
/// by another word waits in `waiting` until there are enough to be added to their records together.
pub struct Table {
    slots: Vec<u64>,
    /// Records, and SLACK bytes.
    blob: Vec<u8>,
    words: usize,
    recent: Vec<Recent>,
    waiting: Vec<Recent>,
    seed: u64,
}

impl Default for Table {
    /// The seed is random, so that no corpus can be made whose words collide.
    fn default() -> Table {
        let seed = RandomState::new().hash_one(0) | 1;
        let (recent, waiting) = (Vec::new(), Vec::with_capacity(BATCH));
        Table { slots: vec![0; 1 << 10], blob: vec![0; SLACK], words: 0, recent, waiting, seed }
    }
}

#[inline]
fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Up to 16 bytes at `at` as two numbers. There must be so many, even if the word is shorter. One branch less for each
/// length is worth a lot here: lengths are hard to predict.
#[inline]
fn load(bytes: &[u8], at: usize, length: usize) -> [u64; 2] {
    const MASKS: [[u64; 2]; SHORT + 1] = {
        let mut masks = [[0; 2]; SHORT + 1];
        let mut length = 1;
        while length <= SHORT {
            masks[length] = masks[length - 1];
            masks[length][(length - 1) / 8] |= 0xFF << ((length - 1) % 8 * 8);
            length += 1;
        }
        masks
    };
    let block = &bytes[at..at + SHORT];
    let mask = MASKS[length];
    [number(&block[..8]) & mask[0], number(&block[8..]) & mask[1]]
}

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The word and the count of the record at `at`, and where the next begins.
#[inline]
fn record(blob: &[u8], at: usize) -> (&[u8], u64, usize) {
    let count = number(&blob[at..at + COUNT]);
    let mut begin = at + COUNT + 1;
    let mut length = usize::from(blob[begin - 1]);
    if length == usize::from(LONG) {
        length = number(&blob[begin..begin + 8]) as usize;
        begin += 8;
    }
    (&blob[begin..begin + length], count, begin + length)
}

impl Table {
    #[inline]
    fn hash_short(&self, bytes: [u64; 2], length: u64) -> u64 {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        mix(bytes[0] ^ self.seed, (bytes[1] ^ ODD).wrapping_add(length) ^ self.seed.rotate_left(32))
    }

    fn hash(&self, word: &[u8]) -> u64 {
        let length = word.len();
        if length <= SHORT {
            let mut bytes = [0; SHORT];
            bytes[..length].copy_from_slice(word);
            return self.hash_short(load(&bytes, 0, length), length as u64);
        }
        let mut state = self.seed ^ length as u64;
        let last = length - SHORT;
        for at in (0..last).step_by(SHORT).chain([last]) {
            let bytes = load(word, at, SHORT);
            state = mix(state ^ bytes[0], self.seed ^ bytes[1] ^ 0xD6E8_FEB8_6659_FD93) ^ state.rotate_left(23);
        }
        mix(state, 0x9E37_79B9_7F4A_7C15)
    }

    /// Count the word `text[begin..end]` `count` times more; SLACK bytes must stand behind it. A count that would exceed
    /// 64 bits stays at their maximum.
    #[inline]
    pub fn add_at(&mut self, text: &[u8], begin: usize, end: usize, count: u64) {
        let length = end - begin;
        if length > SHORT {
            self.add_long(&text[begin..end], count);
            return;
        }
        let bytes = load(text, begin, length);
        let hash = self.hash_short(bytes, length as u64);
        if self.recent.is_empty() {
            self.recent = vec![Recent::default(); RECENT];
        }
        let recent = &mut self.recent[(hash >> 32) as usize % RECENT];
        if recent.bytes == bytes && recent.length == length as u64 {
            recent.count = recent.count.saturating_add(count);
            return;
        }
        let old = std::mem::replace(recent, Recent { bytes, length: length as u64, count });
        if old.length > 0 {
            self.waiting.push(old);
            if self.waiting.len() == BATCH {
                self.add_waiting();
            }
        }
    }

    fn add_waiting(&mut self) {
        let mask = self.slots.len() - 1;
        let mut places = [0; BATCH];
        // These two loops have nothing to decide, so the processor runs ahead and fetches many things at once. The
        // values are looked up again below, when they are near.
        for (place, word) in places.iter_mut().zip(&self.waiting) {
            let slot = self.slots[self.hash_short(word.bytes, word.length) as usize & mask];
            *place = (slot & PLACE).saturating_sub(1) as usize;
        }
        let touched = places.iter().fold(0, |touched, &place| touched ^ self.blob[place]);
        std::hint::black_box(touched);
        for at in 0..self.waiting.len() {
            self.add_short(self.waiting[at]);
        }
        self.waiting.clear();
    }

    /// Count a word.
    pub fn add(&mut self, word: &[u8], count: u64) {
        if word.len() > SHORT {
            self.add_long(word, count);
        } else {
            let mut padded = [0; SHORT + SLACK];
            padded[..word.len()].copy_from_slice(word);
            self.add_at(&padded, 0, word.len(), count);
        }
    }

    #[inline]
    fn increase(&mut self, place: usize, count: u64) {
        let bytes = &mut self.blob[place..place + COUNT];
        bytes.copy_from_slice(&number(bytes).saturating_add(count).to_le_bytes());
    }

    fn add_short(&mut self, word: Recent) {
        let hash = self.hash_short(word.bytes, word.length);
        let length = word.length as usize;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            if (slot ^ hash) & !PLACE == 0 {
                let place = (slot & PLACE) as usize - 1;
                let begin = place + COUNT + 1;
                if usize::from(self.blob[begin - 1]) == length && load(&self.blob, begin, length) == word.bytes {
                    self.increase(place, word.count);
                    return;
                }
            }
            at = (at + 1) & mask;
        }
        let mut bytes = [0; SHORT];
        bytes[..8].copy_from_slice(&word.bytes[0].to_le_bytes());
        bytes[8..].copy_from_slice(&word.bytes[1].to_le_bytes());
        self.push(at, hash, &bytes[..length], word.count);
    }

    fn add_long(&mut self, word: &[u8], count: u64) {
        let hash = self.hash(word);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let slot = self.slots[at];
            if (slot ^ hash) & !PLACE == 0 {
                let place = (slot & PLACE) as usize - 1;
                if record(&self.blob, place).0 == word {
                    self.increase(place, count);
                    return;
                }
            }
            at = (at + 1) & mask;
        }
        self.push(at, hash, word, count);
    }

    #[cold]
    fn push(&mut self, at: usize, hash: u64, word: &[u8], count: u64) {
        let place = self.blob.len() - SLACK;
        self.blob.truncate(place);
        self.slots[at] = hash & !PLACE | (place as u64 + 1);
        self.blob.extend_from_slice(&count.to_le_bytes());
        match u8::try_from(word.len()) {
            Ok(length) if length < LONG => self.blob.push(length),
            _ => {
                self.blob.push(LONG);
                self.blob.extend_from_slice(&(word.len() as u64).to_le_bytes());
            }
        }
        self.blob.extend_from_slice(word);
        self.blob.extend_from_slice(&[0; SLACK]);
        self.words += 1;
        if self.words > limit(self.slots.len()) {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = self.slots.len() * 2;
        self.slots = Vec::new(); // given back first
        let mut new = vec![0; slots];
        for (place, word, _) in self.records() {
            let hash = self.hash(word);
            let mut at = hash as usize & (slots - 1);
            while new[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            new[at] = hash & !PLACE | (place as u64 + 1);
        }
        self.slots = new;
    }

    /// Add what is in the small memory to the records.
    fn settle(&mut self) {
        self.add_waiting();
        for word in std::mem::take(&mut self.recent) {
            if word.length > 0 {
                self.add_short(word);
            }
        }
    }

    /// All records: where they are, words and counts.
    fn records(&self) -> impl Iterator<Item = (usize, &[u8], u64)> {
        let mut place = 0;
        std::iter::from_fn(move || {
            if place + SLACK == self.blob.len() {
                return None;
            }
            let (word, count, next) = record(&self.blob, place);
            Some((std::mem::replace(&mut place, next), word, count))
        })
    }

    /// How many words there are.
    pub fn distinct(&mut self) -> usize {
        self.settle();
        self.words
    }

    /// About how many bytes it takes.
    pub fn memory(&self) -> usize {
        self.slots.len() * 8 + self.blob.len()
    }

    /// Add all words of another table.
    pub fn absorb(&mut self, mut other: Table) {
        other.settle();
        for (_, word, count) in other.records() {
            self.add(word, count);
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

/// What to sort a word by: its first 16 bytes as they are once expanded, and where it is (table, place).
type Key = (u128, u64);

/// The first bytes of the real text, zeros behind. No word holds U+0000 beside anything, so zeros tell the end.
#[inline]
fn key(word: &[u8], scratch: &mut Vec<u8>) -> u128 {
    let first = &word[..word.len().min(16)];
    let mut bytes = [0; 16];
    if first.iter().any(|&byte| byte == b' ' || byte == SPACE[0]) {
        scratch.clear();
        expand(&word[..word.len().min(18)], scratch);
        let length = scratch.len().min(16);
        bytes[..length].copy_from_slice(&scratch[..length]);
    } else {
        bytes[..first.len()].copy_from_slice(first);
    }
    u128::from_be_bytes(bytes)
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
pub fn sorted(mut tables: Vec<Table>, threads: usize) -> Columns {
    for table in &mut tables {
        table.settle();
        table.slots = Vec::new();
    }
    let tables = &tables;
    let record_of =
        |location: u64| record(&tables[(location >> PLACE_BITS) as usize].blob, (location & PLACE) as usize);
    // Most words begin with a space. They are sorted apart, by what comes behind it, which tells more of them.
    let mut keys: [Vec<Key>; 2] = Default::default();
    let mut scratch = Vec::new();
    for (number, table) in (0u64..).zip(tables) {
        for (place, word, _) in table.records() {
            let spaced = word[0] == b' ';
            let location = number << PLACE_BITS | place as u64;
            keys[usize::from(spaced)].push((key(&word[usize::from(spaced)..], &mut scratch), location));
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
    let space = u128::from(SPACE[0]) << 120 | u128::from(SPACE[1]) << 112 | u128::from(SPACE[2]) << 104;
    let middle = plain.partition_point(|key| key.0 < space);
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
