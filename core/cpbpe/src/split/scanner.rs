//! The chunks of a text, block by block.

#[cfg(target_arch = "x86_64")]
use crate::machine::has_vectors;
use crate::machine::BLOCK;
use crate::split::block::{Bytes, Plain, Read, MORE};
use crate::split::borders::{borders, usable};
use crate::split::classes::Classes;
use crate::split::patterns::Known;
use crate::split::rules::{chunk_end, Cl100k, Gpt2, Llama3, Nanochat, O200k, Qwen2, Qwen35, Rules, Tekken};

/// Roughly how many bytes are split at once.
pub const BATCH: usize = 4096;

/// Where the chunks of a batch end.
pub struct Ends {
    /// Where each ends, counted from where the first one begins; and then anything.
    pub numbers: Box<[u32; BATCH + 2 * BLOCK]>,
    /// How many there are.
    pub count: usize,
}

/// Find the ends of the chunks of the next batch, which begins at a place where a chunk does. Returns where it ends. If
/// there are none although the text goes on, the next chunk has 4 GiB or more.
pub type Scan = fn(&Classes, &[u8], usize, &mut Ends) -> usize;

/// A way to scan a text by the rules of a pattern.
pub fn scanner(known: Known) -> Scan {
    match known {
        Known::Gpt2 => best::<Gpt2>(),
        Known::Cl100k => best::<Cl100k>(),
        Known::Llama3 => best::<Llama3>(),
        Known::Qwen2 => best::<Qwen2>(),
        Known::Nanochat => best::<Nanochat>(),
        Known::Qwen35 => best::<Qwen35>(),
        Known::O200k => best::<O200k>(),
        Known::Tekken => best::<Tekken>(),
    }
}

fn best<R: Rules>() -> Scan {
    #[cfg(target_arch = "x86_64")]
    if has_vectors() {
        // SAFETY: this machine has the instructions.
        return |classes, text, begin, ends| unsafe { scan_vector::<R>(classes, text, begin, ends) };
    }
    scan::<R, Plain>
}

/// `scan` with `Vector`.
///
/// # Safety
/// The machine must have its instructions: see `has_vectors`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
unsafe fn scan_vector<R: Rules>(classes: &Classes, text: &[u8], begin: usize, ends: &mut Ends) -> usize {
    scan::<R, crate::split::block::Vector>(classes, text, begin, ends)
}

/// See `Scan`.
///
/// Each block begins where a chunk does, so there is no state from one to the next. About five bytes of 64, those of the
/// chunk that goes on after the block, are read again in the next one.
///
/// This is 3.7 times as fast as `chunk_end` for every chunk on English, twice as fast on 30 languages, and 14 and 5.5 times
/// with vector instructions. (cl100k_base on an Intel Xeon: 0.16, 0.6 and 2.2 GB/s of English.)
#[inline(always)]
pub fn scan<R: Rules, B: Read>(classes: &Classes, text: &[u8], begin: usize, ends: &mut Ends) -> usize {
    let (mut at, mut count) = (begin, 0);
    while at < text.len() && at - begin < BATCH {
        let rest = &text[at..];
        let last;
        let bytes = match rest.first_chunk() {
            Some(bytes) => bytes,
            None => {
                last = padded(rest);
                &last
            }
        };
        let block = B::read(classes, bytes);
        let is_last = rest.len() <= BLOCK;
        let there = if is_last { block.before(rest.len()) } else { block.count() };
        let usable = usable::<R, B>(&block, there);
        let is_end = is_last && usable == there;
        let found = borders::<R, B>(&block, bytes, usable, is_end);
        let offset = (at - begin) as u32;
        if found != 0 {
            count += block.append(found, offset, &mut ends.numbers[count..]);
            at += block.place(63 - found.leading_zeros() as usize);
        }
        if found == 0 || is_end {
            // The rest of the text is one chunk, or the chunk is longer than the block.
            let end = if is_end { text.len() } else { chunk_end::<R>(classes, text, at) };
            let Ok(number) = u32::try_from(end - begin) else { break };
            ends.numbers[count] = number;
            count += 1;
            at = end;
        }
    }
    ends.count = count;
    at
}

/// The end of a text, and spaces.
#[cold]
fn padded(rest: &[u8]) -> Bytes {
    let mut bytes = [b' '; BLOCK + MORE];
    bytes[..rest.len()].copy_from_slice(rest);
    bytes
}
