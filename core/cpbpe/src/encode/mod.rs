//! Text -> ids, tokens and counts: one text, one long text by threads, and many texts.
//!
//! | file           | does                                                                              |
//! | -------------- | --------------------------------------------------------------------------------- |
//! | `output.rs`    | collects ids, or counts them; symbols -> ids                                      |
//! | `encoder.rs`   | text -> ids with the cache                                                        |
//! | `segment.rs`   | text -> symbols without the cache: for tokens, which need spans, and for sampling |
//! | `engine.rs`    | one model: the calls for one text                                                 |
//! | `align.rs`     | ids and spans                                                                     |
//! | `message.rs`   | tokens as `SentencePieceText`, the protobuf message of sentencepiece              |
//! | `batch.rs`     | many texts, or a long one, by several threads                                     |
//! | `gather.rs`    | the same, with all ids in one array, and all spans                                |

mod align;
mod batch;
mod encoder;
mod engine;
mod gather;
mod message;
mod output;
mod segment;

pub use align::{AlignOptions, EncodedTexts};
pub use batch::{Consumer, Lines, Slices, Texts, Wanted};
pub use encoder::Scratch;
pub use engine::{Ends, Engine};
pub use gather::{join, GatheredTexts, Target};
pub use segment::Token;
