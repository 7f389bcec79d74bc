"""The file of a tokenizer. What a model cannot hold of it is kept beside the model, and written again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from cpbpe.compat.tokenizers.added import FLAGS, AddedToken
from cpbpe.engine.protocol import Engine
from cpbpe.errors import ConversionError, ModelError
from cpbpe.lazy import importing, kept
from cpbpe.model.files import read_model_file
from cpbpe.model.formats.registry import JSON, format_of
from cpbpe.model.formats.tokenizer_json import added
from cpbpe.model.formats.tokenizer_json.merging import Names
from cpbpe.model.formats.tokenizer_json.reading import decoder_note
from cpbpe.model.formats.tokenizer_json.steps import normalizer_of, steps_of
from cpbpe.model.spec import ModelSpec
from cpbpe.tokenizer.options import DECODE, ENCODE, FileOptions
from cpbpe.tokenizer.tokenizer import Tokenizer as Model

Json = dict[str, Any]
_OPTIONS = ENCODE | DECODE


class ModelFile:
    """The model of a tokenizer, and the content of its file."""

    def __init__(self, model: Model, content: Json | None, data: bytes | None):
        self.model = model
        """The model that encodes."""
        self._content = content
        self._data = data

    @classmethod
    def read(cls, data: bytes) -> ModelFile:
        """Read a file of any format. Raise ModelError or ConversionError if no model can do what it says."""
        if format_of(data) is not JSON:
            return cls.of(Model.from_bytes(data))
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            content = None
        plain = data
        others = dict.fromkeys(("truncation", "padding"))  # these do not belong to the model
        if isinstance(content, dict) and any(content.get(name) is not None for name in others):
            plain = json.dumps({**content, **others}).encode()
        try:
            spec = JSON.read(plain).spec
        except ModelError:
            # The file may put more around texts than a model can. Here this does not matter, because the
            # post-processor itself does it.
            if not isinstance(content, dict) or content.get("post_processor") is None:
                raise
            alone = {**content, **others, "post_processor": None}
            spec = JSON.read(json.dumps(alone).encode()).spec
        assert isinstance(content, dict)  # or `read` would have raised an error
        del content["model"]["merges"]  # a long list that is no longer needed
        return cls(Model.from_spec(spec), content, data)

    @classmethod
    def of(cls, model: Model) -> ModelFile:
        """The file of a model that has been loaded already, without the content of its own file."""
        refused = [
            f"{name}={value!r}"
            for name, value in model.bound_options.items()
            if name not in FileOptions.__annotations__ and value not in (_OPTIONS[name].default, "all")
        ]
        if refused:
            raise ValueError(
                f"the calls of tokenizers have no options like {', '.join(refused)}, bound with using(); "
                "give Tokenizer() a cpbpe.Tokenizer without them"
            )
        new = cls(model, None, None)
        if model.spec.alphabet == "bytes":
            with importing:
                from cpbpe.model.formats.tokenizer_json.byte_level import without_merges
            new._content = without_merges(new.spec)
        return new

    @property
    def spec(self) -> ModelSpec:
        """The model as a value, with the options that are bound to it and that a file can hold."""
        spec, options = self.model.spec, self.model.bound_options
        bound = {name: value for name, value in options.items() if name in FileOptions.__annotations__}
        if not bound:
            return spec
        return replace(spec, carried=replace(spec.carried, options={**spec.carried.options, **bound}))

    # --- What is in it ----------------------------------------------------------------------------

    @kept
    def _names(self) -> Names:
        """The pieces as tokens. Raises a ConversionError if one is not UTF-8."""
        return Names(self.spec)

    @kept
    def vocab(self) -> dict[str, int]:
        """The ids of the model's own tokens."""
        if self._content is not None:
            vocab: dict[str, int] = self._content["model"]["vocab"]
            return vocab
        return {**{name: id for id, name in enumerate(self._names.names)}, **added.in_gaps(self.spec)}

    def added_tokens(self) -> list[AddedToken]:
        """The added tokens, in the order of their ids."""
        if self._content is not None:
            tokens = self._content.get("added_tokens") or []
        else:
            tokens = added.added_tokens(self._names)
        return [
            AddedToken(token["content"], **{name: token[name] for name in FLAGS if name in token}).fixed()
            for token in tokens
        ]

    def part(self, name: str) -> Any:
        """Return a part of the file; None if it is not there.

        If the tokenizer has no file, this is the part of the file that would be written.
        """
        if self._content is not None:
            return self._content.get(name)
        if name == "post_processor":
            return added.post_processor(self.spec, self._names.names)
        if name == "decoder":
            return self._names.decoder()
        if name == "normalizer":
            return normalizer_of(self.spec.normalizer)
        if name == "pre_tokenizer" and (
            self._names.user_defined or not self.spec.normalizer.prefix_before_space
        ):
            with importing:
                from cpbpe.model.formats.tokenizer_json.writing import pre_tokenizer
            return pre_tokenizer(self.spec)
        return None

    def normalizer(self, engine: Engine) -> Callable[[str], str] | None:
        """What is done to texts before they are searched for tokens with `normalized`; None if nothing is."""
        rules = self.spec.normalizer
        if self.spec.alphabet == "bytes":  # (the pre-tokenizer puts the prefix in front)
            return engine.variant(prefix=False).normalize
        if not (rules.charsmap or steps_of(self.part("normalizer"), "normalizers", "normalizer")):
            return None
        steps = steps_of(self.part("pre_tokenizer"), "pretokenizers", "pre_tokenizer")
        prefixes_later = rules.add_dummy_prefix and any(step["type"] == "Metaspace" for step in steps)
        return _refuse if prefixes_later else engine.normalize

    def has_usual_decoder(self) -> bool:
        """Whether the decoder in the file decodes the ids of texts as the model does."""
        if self._content is None:
            return True
        if self.spec.alphabet == "bytes":
            steps = steps_of(self._content.get("decoder"), "decoders", "decoder")
            return [step["type"] for step in steps] == ["ByteLevel"]
        return decoder_note(self._content, self._names) is None

    # --- Writing ----------------------------------------------------------------------------------

    def content(self) -> Json:
        """The file as JSON. Raise a ConversionError if there is no tokenizer.json for this model."""
        data = self._data
        if data is None:
            data = JSON.write(self.spec).data
        content: Json = json.loads(data)
        return content

    def __reduce__(self) -> tuple[Any, ...]:
        if self._data is not None:
            return ModelFile.read, (self._data,)
        return ModelFile.of, (self.model,)


def read_folder(folder: Any) -> ModelFile:
    """Read the file in a folder: its tokenizer.json, or another model file if it has none."""
    if not isinstance(folder, (str, os.PathLike)):
        raise TypeError(f"from_pretrained() takes the path of a folder, not {type(folder).__name__}")
    if not os.path.isdir(folder):
        raise FileNotFoundError(
            f"{os.fspath(folder)!r} is not a folder here, and cpbpe downloads nothing; download the files "
            f"first, for example with huggingface_hub.snapshot_download, and pass the path of their folder"
        )
    path = os.path.join(folder, "tokenizer.json")
    return ModelFile.read(read_model_file(path if os.path.isfile(path) else folder))


def _refuse(text: str) -> NoReturn:
    raise ConversionError(
        f"the added token {text!r} would be looked for after the normalizer of the file and before its "
        f"pre-tokenizer puts a prefix in front, which is not possible here; add it with normalized=False"
    )
