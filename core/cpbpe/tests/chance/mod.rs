//! Random choices for tests.
#![allow(dead_code, reason = "each test uses some of it")]

/// Choices made by a generator of numbers, which is good enough and the same everywhere; or by the bytes that a fuzzer
/// tries, so that what the tests make at random is what a fuzzer looks for.
pub struct Chance {
    state: u64,
    bytes: Option<Vec<u8>>,
}

impl Chance {
    /// Choices of a generator, which begins with this number. It must not be 0.
    pub fn new(seed: u64) -> Chance {
        Chance { state: seed, bytes: None }
    }

    /// Choices by these bytes, and the first of everything after they have all been used.
    pub fn of(bytes: &[u8]) -> Chance {
        Chance { state: 0, bytes: Some(bytes.iter().rev().copied().collect()) }
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        if let Some(bytes) = &mut self.bytes {
            let (mut number, mut range) = (0, 1);
            while range < limit {
                number = number << 8 | bytes.pop().map_or(0, usize::from);
                range <<= 8;
            }
            return number % limit;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % limit
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}
