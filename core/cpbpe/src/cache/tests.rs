use super::*;
use crate::cache::entry::{Bytes, MAX_CHUNK};

fn key(chunk: &[u8]) -> Key {
    let (low, high) = if chunk.len() > MAX_CHUNK {
        Key::long(chunk)
    } else {
        let mut bytes = [0xAA; 16]; // what comes after a chunk must not matter
        bytes[..chunk.len()].copy_from_slice(chunk);
        Key::short(&bytes, chunk.len())
    };
    Key::of_halves([low, high])
}

fn get(cache: &Cache, chunk: &[u8]) -> Option<Vec<u32>> {
    let mut out = Vec::new();
    let entry = cache.get(key(chunk));
    let same = cache.append(entry, chunk, &mut out);
    let mut lookup = BatchLookup::default();
    cache.find(Plain, &[key(chunk)], &mut lookup);
    cache.find_rest(&[key(chunk)], &mut lookup);
    assert!(lookup.entries[0] == entry);
    let mut many = Vec::with_capacity(out.len() + ROOM + STEP);
    let source = Bytes { text: b"          ", ids: &[7; 256] };
    let found = KnownWords { keys: &[key(chunk)], entries: &lookup.entries[..1], source };
    // SAFETY: there is room for the ids, whose number is known by now.
    if unsafe { cache.append_many(found, &mut many) } == 1 {
        assert_eq!(out, many);
        assert_eq!(cache.count_many(found), (1, out.len()));
    } else {
        assert!(chunk.len() > MAX_CHUNK || !same);
    }
    same.then_some(out)
}

/// A chunk of any length and the ids that are remembered for it, of any number.
fn example(i: u32) -> (Vec<u8>, Vec<u32>) {
    let length = if i % 5 == 0 { 16 + i % 113 } else { 1 + i % 15 };
    // Many have the first half of their key in common.
    let front = if i % 5 == 1 && length > 10 { &b"letters"[..] } else { b"" };
    let chunk = front.iter().copied().chain(i.to_le_bytes().into_iter().cycle()).take(length as usize).collect();
    (chunk, (0..i % 9).map(|k| k + (i << (i % 3 * 6))).collect())
}

#[test]
fn remembers_and_forgets_but_never_lies() {
    for pieces in [SMALL_VOCABULARY, 1 << 20] {
        never_lies(Cache::new(pieces).unwrap(), pieces as u32);
    }
}

fn never_lies(mut cache: Cache, pieces: u32) {
    // Some are larger than any id of the vocabulary, and are kept all the same.
    let example = |i| {
        let (chunk, ids) = example(i);
        (chunk, ids.into_iter().map(|id| id % (2 * pieces)).collect::<Vec<_>>())
    };
    for i in 0..300_000u32 {
        let (chunk, ids) = example(i);
        if chunk.len() >= 4 {
            cache.put(key(&chunk), &chunk, &ids, None);
            assert_eq!(get(&cache, &chunk), Some(ids));
        }
        let (chunk, ids) = example(i / 2);
        assert!(chunk.len() < 4 || get(&cache, &chunk).is_none_or(|kept| kept == ids));
        assert!(cache.spilled.len() < MAX_SPILLED + 9 && cache.texts.len() <= MAX_TEXTS);
    }
}

#[test]
fn little_is_forgotten() {
    let mut cache = Cache::new(32_000).unwrap();
    let chunk = |i: u32| (u64::from(i) << 8 | 0x61).to_le_bytes();
    // Four fifths of the wide places, of which each line has two (see `cache/mod.rs`).
    let all = SIZES[SIZES.len() - 1] * 8 / 5;
    for i in 0..all {
        cache.put(key(&chunk(i)), &chunk(i), &[i % 32_000], None);
    }
    let kept = (0..all).filter(|&i| get(&cache, &chunk(i)) == Some(vec![i % 32_000])).count();
    assert!(kept as f64 > f64::from(all) * 0.975, "{kept} of {all}");
}

#[test]
fn zeros_at_the_end_count() {
    let mut cache = Cache::new(32_000).unwrap();
    cache.put(key(b"a"), b"a", &[1], None);
    cache.put(key(b"a\0"), b"a\0", &[2], None);
    assert_eq!((get(&cache, b"a"), get(&cache, b"a\0"), get(&cache, b"a\0\0")), (Some(vec![1]), Some(vec![2]), None));
}

#[test]
fn too_long_is_not_remembered() {
    let mut cache = Cache::new(32_000).unwrap();
    let chunk = [b'x'; 200];
    cache.put(key(&chunk), &chunk, &[1], None);
    assert!(cache.get(key(&chunk)) == PackedIds::ABSENT);
}

#[test]
fn the_same_hash_is_not_enough() {
    let mut cache = Cache::new(32_000).unwrap();
    let (one, other) = ([b'x'; 40], [b'y'; 40]);
    cache.put(key(&one), &one, &[1], None);
    let entry = cache.get(key(&one));
    assert!(entry != PackedIds::ABSENT && !cache.append(entry, &other, &mut Vec::new()));
}

#[test]
fn a_second_time_is_noticed_and_a_first_time_is_rarely_taken_for_one() {
    let (mut once, mut early) = (Once::default(), 0);
    let key = |i: u32| Key::of(format!("a chunk of many bytes, {i}").as_bytes());
    for i in 0..MANY {
        early += u32::from(!once.is_new(key(i)));
        assert!(!once.is_new(key(i)) || once.count == 1, "{i}"); // (1: it was emptied in between)
    }
    assert!(early < MANY / 20, "{early}");
    // Texts with ever new chunks do not fill it for good.
    let news = (MANY..9 * MANY).filter(|&i| once.is_new(key(i))).count() as u32;
    assert!(news > 8 * MANY / 10 * 9, "{news}");
}

#[test]
fn thousands_of_chunks_in_turn_are_remembered() {
    let mut once = Once::default();
    let keys: Vec<Key> = (0..20_000u32).map(|i| Key::of(format!("one that comes again: {i}").as_bytes())).collect();
    keys.iter().for_each(|&key| _ = once.is_new(key));
    assert!(!keys.iter().any(|&key| once.is_new(key)));
}
