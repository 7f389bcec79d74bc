"""The names that other libraries use for what a Tokenizer can do, for messages that name it here.

Imported only when a name was not found. The names are those of sentencepiece, tokenizers, transformers and
tiktoken.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_COMPAT = "cpbpe.compat.transformers has it"

_ATTRIBUTES = {
    # Encoding.
    "encodeasids": "encode(text)",
    "encodeaspieces": "encode_pieces(text)",
    "encodeasnumpy": "encode_array(text)",
    "encodeasproto": "align(text)",
    "encodeasimmutableproto": "align(text)",
    "encodeasserializedproto": "align(text)",
    "encodeasoffsetmapping": "align(text)",
    "encodeordinary": "encode(text)",
    "encodeordinarybatch": "encode_batch(texts)",
    "encodetonumpy": "encode_array(text)",
    "encodesingletoken": "piece_to_id(piece)",
    "encodeplus": "encode(text), or align(text)",
    "batchencode": "encode_batch(texts)",
    "batchencodeplus": "encode_batch(texts), or encode_arrays(texts)",
    "sampleencodeasids": "encode(text, alpha=0.1)",
    "sampleencodeaspieces": "encode_pieces(text, alpha=0.1)",
    "parallelencode": "encode_array(text, threads=4)",
    "pad": "encode_arrays(texts).padded()",
    "enablepadding": "encode_arrays(texts).padded()",
    "enabletruncation": "truncate(text, max_tokens)",
    # Decoding.
    "decodeids": "decode(ids)",
    "batchdecode": "decode_batch(batch)",
    "decodesingletokenbytes": "vocab.id_to_bytes(id)",
    "decodetokensbytes": "vocab.id_to_bytes(id)",
    "convertidstostring": "decode(ids)",
    "converttokenstostring": "decode_pieces(pieces)",
    "tokenbytevalues": "vocab.token_bytes()",
    # The vocabulary.
    "piecesize": "vocab_size",
    "getpiecesize": "vocab_size",
    "getvocabsize": "vocab_size",
    "nvocab": "vocab_size",
    "nwords": "vocab_size",
    "idtotoken": "id_to_piece(id)",
    "convertidstotokens": "id_to_piece(id)",
    "tokentoid": "piece_to_id(piece)",
    "converttokenstoids": "piece_to_id(piece)",
    "getscore": "vocab.score(id)",
    "isunknown": "vocab.piece_type(id)",
    "iscontrol": "vocab.piece_type(id)",
    "isunused": "vocab.piece_type(id)",
    "isbyte": "vocab.piece_type(id)",
    # Special tokens.
    "unktokenid": "unk_id",
    "bostokenid": "bos_id",
    "eostokenid": "eos_id",
    "padtokenid": "pad_id",
    "eotid": "eos_id",
    "eottoken": "eos_id",
    "bostoken": "id_to_piece(tok.bos_id)",
    "eostoken": "id_to_piece(tok.eos_id)",
    "padtoken": "id_to_piece(tok.pad_id)",
    "unktoken": "id_to_piece(tok.unk_id)",
    "allspecialtokens": "vocab.special_tokens",
    "allspecialids": "vocab.special_tokens",
    "specialtokensset": "vocab.special_tokens",
    "addtokens": "with_special_tokens(tokens), which gives a new tokenizer",
    "addspecialtokens": "with_special_tokens(tokens), which gives a new tokenizer",
    "getaddedvocab": "vocab.added_tokens",
    # Files.
    "frompretrained": "cpbpe.load(path); nothing is downloaded",
    "fromfile": "cpbpe.load(path)",
    "load": "cpbpe.load(path)",
    "loadfromfile": "cpbpe.load(path)",
    "fromserializedproto": "from_bytes(data)",
    "loadfromserializedproto": "from_bytes(data)",
    "frombuffer": "from_bytes(data)",
    "serializedmodelproto": "to_bytes()",
    "savepretrained": "save(path)",
    "savemodel": "save(path)",
    "savevocabulary": "save(path)",
    "tostr": "to_bytes()",
    "train": "cpbpe.train(corpus)",
    "trainfromiterator": "cpbpe.train(texts)",
    "applychattemplate": f"encode_parts(parts) for tokens around texts; {_COMPAT}",
    "inputids": "encode(text)",
}
"""By their names in small letters without underscores."""

_OPTIONS = {
    "out_type": "encode gives ids, encode_pieces gives pieces, encode_array an array of numpy",
    "return_type": "encode gives ids, encode_pieces gives pieces, encode_array an array of numpy",
    "return_tensors": (
        "encode_array gives an array of numpy, and encode_arrays(texts).padded() one of many texts; "
        "torch.from_numpy makes tensors of them"
    ),
    "return_attention_mask": "encode_arrays(texts).padded(attention_mask=True) gives one",
    "return_offsets_mapping": "align(text) gives the spans of tokens",
    "add_special_tokens": "add_bos=True and add_eos=True put the special tokens around a text",
    "bos": "it is called add_bos",
    "eos": "it is called add_eos",
    "padding": "encode_arrays(texts).padded() fills up",
    "pad_to_multiple_of": "encode_arrays(texts).padded(multiple_of=8) fills up",
    "truncation": "truncate(text, max_tokens) cuts",
    "max_length": "truncate(text, max_tokens) cuts, and encode_arrays(texts).padded(max_length=...) fills up",
    "enable_sampling": "alpha above 0 samples",
    "nbest_size": "BPE has one best segmentation; alpha above 0 samples others",
    "emit_unk_piece": "unknown text has the id unk_id, and is copied into the pieces",
    "num_threads": "calls with several texts have threads",
    "is_split_into_words": "encode_parts(parts) encodes a text in parts",
    "is_pretokenized": "encode_parts(parts) encodes a text in parts",
    "split_special_tokens": "special tokens in a text are ordinary text, unless allowed_special names them",
    "text_pair": "encode_parts(parts) encodes several texts with tokens between them",
    "clean_up_tokenization_spaces": "decoding changes no spaces; leave it out",
    "spaces_between_special_tokens": "decoding changes no spaces; leave it out",
    "errors": "decode writes U+FFFD for broken bytes, and decode_bytes keeps them",
}

_MODULE = {
    "sentencepieceprocessor": "cpbpe.compat.sentencepiece has it; cpbpe.load(path) is the way without it",
    "sentencepiecetrainer": "cpbpe.compat.sentencepiece has it; cpbpe.train(corpus) is the way without it",
    "autotokenizer": "cpbpe.load(path) loads a model; for transformers use cpbpe.compat.transformers",
    "getencoding": "cpbpe.load(path) loads a model",
    "encodingformodel": "cpbpe.load(path) loads a model",
    "frompretrained": "cpbpe.load(path) loads a model; nothing is downloaded",
    "fromfile": "cpbpe.load(path) loads a model",
    "open": "cpbpe.load(path) loads a model",
    "trainer": "cpbpe.train(corpus) trains",
    "bpetrainer": "cpbpe.train(corpus) trains",
    "referenceengine": "cpbpe.reference has it",
    "steps": "cpbpe.reference has it",
    "encode": "cpbpe.load(path).encode(text) encodes",
    "decode": "cpbpe.load(path).decode(ids) decodes",
    "tokenize": "cpbpe.load(path).encode_pieces(text) gives pieces",
}


def attribute_hint(name: str, there: Iterable[str]) -> str:
    """What to say, after a semicolon, about an attribute that a Tokenizer does not have; perhaps nothing.

    >>> attribute_hint("EncodeAsIds", []), attribute_hint("IdToPiece", ["id_to_piece"])
    ('; use encode(text)', '; use id_to_piece')
    """
    plain = _plain(name)
    if plain in _ATTRIBUTES:
        return f"; use {_ATTRIBUTES[plain]}"
    same = next((other for other in there if _plain(other) == plain), None)
    return f"; use {same}" if same else _close(name, there)


def option_hint(name: str, there: Iterable[str]) -> str:
    """The same for an option.

    >>> option_hint("bos", ["add_bos"]), option_hint("skip_special", ["skip_special_tokens"])
    ('; it is called add_bos', '; is it skip_special_tokens?')
    """
    return f"; {_OPTIONS[name]}" if name in _OPTIONS else _close(name, there)


def module_hint(name: str, there: Iterable[str]) -> str:
    """The same for a name in the module `cpbpe`."""
    return f"; {_MODULE[_plain(name)]}" if _plain(name) in _MODULE else _close(name, there)


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _close(name: str, there: Iterable[str]) -> str:
    close = get_close_matches(name, list(there), 1, 0.75)
    return f"; is it {close[0]}?" if close else ""
