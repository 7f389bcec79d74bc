use super::entries::MORE;
use super::*;
use crate::vocab::characters::{code_point, Characters, AFTER, BEFORE, ID, ONE, UNKNOWN};

/// The steps of `Vector` must be those of `Plain`.
#[test]
fn machines_agree() {
    if !has_vectors() {
        return;
    }
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    };
    let ids: [u32; 256] = std::array::from_fn(|_| next() as u32 & 0xFF_FFFF);
    let planes = [0, 8, 16].map(|shift| std::array::from_fn(|byte| (ids[byte] >> shift) as u8));
    let singles = SingleBytes { ids: Box::new(ids), planes: Box::new(planes), odd: None };
    for round in 0..20_000u64 {
        let bits = (next() << 32 | next()) & if round % 3 == 0 { u64::MAX } else { next() };
        let (mut plain, mut vector) = ([0; BLOCK], [0; BLOCK]);
        Plain::places(bits, 192, &mut plain);
        Vector::places(bits, 192, &mut vector);
        let count = bits.count_ones() as usize;
        assert_eq!(plain[..count], vector[..count]);
        let key = [next() % 3, next() % 3];
        let line = std::array::from_fn(|_| next() % 3);
        let narrow_twice = line[LINE - 2] == key[0];
        let [one, other] = [Plain::look(&line, key), Vector::look(&line, key)];
        // (A key is in one place of a line. If it were in several, any of them would do.)
        assert!(one == other || one.is_some() && other.is_some() && (narrow_twice || line[0] == line[3]));
        let block = std::array::from_fn(|_| next() as u8 >> (round % 2));
        assert_eq!(Plain::is_ascii(&block), Vector::is_ascii(&block));
        let ascii = block.map(|byte| byte & 0x7F);
        let [mut some, mut others] = [[0; BLOCK]; 2];
        Plain::ids(&singles, &ascii, &mut some);
        Vector::ids(&singles, &ascii, &mut others);
        assert_eq!(some, others);
        let bits_of = |is: fn(u8) -> bool| block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(is(byte)));
        let kinds = [bits_of(|byte| byte >= 0x80), bits_of(|byte| byte & 0xC0 != 0x80)];
        assert_eq!(Vector::kinds(&block), kinds);
        assert_eq!(Plain::starts(&block), kinds[1]);
        assert_eq!(Vector::long(&block), kinds[0] & kinds[1]);
        assert_eq!(Plain::long(&block), bits_of(|byte| byte >= 0xE0));
        assert_eq!([Plain::count_others(&block), Vector::count_others(&block)], [kinds[0].count_ones(); 2]);
        let table = std::array::from_fn(|byte| u8::from(byte < 0x80 && next() % 40 == 0));
        assert_eq!(Plain::marked(&table, &block), Vector::marked(&table, &block));
        let places = if round % 5 == 0 { u64::MAX } else { next() << 32 | next() };
        let set = |bits: u64| (0..64).filter(move |i| bits >> i & 1 != 0);
        let extracted = set(places).enumerate().fold(0, |all, (i, place)| all | (bits >> place & 1) << i);
        assert_eq!(Vector::extract(bits, places), extracted);
        assert_eq!(Vector::deposit(extracted, places), bits & places);
        let numbers: [u32; BLOCK] = std::array::from_fn(|_| next() as u32);
        let mut kept = numbers;
        Vector::keep(bits, &mut kept);
        assert!(set(bits).map(|i| numbers[i]).eq(kept[..count].iter().copied()));
        let from = next() as u32 >> 1;
        let sizes: [u32; CHUNKS] = std::array::from_fn(|_| 1 + (next() as u32 >> (next() % 32)) % (1 << 24));
        let mut end = from;
        let ends = sizes.map(|size| {
            end += size;
            end
        });
        let [[mut a, mut b], [mut c, mut d]] = [[[0; CHUNKS]; 2]; 2];
        let longest = 1 << (next() % 25);
        let found = Plain::words(&ends, from, from / 2, longest, [&mut a, &mut b]);
        assert_eq!(Vector::words(&ends, from, from / 2, longest, [&mut c, &mut d]), found);
        assert!(found[0] == CHUNKS || sizes[found[0]] > longest);
        assert_eq!([&a[..found[1]], &b[..found[1]]], [&c[..found[1]], &d[..found[1]]]);
    }
}

/// The entries of all characters, in all places of a block.
#[test]
fn machines_read_the_same_characters() {
    if !has_vectors() {
        return;
    }
    let mut characters = Characters::all(7).unwrap();
    let all: Vec<char> = (0..0x11_0000).step_by(5).filter_map(char::from_u32).collect();
    for pair in all.chunks_exact(2).step_by(3) {
        let [left, right] = [pair[0], pair[1]].map(|character| character.to_string().into_bytes());
        characters.join(&left, &right);
    }
    for (round, part) in all.chunks(29).enumerate() {
        let mut text = "x".repeat(round % 4).into_bytes();
        // Characters of different lengths side by side.
        for (i, character) in part.iter().enumerate() {
            text.extend_from_slice(character.to_string().as_bytes());
            text.extend_from_slice(&"é漢😀z".as_bytes()[..[0, 2, 5, 9, 10][(i + round) % 5]]);
        }
        text.resize(text.len() + BLOCK + MORE, b'-');
        for at in (0..text.len() - BLOCK - MORE).step_by(BLOCK) {
            let text: &[u8; BLOCK + MORE] = text[at..].first_chunk().unwrap();
            let starts = Vector::kinds(text.first_chunk().unwrap())[1];
            let mut ids = [0; BLOCK];
            let flags = [BEFORE, AFTER, ONE, UNKNOWN];
            let found = Vector::entries(&characters, text, starts, flags, &mut ids);
            let places = (0..BLOCK).filter(|i| starts >> i & 1 != 0);
            for (k, i) in places.enumerate() {
                let entry = characters.entry(code_point(*text[i..].first_chunk().unwrap()));
                assert_eq!(ids[k], entry & ID);
                assert_eq!(found.map(|bits| bits >> k & 1 != 0), flags.map(|flag| entry & flag != 0));
            }
        }
    }
}
