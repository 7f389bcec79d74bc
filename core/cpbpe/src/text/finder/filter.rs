//! Skips places of a text where no key can begin.

/// Up to this many first bytes are found faster by the automaton's own search for them.
const FEW: usize = 3;
/// How many bytes of a key's beginning are looked at.
const WIDTH: usize = 8;
/// The bits of a filter, as a power of two: 32 KiB.
const BITS: u32 = 18;
const FILTER: usize = 1 << (BITS - 6);
/// Bytes that are looked at together.
const BLOCK: usize = 32;

/// The beginnings of keys. A filter reads no more bytes than its shortest key has, so short keys may have a filter of
/// their own.
pub struct Beginnings(Vec<Filter>);

struct Filter {
    /// 1 for each first byte.
    firsts: [u8; 256],
    /// Which bits of eight bytes are compared.
    mask: u64,
    /// A Bloom filter of the first bytes of all keys.
    filter: Box<[u64; FILTER]>,
}

impl Filter {
    fn new(keys: &[&[u8]]) -> Option<Filter> {
        let width = keys.iter().map(|key| key.len()).min()?.min(WIDTH);
        let mut filter = Filter { firsts: [0; 256], mask: u64::MAX >> (64 - 8 * width), filter: Box::new([0; FILTER]) };
        for key in keys {
            filter.firsts[usize::from(key[0])] = 1;
            for bit in Self::bits(number(key) & filter.mask) {
                filter.filter[bit >> 6] |= 1 << (bit & 63);
            }
        }
        Some(filter)
    }

    #[inline(always)]
    fn bits(number: u64) -> [usize; 2] {
        let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bits = mixed ^ mixed >> 32;
        [bits >> (64 - BITS), bits >> (64 - 2 * BITS)].map(|bit| bit as usize & ((1 << BITS) - 1))
    }

    /// 1 if a key may begin with these eight bytes.
    #[inline(always)]
    fn may_begin(&self, number: u64) -> u64 {
        let [one, other] = Self::bits(number & self.mask);
        (self.filter[one >> 6] >> (one & 63)) & (self.filter[other >> 6] >> (other & 63)) & 1
    }

    /// The places in a block where a key may begin, as bits.
    #[inline]
    fn places(&self, block: &[u8; BLOCK + WIDTH]) -> u64 {
        let mut places = 0;
        // This needs no branch for each byte.
        if block[..BLOCK].iter().fold(0, |any, &byte| any | self.firsts[usize::from(byte)]) > 0 {
            let mut firsts = block[..BLOCK]
                .iter()
                .rev()
                .fold(0u64, |all, &byte| all << 1 | u64::from(self.firsts[usize::from(byte)]));
            while firsts != 0 {
                let i = firsts.trailing_zeros() as usize;
                let number = block[i..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                places |= self.may_begin(number) << i;
                firsts &= firsts - 1;
            }
        }
        places
    }
}

/// The first eight bytes, with zeros for those after the end.
fn number(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => text.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

impl Beginnings {
    /// `None` if the first bytes are few: the automaton's own search (`prefilter`) finds these faster.
    pub fn new(keys: &[&[u8]], prefilter: bool) -> Option<Beginnings> {
        let few = |keys: &[&[u8]]| {
            let mut firsts: Vec<u8> = keys.iter().map(|key| key[0]).collect();
            firsts.sort_unstable();
            firsts.dedup();
            firsts.len() <= FEW
        };
        if keys.is_empty() || (prefilter && few(keys)) {
            return None;
        }
        let (long, short): (Vec<&[u8]>, Vec<&[u8]>) = keys.iter().partition(|key| key.len() >= WIDTH);
        // A filter whose keys have few first bytes skips most blocks, and costs next to nothing.
        let groups = if few(&short) { vec![&long[..], &short] } else { vec![keys] };
        Some(Beginnings(groups.into_iter().filter_map(Filter::new).collect()))
    }

    /// The first place from `at` on where a key may begin.
    pub fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let may_begin = |&at: &usize| self.0.iter().any(|filter| filter.may_begin(number(&text[at..])) != 0);
        // (Where many places are asked about, the next one often is such a place.)
        if at < text.len() && may_begin(&at) {
            return Some(at);
        }
        let mut base = at;
        while let Some(block) = text[base..].first_chunk() {
            let places = self.0.iter().fold(0, |places, filter| places | filter.places(block));
            if places != 0 {
                return Some(base + places.trailing_zeros() as usize);
            }
            base += BLOCK;
        }
        (base..text.len()).find(may_begin)
    }
}
