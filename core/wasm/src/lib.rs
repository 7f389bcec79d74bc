//! The core for a page in a browser: plain exports, without a generator of bindings. Their only caller is `cpbpe.call`
//! in `cpbpe/tools/browser/engine.js`.
//!
//! A call takes numbers, and at most one text, which JavaScript first writes to the memory that `room` makes. It returns
//! a number, or -1 with a message as its text. Everything longer is left in two places that JavaScript copies from:
//! `numbers` and `text`. There is one thread, so there is one of each.

mod rivals;
mod train;

use std::cell::RefCell;

use cpbpe::watch::NO_CHECK;
use cpbpe::{repair_into, AlignOptions, Dropout, Engine, Error, Splitter};

/// What passes between JavaScript and a call.
#[derive(Default)]
struct Exchange {
    /// What JavaScript wrote: a text, a file, or ids.
    given: Vec<u8>,
    /// The numbers of the result.
    numbers: Vec<u32>,
    /// The text of the result, or the message of an error.
    text: Vec<u8>,
}

thread_local! {
    static EXCHANGE: RefCell<Exchange> = RefCell::default();
    static MODELS: RefCell<Vec<Option<Engine>>> = const { RefCell::new(Vec::new()) };
}

/// Memory for what the next call takes.
#[no_mangle]
pub extern "C" fn room(length: usize) -> *mut u8 {
    EXCHANGE.with_borrow_mut(|exchange| {
        exchange.given.clear();
        exchange.given.resize(length, 0);
        exchange.given.as_mut_ptr()
    })
}

#[no_mangle]
pub extern "C" fn numbers() -> *const u32 {
    EXCHANGE.with_borrow(|exchange| exchange.numbers.as_ptr())
}

#[no_mangle]
pub extern "C" fn numbers_length() -> usize {
    EXCHANGE.with_borrow(|exchange| exchange.numbers.len())
}

#[no_mangle]
pub extern "C" fn text() -> *const u8 {
    EXCHANGE.with_borrow(|exchange| exchange.text.as_ptr())
}

#[no_mangle]
pub extern "C" fn text_length() -> usize {
    EXCHANGE.with_borrow(|exchange| exchange.text.len())
}

/// Do some work with what was given, and leave its result.
fn answer(work: impl FnOnce(&[u8], &mut Vec<u32>, &mut Vec<u8>) -> Result<i32, Error>) -> i32 {
    EXCHANGE.with_borrow_mut(|exchange| {
        let Exchange { given, numbers, text } = exchange;
        numbers.clear();
        text.clear();
        let result = work(given, numbers, text);
        *given = Vec::new(); // freed, because it may be a file of many megabytes
        result.unwrap_or_else(|error| {
            *text = error.to_string().into_bytes();
            -1
        })
    })
}

/// Do some work with what was given and a model. (If no model has this number, that is a mistake in `engine.js`.)
fn ask(model: usize, work: impl FnOnce(&Engine, &[u8], &mut Vec<u32>, &mut Vec<u8>) -> Result<i32, Error>) -> i32 {
    MODELS.with_borrow(|models| {
        let engine = models[model].as_ref().expect("this model has been dropped");
        answer(|given, numbers, text| work(engine, given, numbers, text))
    })
}

// --- Models --------------------------------------------------------------------------------------

/// Load a model from the bytes of its file, and return its number.
#[no_mangle]
pub extern "C" fn load() -> i32 {
    answer(|file, _, _| {
        let engine = Engine::from_model(file)?;
        MODELS.with_borrow_mut(|models| {
            models.push(Some(engine));
            Ok(models.len() as i32 - 1)
        })
    })
}

#[no_mangle]
pub extern "C" fn unload(model: usize) {
    MODELS.with_borrow_mut(|models| models[model] = None);
}

/// The pieces: their texts, one after the other. The numbers are where each text ends, then the bits of the scores, then
/// the types.
#[no_mangle]
pub extern "C" fn pieces(model: usize) -> i32 {
    ask(model, |engine, _, numbers, text| {
        let columns = engine.columns();
        *text = columns.blob;
        numbers.extend(columns.ends);
        numbers.extend(columns.scores.iter().map(|score| score.to_bits()));
        numbers.extend(columns.types.iter().map(|&kind| u32::from(kind)));
        Ok(engine.size() as i32)
    })
}

/// What else is known about a model: the ids of unk, bos, eos and pad, each with 1 added, or 0; then flags, which
/// `engine.js` names in this order; then the ids of the added tokens. Their texts come after two others: the pattern of
/// a byte-level model, or else the name of the normalizer; and what the unknown piece is decoded to. The last numbers are
/// where all of these texts end.
#[no_mangle]
pub extern "C" fn facts(model: usize) -> i32 {
    ask(model, |engine, _, numbers, text| {
        let head = engine.head();
        let (byte_level, options) = (head.byte_level, head.normalizer);
        // In a byte-level model, bos, eos and pad may be added tokens (`special_ids` in Python says why).
        let added = |name: &Vec<u8>| head.added.iter().find(|(token, _)| token == name).map(|(_, id)| *id);
        let specials = engine.specials().into_iter().zip(&head.special_pieces).enumerate();
        numbers.extend(specials.map(|(role, (id, name))| {
            let id = id.or_else(|| added(name).filter(|_| role > 0 && byte_level.is_some()));
            id.map_or(0, |id| id + 1)
        }));
        let flags = [
            head.byte_fallback,
            byte_level.is_some(),
            byte_level.as_ref().is_some_and(|options| options.whole),
            options.add_dummy_prefix,
            options.prefix_before_space,
            options.remove_extra_whitespaces,
            options.escape_whitespaces,
            options.suffix,
            head.carries,
        ];
        numbers.extend(flags.map(u32::from));
        numbers.extend(head.added.iter().map(|(_, id)| id));
        let rule = byte_level.map_or(options.name, |options| options.pattern.into_bytes());
        for part in [rule, head.unk_surface].into_iter().chain(head.added.into_iter().map(|(token, _)| token)) {
            text.extend(part);
            numbers.push(text.len() as u32);
        }
        Ok(0)
    })
}

// --- Texts ---------------------------------------------------------------------------------------

/// Work with the variant of a model that has the dummy prefix that the model says (-1), none (0), or one (1).
fn with_prefix<R>(engine: &Engine, prefix: i32, work: impl FnOnce(&Engine) -> R) -> R {
    if prefix < 0 {
        return work(engine);
    }
    work(&engine.variant(Some(prefix > 0), false, false))
}

/// The ids of a text, then where each begins, then where each ends, in characters. Merges are skipped with the chance
/// `alpha`; the seed comes in two halves.
#[no_mangle]
pub extern "C" fn encode(model: usize, prefix: i32, alpha: f64, seed: u32, seed_high: u32) -> i32 {
    ask(model, |engine, given, numbers, _| {
        let seed = u64::from(seed_high) << 32 | u64::from(seed);
        let dropout = (alpha > 0.0).then_some(Dropout { alpha, seed });
        let options = AlignOptions { characters: Some(true), dropout };
        let made = with_prefix(engine, prefix, |engine| engine.align((given, false), options, NO_CHECK))?;
        numbers.extend(&made.ids);
        for side in [0, 1] {
            numbers.extend(made.spans.iter().map(|span| span[side] as u32));
        }
        Ok(made.ids.len() as i32)
    })
}

/// How many ids a text has.
#[no_mangle]
pub extern "C" fn count(model: usize, prefix: i32) -> i32 {
    ask(model, |engine, given, _, _| {
        with_prefix(engine, prefix, |engine| {
            let count = engine.with_scratch(|scratch| engine.count(given, false, NO_CHECK, scratch))??;
            Ok(count as i32)
        })
    })
}

/// The normalized text.
#[no_mangle]
pub extern "C" fn normalize(model: usize, prefix: i32) -> i32 {
    ask(model, |engine, given, _, text| {
        *text = with_prefix(engine, prefix, |engine| engine.normalize((given, false), NO_CHECK))?;
        Ok(0)
    })
}

/// Where the chunks end, in bytes, into which the pattern of a byte-level model cuts a text.
#[no_mangle]
pub extern "C" fn chunks(model: usize) -> i32 {
    ask(model, |engine, given, numbers, _| {
        let Some(options) = engine.head().byte_level else { return Ok(0) };
        let splitter = Splitter::of_all(&options.pattern, &options.then)?;
        let mut chunks = splitter.cover_bytes(given)?;
        let mut batch = cpbpe::Batch::default();
        while chunks.next(&mut batch)? {
            numbers.extend(batch.spans().map(|[_, end]| end as u32));
        }
        Ok(numbers.len() as i32)
    })
}

/// The text of ids. With `keep`, a space at the beginning stays, even if it may be a dummy prefix.
#[no_mangle]
pub extern "C" fn decode(model: usize, keep: u32) -> i32 {
    ask(model, |engine, given, _, text| {
        let ids: Vec<u32> = given.chunks_exact(4).map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]])).collect();
        let decoded = engine.variant(None, keep != 0, false).decoder().decode(&ids, false, NO_CHECK)?;
        repair_into(&decoded, text)?;
        Ok(0)
    })
}

/// The id of a piece with 1 added; 0 if there is none.
#[no_mangle]
pub extern "C" fn find(model: usize) -> i32 {
    ask(model, |engine, given, _, _| Ok(engine.find(given).map_or(0, |id| id as i32 + 1)))
}
