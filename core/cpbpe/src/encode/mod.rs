//! Text -> ids, tokens and counts: one text, one long text by threads, and many texts.
//!
//! | file           | does                                                                  |
//! | -------------- | --------------------------------------------------------------------- |
//! | `output.rs`    | where ids go, or are counted                                          |
//! | `id_sink.rs`   | symbols -> ids                                                        |
//! | `parts.rs`     | a new chunk with user-defined pieces -> ids                           |
//! | `encoder.rs`   | compact text -> ids by way of the cache                               |
//! | `split.rs`     | the same of byte-level vocabularies                                   |
//! | `segment.rs`   | chooses how a text is segmented, and does it                          |
//! | `sample.rs`    | text -> symbols when merges are skipped at random                     |
//! | `tokens.rs`    | text -> tokens                                                        |
//! | `engine.rs`    | one model: the calls for one text                                     |
//! | `normalizing.rs` | the normalized form of texts                                        |
//! | `ends.rs`      | ids around those of a text                                            |
//! | `long_text.rs` | one long text by several threads                                      |
//! | `align.rs`     | ids and spans                                                         |
//! | `message.rs`   | a text as a message with its tokens                                   |
//! | `texts.rs`     | many texts: in a list, or in one piece of memory                      |
//! | `batch.rs`     | many texts by several threads                                         |
//! | `gather.rs`    | the same, with all ids in one place, and all spans                    |
//! | `join.rs`      | joins the results of threads                                           |

mod align;
mod batch;
mod encoder;
mod ends;
mod engine;
mod gather;
mod id_sink;
mod join;
mod long_text;
mod message;
mod normalizing;
mod output;
mod parts;
mod sample;
mod segment;
mod split;
mod texts;
mod tokens;

pub use align::{AlignOptions, AlignedTexts};
pub use batch::{Consumer, EncodedTexts};
pub use encoder::Scratch;
pub use ends::Ends;
pub use engine::Engine;
pub use gather::{GatheredTexts, Place};
pub use join::join;
pub use texts::{Slices, Texts};
pub use tokens::Token;
