use super::*;

/// The steps of all machines must give the same results.
#[test]
fn machines_agree() {
    if let Some(half) = Half::detect() {
        agrees(half);
        #[cfg(target_arch = "x86_64")]
        handles_masks(half);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(vector) = Vector::detect() {
        agrees(vector);
        handles_masks(vector);
        has_ids(vector);
    }
}

/// Numbers of 32 bits.
fn numbers() -> impl FnMut() -> u64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 32
    }
}

/// Which bytes of a block are of a kind, as bits.
fn bits_of(block: &[u8; BLOCK], is: fn(u8) -> bool) -> u64 {
    block.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(is(byte)))
}

/// Which bytes are not ASCII, and which begin a character, as bits.
fn kinds_of(block: &[u8; BLOCK]) -> [u64; 2] {
    [bits_of(block, |byte| byte >= 0x80), bits_of(block, |byte| byte & 0xC0 != 0x80)]
}

fn agrees(machine: impl Machine) {
    let mut next = numbers();
    for round in 0..20_000u64 {
        let bits = (next() << 32 | next()) & if round % 3 == 0 { u64::MAX } else { next() };
        let (mut some, mut others) = ([0; BLOCK], [0; BLOCK]);
        Plain.places(bits, 192, &mut some);
        machine.places(bits, 192, &mut others);
        let count = bits.count_ones() as usize;
        assert_eq!(some[..count], others[..count]);
        let key = [next() % 3, next() % 3];
        let line = std::array::from_fn(|_| next() % 3);
        let narrow_twice = line[LINE - 2] == key[0];
        let [one, other] = [Plain.look(&line, key), machine.look(&line, key)];
        // (The cache stores a key in one place of a line only. If it were in several, any of them would do.)
        assert!(one == other || one.is_some() && other.is_some() && (narrow_twice || line[0] == line[3]));
        let block = std::array::from_fn(|_| next() as u8 >> (round % 2));
        assert_eq!(Plain.is_ascii(&block), machine.is_ascii(&block));
        let kinds = kinds_of(&block);
        assert_eq!(Plain.starts(&block), kinds[1]);
        assert_eq!(Plain.long(&block), bits_of(&block, |byte| byte >= 0xE0));
        let is_vector = machine.vector().is_some();
        assert_eq!(machine.long(&block), if is_vector { kinds[0] & kinds[1] } else { Plain.long(&block) });
        assert_eq!([Plain.count_others(&block), machine.count_others(&block)], [kinds[0].count_ones(); 2]);
        let table = std::array::from_fn(|byte| u8::from(byte < 0x80 && next() % 40 == 0));
        assert_eq!(Plain.marked(&table, &block), machine.marked(&table, &block));
        let from = next() as u32 >> 1;
        let sizes: [u32; CHUNKS] = std::array::from_fn(|_| 1 + (next() as u32 >> (next() % 32)) % (1 << 24));
        let mut end = from;
        let ends = sizes.map(|size| {
            end += size;
            end
        });
        let [[mut a, mut b], [mut c, mut d]] = [[[0; CHUNKS]; 2]; 2];
        let longest = 1 << (next() % 25);
        let found = Plain.words(&ends, from, from / 2, longest, [&mut a, &mut b]);
        assert_eq!(machine.words(&ends, from, from / 2, longest, [&mut c, &mut d]), found);
        assert!(found[0] == CHUNKS || sizes[found[0]] > longest);
        assert_eq!([&a[..found[1]], &b[..found[1]]], [&c[..found[1]], &d[..found[1]]]);
    }
}

/// The step that only a `Vector` has.
#[cfg(target_arch = "x86_64")]
fn has_ids(vector: Vector) {
    let mut next = numbers();
    let ids: [u32; 256] = std::array::from_fn(|_| next() as u32 & 0xFF_FFFF);
    let planes: Planes = [0, 8, 16].map(|shift| std::array::from_fn(|byte| (ids[byte] >> shift) as u8));
    for _ in 0..20_000 {
        let ascii = std::array::from_fn(|_| next() as u8 & 0x7F);
        let mut found = [0; BLOCK];
        vector.ids(&planes, &ascii, &mut found);
        assert_eq!(found, ascii.map(|byte| ids[usize::from(byte)]));
    }
}

/// The steps of `Masks`.
#[cfg(target_arch = "x86_64")]
fn handles_masks(machine: impl Masks) {
    let mut next = numbers();
    for round in 0..20_000u64 {
        let block = std::array::from_fn(|_| next() as u8 >> (round % 2));
        assert_eq!(machine.kinds(&block), kinds_of(&block));
        let bits = (next() << 32 | next()) & if round % 3 == 0 { u64::MAX } else { next() };
        let places = if round % 5 == 0 { u64::MAX } else { next() << 32 | next() };
        let set = |bits: u64| (0..64).filter(move |i| bits >> i & 1 != 0);
        let extracted = set(places).enumerate().fold(0, |all, (i, place)| all | (bits >> place & 1) << i);
        assert_eq!(machine.extract(bits, places), extracted);
        assert_eq!(machine.deposit(extracted, places), bits & places);
        let numbers: [u32; BLOCK] = std::array::from_fn(|_| next() as u32);
        let mut kept = numbers;
        machine.keep(bits, &mut kept);
        assert!(set(bits).map(|i| numbers[i]).eq(kept[..bits.count_ones() as usize].iter().copied()));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn machines_know_all_characters() {
    if let Some(half) = Half::detect() {
        knows_all_characters(half);
    }
    if let Some(vector) = Vector::detect() {
        knows_all_characters(vector);
    }
}

/// The entries of all characters, at all places of a block.
#[cfg(target_arch = "x86_64")]
fn knows_all_characters(machine: impl Masks) {
    let number = |code: u32| code.wrapping_mul(0x9E37_79B9) & if code % 3 == 0 { 0 } else { u32::MAX };
    let entries: Vec<u32> = (0..CHARACTERS as u32).map(number).collect();
    let table =
        CharacterTable { entries: entries.first_chunk().unwrap(), default: 7 | 1 << 31, id_bits: (1 << 28) - 1 };
    let flags = [28, 29, 30, 31].map(|bit| 1 << bit);
    let all: Vec<char> = (0..0x11_0000).step_by(5).filter_map(char::from_u32).collect();
    for (round, part) in all.chunks(29).enumerate() {
        let mut text = "x".repeat(round % 4);
        // Characters of different lengths side by side.
        for (i, &character) in part.iter().enumerate() {
            text.push(character);
            text.push_str(["", "é", "漢", "😀", "z"][(i + round) % 5]);
        }
        text.push_str(&"-".repeat(BLOCK + MORE));
        for at in (0..text.len() - BLOCK - MORE).step_by(BLOCK) {
            let block: &[u8; BLOCK + MORE] = text.as_bytes()[at..].first_chunk().unwrap();
            let starts = machine.kinds(block.first_chunk().unwrap())[1];
            let mut ids = [0; BLOCK];
            let found = machine.entries(table, block, starts, flags, &mut ids);
            for (k, i) in (0..BLOCK).filter(|i| starts >> i & 1 != 0).enumerate() {
                let character = text[at + i..].chars().next().unwrap();
                let entry = match entries[(character as usize).min(CHARACTERS - 1)] {
                    0 => table.default,
                    entry => entry,
                };
                assert_eq!(ids[k], entry & table.id_bits, "{character:?}");
                assert_eq!(found.map(|bits| bits >> k & 1 != 0), flags.map(|flag| entry & flag != 0));
            }
        }
    }
}
