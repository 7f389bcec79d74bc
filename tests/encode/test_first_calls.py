"""What a newcomer tries first, knowing other libraries: it works, or a sentence says what does."""

import collections
import io
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

import cpbpe as ours
from tests.support import zoo

pytestmark = pytest.mark.usefixtures("engine")
DATA = zoo.model("llama")
cpbpe: Any = ours  # types would refuse most of what is tried here
Tokenizer, load = cpbpe.Tokenizer, cpbpe.load


class Text(str):
    __slots__ = ()


@pytest.fixture
def tok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A tokenizer. Its model, and other files, are in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("tokenizer.model").write_bytes(DATA)
    Path("tokenizer.json").write_text('{"model": {}, "added_tokens": []}', encoding="utf-8")
    Path("nested.json").write_bytes(b"[" * 100_000)
    Path("folder").mkdir()
    Path("folder_of_json").mkdir()
    Path("folder_of_json/tokenizer.json").write_bytes(b"{}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return load("tokenizer.model")


WORKS: dict[str, Callable[[Any], Any]] = {
    "a path": lambda tok: load(Path("tokenizer.model")) == tok,
    "a folder": lambda tok: load(".") == tok,
    "an open file": lambda tok: load(io.BytesIO(DATA)) == tok,
    "the class": lambda tok: Tokenizer("tokenizer.model") == tok,
    "len": lambda tok: len(tok) == tok.vocab_size == len(tok.get_vocab()) == 700,
    "tokenize": lambda tok: tok.tokenize("ab") == tok.encode_pieces("ab"),
    "a subclass of str": lambda tok: tok.encode(Text("ab c")) == tok.encode("ab c"),
    "str of numpy": lambda tok: tok.encode(np.str_("ab c")) == tok.encode("ab c"),
    "bytes": lambda tok: tok.encode(b"ab") == tok.encode(bytearray(b"ab")) == tok.encode(memoryview(b"ab")),
    "a generator of texts": lambda tok: tok.encode_batch(t for t in ["ab"]) == [tok.encode("ab")],
    "one id": lambda tok: tok.decode(5) == tok.decode([5]) == tok.decode(np.int64(5)),
    "a generator of ids": lambda tok: tok.decode(id for id in [300, 301]) == tok.decode([300, 301]),
    "truth values as ids": lambda tok: tok.decode([False]) == tok.decode([0]),
    "numbers of numpy": lambda tok: tok.decode([np.uint8(70), np.int64(300)]) == tok.decode([70, 300]),
    "a fraction": lambda tok: tok.encode("abra", alpha=Fraction(1, 4), seed=3) == tok.encode("abra", alpha=0.25, seed=3),
    "a decimal": lambda tok: tok.encode("abra", alpha=Decimal("0.25"), seed=3) == tok.encode("abra", alpha=0.25, seed=3),
    "float32": lambda tok: tok.encode("abra", alpha=np.float32(0.25), seed=3) == tok.encode("abra", alpha=0.25, seed=3),
    "a huge seed": lambda tok: tok.encode("abra", alpha=0.5, seed=2**70 + 3) == tok.encode("abra", alpha=0.5, seed=3),
    "a negative seed": lambda tok: tok.encode("ab", alpha=0.5, seed=-1) == tok.encode("ab", alpha=0.5, seed=np.int64(-1)),
    "huge limits": lambda tok: tok.truncate("ab", 10**30) == "ab" and tok.split("ab", 10**30) == ["ab"],
    "many threads": lambda tok: tok.encode_array("ab", threads=10**30).tolist() == tok.encode("ab"),
    "hasattr": lambda tok: not hasattr(tok, "EncodeAsIds") and not hasattr(tok, "__array__"),
    "pickle": lambda tok: pickle.loads(pickle.dumps(tok)) == tok,
}  # fmt: skip


@pytest.mark.parametrize("name", WORKS)
def test_works(tok: Any, name: str) -> None:
    assert WORKS[name](tok)


user_string = collections.UserString("ab")
table = pd.DataFrame({"text": ["ab"]})

REFUSED: list[tuple[str, Callable[[Any], Any], type[Exception], str]] = [
    # Loading.
    ("load(missing)", lambda tok: load("none.model"), FileNotFoundError, r"^\[Errno 2\] no such file .* downloads nothing.*: 'none.model'$"),
    ("load(name of a hub)", lambda tok: load("meta/llama-7b"), FileNotFoundError, "downloads nothing, give the path of a model"),
    ("load(name without .model)", lambda tok: load("tokenizer"), FileNotFoundError, r"is it 'tokenizer\.model'\?"),
    ("load(empty folder)", lambda tok: load("folder"), FileNotFoundError, "holds no tokenizer.model and no tokenizer.json; it is empty"),
    ("load(json)", lambda tok: load("tokenizer.json"), cpbpe.ModelError, "not a tokenizer.json that cpbpe can read: model.type and model.vocab are missing"),
    ("load(nested json)", lambda tok: load("nested.json"), cpbpe.ModelError, "nested too deeply"),
    ("from_bytes(brackets)", lambda tok: Tokenizer.from_bytes(b"[" * 100_000), cpbpe.ModelError, "nested too deeply"),
    ("from_bytes(braces)", lambda tok: Tokenizer.from_bytes(b'{"a":' * 100_000), cpbpe.ModelError, "nested too deeply"),
    ("from_bytes(path)", lambda tok: Tokenizer.from_bytes("tokenizer.model"), TypeError, r"use Tokenizer\(path\)"),
    ("load(bytes)", lambda tok: load(DATA), TypeError, r"use from_bytes\(\)"),
    ("load(text file)", lambda tok: load(io.StringIO("")), TypeError, r"binary mode \('rb'\)"),
    ("load(text file of a model)", lambda tok: load(io.TextIOWrapper(io.BytesIO(DATA), encoding="ascii")), TypeError, r"binary mode \('rb'\)"),
    ("load(folder with json)", lambda tok: load("folder_of_json"), cpbpe.ModelError, "it is JSON, and a model is not"),
    ("load(~)", lambda tok: load("~/tokenizer.model"), FileNotFoundError, r"; is it '.*tokenizer\.model'\?: '~/tokenizer\.model'$"),
    ("from_bytes(other json)", lambda tok: Tokenizer.from_bytes(b'{"a": 0}'), cpbpe.ModelError, "it is JSON, and a model is not; look for tokenizer.model beside it$"),
    ("load(None)", lambda tok: load(None), TypeError, "loaded from a path or an open binary file, not NoneType"),
    ("load(list)", lambda tok: load(["tokenizer.model"]), TypeError, "loaded from a path .*, not list"),
    ("Tokenizer(model_file)", lambda tok: Tokenizer(model_file="tokenizer.model"), TypeError, r"^Tokenizer\(\) has no option 'model_file'; give the path alone: Tokenizer\('tokenizer\.model'\)$"),
    ("load(path=Path)", lambda tok: load(path=Path("tokenizer.model")), TypeError, r"give the path alone: load\(path\)$"),
    ("load(model_proto)", lambda tok: load(model_proto=DATA), TypeError, r"use Tokenizer\.from_bytes\(data\)$"),
    ("load(add_bos)", lambda tok: load("tokenizer.model", add_bos=True), TypeError, r"load\(path\)\.using\(add_bos=True\)$"),
    ("load(add_bos_token)", lambda tok: load("tokenizer.model", add_bos_token=True), TypeError, r"load\(path\)\.using\(add_bos=True\)$"),
    ("Tokenizer(vocab_size)", lambda tok: Tokenizer(vocab_size=1000), TypeError, r"cpbpe\.train\(corpus, vocab_size=\.\.\.\) makes one$"),
    ("from_pretrained", lambda tok: Tokenizer.from_pretrained("a/b"), AttributeError, r"^'Tokenizer' class has no attribute 'from_pretrained'; use cpbpe\.load\(path\); nothing"),
    ("from_file", lambda tok: Tokenizer.from_file("tokenizer.model"), AttributeError, r"; use cpbpe\.load\(path\)$"),
    ("Tokenizer.train", lambda tok: Tokenizer.train(["ab"]), AttributeError, r"; use cpbpe\.train\(corpus\)$"),
    # Texts.
    ("encode(list)", lambda tok: tok.encode(["ab"]), TypeError, r"for several texts use encode_batch\(\)"),
    ("encode(None)", lambda tok: tok.encode(None), TypeError, "is a value missing"),
    ("encode(path)", lambda tok: tok.encode(Path("a.txt")), TypeError, r"path\.read_text\(encoding='utf-8'\)"),
    ("encode(file)", lambda tok: tok.encode(io.StringIO("ab")), TypeError, r"file\.read\(\)"),
    ("encode(UserString)", lambda tok: tok.encode(user_string), TypeError, r"give it str\(text\)"),
    ("encode(dict)", lambda tok: tok.encode({"text": "ab"}), TypeError, r"text\['text'\]"),
    ("encode(array of one)", lambda tok: tok.encode(np.array("ab")), TypeError, r"give it str\(text\)"),
    ("encode(generator)", lambda tok: tok.encode(t for t in ["ab"]), TypeError, "encode_batch"),
    ("encode(surrogate)", lambda tok: tok.encode("a\ud800"), UnicodeEncodeError, "surrogates not allowed"),
    ("encode_batch(surrogate)", lambda tok: tok.encode_batch(["a", "b\ud800"]), UnicodeEncodeError, r"position 1; give it as bytes"),
    ("encode_arrays(surrogate)", lambda tok: tok.encode_arrays(["a", "b\ud800"]), UnicodeEncodeError, r"position 1; give it as bytes"),
    ("align_batch(surrogate)", lambda tok: tok.align_batch(["a", "b\ud800"]), UnicodeEncodeError, r"position 1; give it as bytes"),
    ("count_batch(surrogate)", lambda tok: tok.count_batch(["a", "b\ud800"]), UnicodeEncodeError, r"position 1; give it as bytes"),
    ("encode_batch(str)", lambda tok: tok.encode_batch("ab"), TypeError, r"put it into a list: \[text\]"),
    ("encode_batch(UserString)", lambda tok: tok.encode_batch(user_string), TypeError, r"put it into a list: \[text\]"),
    ("encode_batch([UserString])", lambda tok: tok.encode_batch([user_string]), TypeError, r"at position 0; give it str\(text\)"),
    ("encode_batch(table)", lambda tok: tok.encode_batch(table), TypeError, r"table\['text'\]"),
    ("count(UserString)", lambda tok: tok.count(user_string), TypeError, r"give it str\(text\)"),
    ("piece_to_id(UserString)", lambda tok: tok.piece_to_id(user_string), TypeError, r"give it str\(text\)"),
    ("with_special_tokens(str)", lambda tok: tok.with_special_tokens("<a>"), TypeError, r"put it into a list: \[token\]"),
    # Options.
    ("out_type", lambda tok: tok.encode("ab", out_type=int), TypeError, "encode gives ids, encode_pieces gives pieces"),
    ("return_tensors", lambda tok: tok.encode("ab", return_tensors="pt"), TypeError, "torch.from_numpy"),
    ("add_special_tokens", lambda tok: tok.encode("ab", add_special_tokens=False), TypeError, "add_bos=True and add_eos=True"),
    ("bos", lambda tok: tok.encode("ab", bos=True, eos=False), TypeError, "it is called add_bos$"),
    ("add_bos_token", lambda tok: tok.encode("ab", add_bos_token=True), TypeError, "it is called add_bos$"),
    ("add_eos_token", lambda tok: tok.using(add_eos_token=True), TypeError, "it is called add_eos$"),
    ("stop", lambda tok: tok.decode([5], stop=["x"]), TypeError, r"; stream_decoder\(stop=\.\.\.\) ends at such a text$"),
    ("stop_strings", lambda tok: tok.stream_decoder(stop_strings=["x"]), TypeError, r"it has skip_special_tokens, .*; stream_decoder\(stop=\.\.\.\) ends"),
    ("truncation", lambda tok: tok.encode("ab", truncation=True), TypeError, r"truncate\(text, max_tokens\)"),
    ("padding", lambda tok: tok.encode_batch(["ab"], padding=True), TypeError, r"encode_arrays\(texts\)\.padded\(\)"),
    ("add_boss", lambda tok: tok.encode("ab", add_boss=True), TypeError, r"is it add_bos\?$"),
    ("skip_special", lambda tok: tok.decode([5], skip_special=True), TypeError, r"is it skip_special_tokens\?$"),
    ("dropout", lambda tok: tok.encode("ab", dropout=0.1), TypeError, "; it is called alpha$"),
    ("add_dummy_prefix", lambda tok: tok.encode("ab", add_dummy_prefix=False), TypeError, "; it is called prefix_space$"),
    ("parse_special", lambda tok: tok.encode("ab", parse_special=True), TypeError, "; allowed_special='all' finds special tokens in a text$"),
    ("max_tokens", lambda tok: tok.encode("ab", max_tokens=5), TypeError, r"; truncate\(text, max_tokens\) cuts, and split"),
    ("stride", lambda tok: tok.split("ab", 4, stride=2), TypeError, "overlap=\\.\\.\\."),
    ("dtype", lambda tok: tok.encode_arrays(["ab"], dtype="int64"), TypeError, r"\.astype\(dtype\)"),
    ("n_jobs", lambda tok: tok.encode_batch(["ab"], n_jobs=2), TypeError, "calls with several texts have threads"),
    ("encode(threads)", lambda tok: tok.encode("ab", threads=2), TypeError, "calls with several texts have threads, and encode_array has"),
    ("using", lambda tok: tok.using(out_type=int), TypeError, "encode gives ids"),
    ("allowed_special=str", lambda tok: tok.encode("ab", allowed_special="<s>"), ValueError, r"put it into a set: \{'<s>'\}"),
    ("allowed_special='none'", lambda tok: tok.encode("ab", allowed_special="none"), ValueError, r"not 'none'; for none leave it out, or give \(\)$"),
    ("allowed_special=None", lambda tok: tok.encode("ab", allowed_special=None), ValueError, r"not None; for none leave it out, or give \(\)$"),
    ("allowed_special='none_raise'", lambda tok: tok.encode("ab", allowed_special="none_raise"), ValueError, "not 'none_raise'; disallowed_special='raise' raises for all that are"),
    ("disallowed_special='all'", lambda tok: tok.encode("ab", disallowed_special="all"), ValueError, "not 'all'; all that are not allowed is 'raise'$"),
    ("disallowed_special='none'", lambda tok: tok.using(disallowed_special="none"), ValueError, r"not 'none'; for none leave it out, or give \(\)$"),
    ("disallowed_special=''", lambda tok: tok.encode("ab", disallowed_special=""), ValueError, r"not ''; for none leave it out, or give \(\)$"),
    ("alpha=10**400", lambda tok: tok.encode("ab", alpha=10**400), ValueError, r"^alpha is the chance .* from 0 to 1, not 1000.*\.\.\.$"),
    ("alpha=a huge fraction", lambda tok: tok.encode("ab", alpha=Fraction(10**400, 3)), ValueError, "from 0 to 1"),
    ("alpha=nan", lambda tok: tok.encode("ab", alpha=float("nan")), ValueError, "from 0 to 1, not nan"),
    ("alpha=sNaN", lambda tok: tok.encode("ab", alpha=Decimal("sNaN")), ValueError, r"from 0 to 1, not Decimal\('sNaN'\)"),
    ("alpha=inf", lambda tok: tok.encode("ab", alpha=float("inf")), ValueError, "from 0 to 1, not inf"),
    ("alpha=array", lambda tok: tok.encode("ab", alpha=np.array([0.1, 0.2])), ValueError, "from 0 to 1, not array"),
    ("alpha=-1", lambda tok: tok.encode("ab", alpha=-1), ValueError, "from 0 to 1, not -1"),
    ("alpha=None", lambda tok: tok.encode("ab", alpha=None), TypeError, "alpha must be a number from 0 to 1"),
    ("seed=1.5", lambda tok: tok.encode("ab", alpha=0.5, seed=1.5), TypeError, "seed must be an integer or None"),
    # Ids.
    ("decode(str)", lambda tok: tok.decode("text"), TypeError, "for pieces use decode_pieces"),
    ("decode(pieces)", lambda tok: tok.decode(["▁a"]), TypeError, "for pieces use decode_pieces"),
    ("decode(lists)", lambda tok: tok.decode([[5]]), TypeError, "use decode_batch"),
    ("decode(set)", lambda tok: tok.decode({5, 6}), TypeError, "a list, in the order of the text"),
    ("decode(dict)", lambda tok: tok.decode({"input_ids": [5]}), TypeError, r"batch\['input_ids'\]"),
    ("decode(dict of ids)", lambda tok: tok.decode({5: 6}), TypeError, "give it one of its values"),
    ("decode(table)", lambda tok: tok.decode(table), TypeError, "not DataFrame; give it one column"),
    ("decode(None)", lambda tok: tok.decode(None), TypeError, r"takes ids \(integers\)"),
    ("decode(10**30)", lambda tok: tok.decode(10**30), IndexError, "outside the vocabulary"),
    ("decode([-1])", lambda tok: tok.decode([-1]), IndexError, "outside the vocabulary: 700 pieces, 0 to 699"),
    ("decode(uint64)", lambda tok: tok.decode(np.array([2**64 - 1], np.uint64)), IndexError, "outside the vocabulary"),
    ("decode_pieces(ids)", lambda tok: tok.decode_pieces([5]), TypeError, r"for ids use decode\(\)"),
    ("decode(align)", lambda tok: tok.decode(tok.align("ab")), TypeError, r"found Encoding at position 0; give it encoding\.ids$"),
    ("id_to_piece(str)", lambda tok: tok.id_to_piece("ab"), TypeError, r"; tok\.vocab\[piece\] gives the id of a piece$"),
    ("piece_to_id(int)", lambda tok: tok.piece_to_id(5), TypeError, r"; for the piece of an id use id_to_piece\(\)$"),
    ("decode_batch(ids)", lambda tok: tok.decode_batch([5]), TypeError, "for one sequence use decode"),
    ("id_to_piece(10**30)", lambda tok: tok.id_to_piece(10**30), IndexError, "outside the vocabulary"),
    ("stop=bytes", lambda tok: tok.stream_decoder(stop=b"ab"), TypeError, "^stop must be str, or a list of str, not bytes$"),
    ("stop=an id", lambda tok: tok.stream_decoder(stop=[tok.eos_id]), TypeError, "^stop must be str, or a list of str, not int$"),
    ("stop=''", lambda tok: tok.stream_decoder(stop=["ab", ""]), ValueError, "^stop: an empty text would end the stream at once; leave it out$"),
    ("stop='</s>'", lambda tok: tok.stream_decoder(stop="</s>"), ValueError, r"^stop: '</s>' is a special token, .* when its id comes, 2, or show it with skip_special_tokens=False$"),
    ("stop=added token", lambda tok: tok.with_special_tokens(["<e>"]).stream_decoder(stop="<e>", skip_special_tokens=True), ValueError, "its id comes, 700, or show"),
    ("encode_parts(bool)", lambda tok: tok.encode_parts([True, "ab"]), TypeError, "must be str, bytes, Special or an id, not bool; for the id 1 write 1$"),
    # Names and items.
    ("EncodeAsIds", lambda tok: tok.EncodeAsIds, AttributeError, r"'Tokenizer' object has no attribute 'EncodeAsIds'; use encode\(text\)$"),
    ("encode_as_ids", lambda tok: tok.encode_as_ids, AttributeError, r"; use encode\(text\)$"),
    ("IdToPiece", lambda tok: tok.IdToPiece, AttributeError, "; use id_to_piece$"),
    ("get_piece_size", lambda tok: tok.get_piece_size(), AttributeError, "; use vocab_size$"),
    ("batch_decode", lambda tok: tok.batch_decode([[5]]), AttributeError, r"; use decode_batch\(batch\)$"),
    ("eos_token_id", lambda tok: tok.eos_token_id, AttributeError, "; use eos_id$"),
    ("convert_tokens_to_ids", lambda tok: tok.convert_tokens_to_ids, AttributeError, r"; use piece_to_id\(piece\)$"),
    ("encode_bach", lambda tok: tok.encode_bach, AttributeError, r"has no attribute 'encode_bach'"),
    ("nothing like it", lambda tok: tok.xyzzy, AttributeError, "'Tokenizer' object has no attribute 'xyzzy'$"),
    ("bound", lambda tok: tok.using(add_bos=True).encode_as_ids, AttributeError, r"; use encode\(text\)$"),
    ("padded", lambda tok: tok.padded, AttributeError, r"; use encode_arrays\(texts\)\.padded\(\)$"),
    ("detokenize", lambda tok: tok.detokenize([5]), AttributeError, r"; use decode\(ids\), or decode_pieces\(pieces\)$"),
    ("encode_file", lambda tok: tok.encode_file("a.txt"), AttributeError, r"; use encode\(path\.read_text\(encoding='utf-8'\)\)$"),
    ("count_tokens", lambda tok: tok.count_tokens("ab"), AttributeError, r"; use count\(text\)$"),
    ("chunk", lambda tok: tok.chunk("ab", 1), AttributeError, r"; use split\(text, max_tokens\)$"),
    ("special_tokens", lambda tok: tok.special_tokens, AttributeError, r"; use vocab\.special_tokens$"),
    ("merges", lambda tok: tok.merges, AttributeError, r"; use vocab\.score\(id\)"),
    ("pad_token=", lambda tok: setattr(tok, "pad_token", "<pad>"), AttributeError, r"a Tokenizer does not change, so 'pad_token' cannot be set; with_special_tokens\(tokens\)"),
    ("piece in tok", lambda tok: "ab" in tok, TypeError, "has no items; write `in tok.vocab`"),
    ("padding_side=", lambda tok: setattr(tok, "padding_side", "left"), AttributeError, "'padding_side' cannot be set"),
    ("add_tokens", lambda tok: tok.add_tokens, AttributeError, r"they are special tokens, and allowed_special says which"),
    ("cpbpe.show", lambda tok: cpbpe.show, AttributeError, r"cpbpe\.load\(path\)\.show\(text\) draws the tokens"),
    ("train().encode", lambda tok: cpbpe.train(["ab"], vocab_size=262).encode("ab"), AttributeError, r"^'TrainingResult' object has no attribute 'encode'; use result\.tokenizer\.encode$"),
    ("train().vocab_size", lambda tok: cpbpe.train(["ab"], vocab_size=262).vocab_size, AttributeError, r"; use result\.tokenizer\.vocab_size$"),
    ("train().xyzzy", lambda tok: cpbpe.train(["ab"], vocab_size=262).xyzzy, AttributeError, "'TrainingResult' object has no attribute 'xyzzy'$"),
    ("encode_with_offsets", lambda tok: tok.encode_with_offsets("ab"), AttributeError, r"; use align\(text\)$"),
    ("encode_with_unstable", lambda tok: tok.encode_with_unstable("ab"), AttributeError, r"; use completions\(text\)$"),
    ("is_special", lambda tok: tok.is_special(5), AttributeError, r"; use id in tok\.vocab\.special_tokens\.values\(\)$"),
    ("is_special_token", lambda tok: tok.is_special_token(5), AttributeError, r"; use id in tok\.vocab\.special"),
    ("token_bytes", lambda tok: tok.token_bytes(), AttributeError, r"; use vocab\.token_bytes\(\), or vocab\.id_to_bytes\(id\) for one$"),
    ("normalizer", lambda tok: tok.normalizer.normalize_str("A"), AttributeError, r"; use normalize\(text\), or spec\.normalizer for its settings$"),
    ("pre_tokenizer", lambda tok: tok.pre_tokenizer, AttributeError, r"; use cpbpe\.reference\.steps\(tok, text\)"),
    ("steps", lambda tok: tok.steps("ab"), AttributeError, r"; use cpbpe\.reference\.steps\(tok, text\)"),
    ("backend_tokenizer", lambda tok: tok.backend_tokenizer, AttributeError, r"; use cpbpe\.compat\.tokenizers\.Tokenizer\(tok\), which has the calls"),
    ("stream.put", lambda tok: tok.stream_decoder().put(5), AttributeError, r"^'StreamDecoder' object has no attribute 'put'; use push"),
    ("stream.step", lambda tok: tok.stream_encoder().step("a"), AttributeError, r"^'StreamEncoder' object has no attribute 'step'; use push"),
    ("stream.finish", lambda tok: tok.stream_decoder().finish(), AttributeError, r"; use flush\(\)$"),
    ("stream.text", lambda tok: tok.stream_decoder().text, AttributeError, "; use the texts that push and flush return, joined$"),
    ("stream.ids", lambda tok: tok.stream_encoder().ids, AttributeError, "; use the lists that push and flush return, joined$"),
    ("stream.text=", lambda tok: setattr(tok.stream_decoder(), "text", ""), AttributeError, "^'StreamDecoder' object has no attribute 'text'"),
    ("tok[piece]", lambda tok: tok["ab"], TypeError, r"tok\.vocab\['ab'\]"),
    ("tok[id]", lambda tok: tok[5], TypeError, r"tok\.vocab\[5\]"),
    ("list(tok)", lambda tok: list(tok), TypeError, "object is not iterable"),
    ("tok(text)", lambda tok: tok("ab"), TypeError, "a Tokenizer is not called"),
    ("cpbpe.SentencePieceProcessor", lambda tok: cpbpe.SentencePieceProcessor, AttributeError, "; cpbpe.compat.sentencepiece has it"),
    ("cpbpe.load_model", lambda tok: cpbpe.load_model("tokenizer.model"), AttributeError, r"; cpbpe\.load\(path\) loads a model$"),
    ("cpbpe.BPE", lambda tok: cpbpe.BPE, AttributeError, r"and cpbpe\.train\(corpus\) trains one$"),
    ("cpbpe.train_from_iterator", lambda tok: cpbpe.train_from_iterator(["ab"]), AttributeError, r"; cpbpe\.train\(texts\) trains$"),
    ("cpbpe.count", lambda tok: cpbpe.count("ab"), AttributeError, r"\.count\(text\) counts tokens$"),
    ("cpbpe.tokenize", lambda tok: cpbpe.tokenize, AttributeError, r"encode_pieces\(text\) gives pieces$"),
    ("cpbpe.Tokeniser", lambda tok: cpbpe.Tokeniser, AttributeError, r"; is it Tokenizer\?$"),
    # Saving.
    ("save(missing folder)", lambda tok: tok.save("nodir/x.model"), FileNotFoundError, r"there is no folder '.*nodir'; make it first: 'nodir/x.model'$"),
    ("save(folder)", lambda tok: tok.save("folder"), IsADirectoryError, r"it is a folder; give a name in it, such as 'folder.tokenizer\.model'"),
    ("save(x.yaml)", lambda tok: tok.save("x.yaml"), ValueError, r"no format of models ends in \.yaml; .* would be 'x\.model', .*\.gguf"),
    ("save(x.gz)", lambda tok: tok.save("tokenizer.model.gz"), ValueError, r"no format of models ends in \.gz; "),
    ("save(file)", lambda tok: tok.save(io.BytesIO()), TypeError, r"takes a path, not BytesIO; .* file\.write\(tok\.to_bytes\(\)\)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "error", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_is_refused_with_the_way_out(
    tok: Any, call: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(tok)


def test_hints_do_not_slow_attributes_down_or_show_in_completion() -> None:
    """Objects of classes with these methods have slow attributes, which short calls felt."""
    assert not {"__getattr__", "__getattribute__"} & {
        name for kind in Tokenizer.__mro__[:-1] for name in vars(kind)
    }
    tok = Tokenizer.from_bytes(DATA)
    assert "EncodeAsIds" not in dir(tok)
    assert "put" not in dir(tok.stream_decoder())
    assert {"encode", "vocab"} <= set(dir(tok))
    assert all(hasattr(tok, name) for name in dir(tok) if not name.startswith("__"))
