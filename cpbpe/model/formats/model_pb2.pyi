from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf.internal import python_message as _python_message
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
ADDED_TOKENS_FIELD_NUMBER: _ClassVar[int]
added_tokens: _descriptor.FieldDescriptor
CARRIED_FIELD_NUMBER: _ClassVar[int]
carried: _descriptor.FieldDescriptor
PREFIX_BEFORE_SPACE_FIELD_NUMBER: _ClassVar[int]
prefix_before_space: _descriptor.FieldDescriptor
BYTE_LEVEL_FIELD_NUMBER: _ClassVar[int]
byte_level: _descriptor.FieldDescriptor
UNICODE_FORM_FIELD_NUMBER: _ClassVar[int]
unicode_form: _descriptor.FieldDescriptor

class TrainerSpec(_message.Message):
    __slots__ = ("input", "input_format", "model_prefix", "model_type", "vocab_size", "accept_language", "self_test_sample_size", "character_coverage", "input_sentence_size", "shuffle_input_sentence", "mining_sentence_size", "training_sentence_size", "max_sentence_length", "seed_sentencepiece_size", "shrinking_factor", "num_threads", "num_sub_iterations", "train_extremely_large_corpus", "enable_differential_privacy", "differential_privacy_noise_level", "differential_privacy_clipping_threshold", "seed_sentencepieces_file", "auto_character_coverage", "max_sentencepiece_length", "split_by_unicode_script", "split_by_whitespace", "split_by_number", "treat_whitespace_as_suffix", "split_digits", "allow_whitespace_only_pieces", "pretokenization_delimiter", "control_symbols", "user_defined_symbols", "vocabulary_output_piece_score", "hard_vocab_limit", "use_all_vocab", "byte_fallback", "required_chars", "unk_id", "bos_id", "eos_id", "pad_id", "unk_surface", "unk_piece", "bos_piece", "eos_piece", "pad_piece")
    Extensions: _python_message._ExtensionDict
    class ModelType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNIGRAM: _ClassVar[TrainerSpec.ModelType]
        BPE: _ClassVar[TrainerSpec.ModelType]
        WORD: _ClassVar[TrainerSpec.ModelType]
        CHAR: _ClassVar[TrainerSpec.ModelType]
    UNIGRAM: TrainerSpec.ModelType
    BPE: TrainerSpec.ModelType
    WORD: TrainerSpec.ModelType
    CHAR: TrainerSpec.ModelType
    INPUT_FIELD_NUMBER: _ClassVar[int]
    INPUT_FORMAT_FIELD_NUMBER: _ClassVar[int]
    MODEL_PREFIX_FIELD_NUMBER: _ClassVar[int]
    MODEL_TYPE_FIELD_NUMBER: _ClassVar[int]
    VOCAB_SIZE_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CHARACTER_COVERAGE_FIELD_NUMBER: _ClassVar[int]
    INPUT_SENTENCE_SIZE_FIELD_NUMBER: _ClassVar[int]
    SHUFFLE_INPUT_SENTENCE_FIELD_NUMBER: _ClassVar[int]
    MINING_SENTENCE_SIZE_FIELD_NUMBER: _ClassVar[int]
    TRAINING_SENTENCE_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SENTENCE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEED_SENTENCEPIECE_SIZE_FIELD_NUMBER: _ClassVar[int]
    SHRINKING_FACTOR_FIELD_NUMBER: _ClassVar[int]
    NUM_THREADS_FIELD_NUMBER: _ClassVar[int]
    NUM_SUB_ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    TRAIN_EXTREMELY_LARGE_CORPUS_FIELD_NUMBER: _ClassVar[int]
    ENABLE_DIFFERENTIAL_PRIVACY_FIELD_NUMBER: _ClassVar[int]
    DIFFERENTIAL_PRIVACY_NOISE_LEVEL_FIELD_NUMBER: _ClassVar[int]
    DIFFERENTIAL_PRIVACY_CLIPPING_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    SEED_SENTENCEPIECES_FILE_FIELD_NUMBER: _ClassVar[int]
    AUTO_CHARACTER_COVERAGE_FIELD_NUMBER: _ClassVar[int]
    MAX_SENTENCEPIECE_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SPLIT_BY_UNICODE_SCRIPT_FIELD_NUMBER: _ClassVar[int]
    SPLIT_BY_WHITESPACE_FIELD_NUMBER: _ClassVar[int]
    SPLIT_BY_NUMBER_FIELD_NUMBER: _ClassVar[int]
    TREAT_WHITESPACE_AS_SUFFIX_FIELD_NUMBER: _ClassVar[int]
    SPLIT_DIGITS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_WHITESPACE_ONLY_PIECES_FIELD_NUMBER: _ClassVar[int]
    PRETOKENIZATION_DELIMITER_FIELD_NUMBER: _ClassVar[int]
    CONTROL_SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    USER_DEFINED_SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_OUTPUT_PIECE_SCORE_FIELD_NUMBER: _ClassVar[int]
    HARD_VOCAB_LIMIT_FIELD_NUMBER: _ClassVar[int]
    USE_ALL_VOCAB_FIELD_NUMBER: _ClassVar[int]
    BYTE_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_CHARS_FIELD_NUMBER: _ClassVar[int]
    UNK_ID_FIELD_NUMBER: _ClassVar[int]
    BOS_ID_FIELD_NUMBER: _ClassVar[int]
    EOS_ID_FIELD_NUMBER: _ClassVar[int]
    PAD_ID_FIELD_NUMBER: _ClassVar[int]
    UNK_SURFACE_FIELD_NUMBER: _ClassVar[int]
    UNK_PIECE_FIELD_NUMBER: _ClassVar[int]
    BOS_PIECE_FIELD_NUMBER: _ClassVar[int]
    EOS_PIECE_FIELD_NUMBER: _ClassVar[int]
    PAD_PIECE_FIELD_NUMBER: _ClassVar[int]
    input: _containers.RepeatedScalarFieldContainer[bytes]
    input_format: bytes
    model_prefix: bytes
    model_type: TrainerSpec.ModelType
    vocab_size: int
    accept_language: _containers.RepeatedScalarFieldContainer[bytes]
    self_test_sample_size: int
    character_coverage: float
    input_sentence_size: int
    shuffle_input_sentence: bool
    mining_sentence_size: int
    training_sentence_size: int
    max_sentence_length: int
    seed_sentencepiece_size: int
    shrinking_factor: float
    num_threads: int
    num_sub_iterations: int
    train_extremely_large_corpus: bool
    enable_differential_privacy: bool
    differential_privacy_noise_level: float
    differential_privacy_clipping_threshold: int
    seed_sentencepieces_file: bytes
    auto_character_coverage: bool
    max_sentencepiece_length: int
    split_by_unicode_script: bool
    split_by_whitespace: bool
    split_by_number: bool
    treat_whitespace_as_suffix: bool
    split_digits: bool
    allow_whitespace_only_pieces: bool
    pretokenization_delimiter: bytes
    control_symbols: _containers.RepeatedScalarFieldContainer[bytes]
    user_defined_symbols: _containers.RepeatedScalarFieldContainer[bytes]
    vocabulary_output_piece_score: bool
    hard_vocab_limit: bool
    use_all_vocab: bool
    byte_fallback: bool
    required_chars: bytes
    unk_id: int
    bos_id: int
    eos_id: int
    pad_id: int
    unk_surface: bytes
    unk_piece: bytes
    bos_piece: bytes
    eos_piece: bytes
    pad_piece: bytes
    def __init__(self, input: _Optional[_Iterable[bytes]] = ..., input_format: _Optional[bytes] = ..., model_prefix: _Optional[bytes] = ..., model_type: _Optional[_Union[TrainerSpec.ModelType, str]] = ..., vocab_size: _Optional[int] = ..., accept_language: _Optional[_Iterable[bytes]] = ..., self_test_sample_size: _Optional[int] = ..., character_coverage: _Optional[float] = ..., input_sentence_size: _Optional[int] = ..., shuffle_input_sentence: bool = ..., mining_sentence_size: _Optional[int] = ..., training_sentence_size: _Optional[int] = ..., max_sentence_length: _Optional[int] = ..., seed_sentencepiece_size: _Optional[int] = ..., shrinking_factor: _Optional[float] = ..., num_threads: _Optional[int] = ..., num_sub_iterations: _Optional[int] = ..., train_extremely_large_corpus: bool = ..., enable_differential_privacy: bool = ..., differential_privacy_noise_level: _Optional[float] = ..., differential_privacy_clipping_threshold: _Optional[int] = ..., seed_sentencepieces_file: _Optional[bytes] = ..., auto_character_coverage: bool = ..., max_sentencepiece_length: _Optional[int] = ..., split_by_unicode_script: bool = ..., split_by_whitespace: bool = ..., split_by_number: bool = ..., treat_whitespace_as_suffix: bool = ..., split_digits: bool = ..., allow_whitespace_only_pieces: bool = ..., pretokenization_delimiter: _Optional[bytes] = ..., control_symbols: _Optional[_Iterable[bytes]] = ..., user_defined_symbols: _Optional[_Iterable[bytes]] = ..., vocabulary_output_piece_score: bool = ..., hard_vocab_limit: bool = ..., use_all_vocab: bool = ..., byte_fallback: bool = ..., required_chars: _Optional[bytes] = ..., unk_id: _Optional[int] = ..., bos_id: _Optional[int] = ..., eos_id: _Optional[int] = ..., pad_id: _Optional[int] = ..., unk_surface: _Optional[bytes] = ..., unk_piece: _Optional[bytes] = ..., bos_piece: _Optional[bytes] = ..., eos_piece: _Optional[bytes] = ..., pad_piece: _Optional[bytes] = ...) -> None: ...

class NormalizerSpec(_message.Message):
    __slots__ = ("name", "precompiled_charsmap", "add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "normalization_rule_tsv")
    Extensions: _python_message._ExtensionDict
    NAME_FIELD_NUMBER: _ClassVar[int]
    PRECOMPILED_CHARSMAP_FIELD_NUMBER: _ClassVar[int]
    ADD_DUMMY_PREFIX_FIELD_NUMBER: _ClassVar[int]
    REMOVE_EXTRA_WHITESPACES_FIELD_NUMBER: _ClassVar[int]
    ESCAPE_WHITESPACES_FIELD_NUMBER: _ClassVar[int]
    NORMALIZATION_RULE_TSV_FIELD_NUMBER: _ClassVar[int]
    name: bytes
    precompiled_charsmap: bytes
    add_dummy_prefix: bool
    remove_extra_whitespaces: bool
    escape_whitespaces: bool
    normalization_rule_tsv: bytes
    def __init__(self, name: _Optional[bytes] = ..., precompiled_charsmap: _Optional[bytes] = ..., add_dummy_prefix: bool = ..., remove_extra_whitespaces: bool = ..., escape_whitespaces: bool = ..., normalization_rule_tsv: _Optional[bytes] = ...) -> None: ...

class ModelProto(_message.Message):
    __slots__ = ("pieces", "trainer_spec", "normalizer_spec", "self_test_data", "denormalizer_spec")
    Extensions: _python_message._ExtensionDict
    class SentencePiece(_message.Message):
        __slots__ = ("piece", "score", "type")
        Extensions: _python_message._ExtensionDict
        class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            NORMAL: _ClassVar[ModelProto.SentencePiece.Type]
            UNKNOWN: _ClassVar[ModelProto.SentencePiece.Type]
            CONTROL: _ClassVar[ModelProto.SentencePiece.Type]
            USER_DEFINED: _ClassVar[ModelProto.SentencePiece.Type]
            UNUSED: _ClassVar[ModelProto.SentencePiece.Type]
            BYTE: _ClassVar[ModelProto.SentencePiece.Type]
        NORMAL: ModelProto.SentencePiece.Type
        UNKNOWN: ModelProto.SentencePiece.Type
        CONTROL: ModelProto.SentencePiece.Type
        USER_DEFINED: ModelProto.SentencePiece.Type
        UNUSED: ModelProto.SentencePiece.Type
        BYTE: ModelProto.SentencePiece.Type
        PIECE_FIELD_NUMBER: _ClassVar[int]
        SCORE_FIELD_NUMBER: _ClassVar[int]
        TYPE_FIELD_NUMBER: _ClassVar[int]
        piece: bytes
        score: float
        type: ModelProto.SentencePiece.Type
        def __init__(self, piece: _Optional[bytes] = ..., score: _Optional[float] = ..., type: _Optional[_Union[ModelProto.SentencePiece.Type, str]] = ...) -> None: ...
    PIECES_FIELD_NUMBER: _ClassVar[int]
    TRAINER_SPEC_FIELD_NUMBER: _ClassVar[int]
    NORMALIZER_SPEC_FIELD_NUMBER: _ClassVar[int]
    SELF_TEST_DATA_FIELD_NUMBER: _ClassVar[int]
    DENORMALIZER_SPEC_FIELD_NUMBER: _ClassVar[int]
    pieces: _containers.RepeatedCompositeFieldContainer[ModelProto.SentencePiece]
    trainer_spec: TrainerSpec
    normalizer_spec: NormalizerSpec
    self_test_data: bytes
    denormalizer_spec: NormalizerSpec
    def __init__(self, pieces: _Optional[_Iterable[_Union[ModelProto.SentencePiece, _Mapping]]] = ..., trainer_spec: _Optional[_Union[TrainerSpec, _Mapping]] = ..., normalizer_spec: _Optional[_Union[NormalizerSpec, _Mapping]] = ..., self_test_data: _Optional[bytes] = ..., denormalizer_spec: _Optional[_Union[NormalizerSpec, _Mapping]] = ...) -> None: ...

class AddedToken(_message.Message):
    __slots__ = ("text", "id")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    text: bytes
    id: int
    def __init__(self, text: _Optional[bytes] = ..., id: _Optional[int] = ...) -> None: ...

class ByteLevel(_message.Message):
    __slots__ = ("pattern", "name", "whole", "then")
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    THEN_FIELD_NUMBER: _ClassVar[int]
    pattern: bytes
    name: bytes
    whole: bool
    then: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, pattern: _Optional[bytes] = ..., name: _Optional[bytes] = ..., whole: bool = ..., then: _Optional[_Iterable[bytes]] = ...) -> None: ...
