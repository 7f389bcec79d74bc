"""Reading folders of `transformers`: what the files beside a model say.

Where several files say the same thing, precedence is as in versions 4 and 5. Tokens come from
`added_tokens_decoder` in tokenizer_config.json, or, if it has none, from special_tokens_map.json and
added_tokens.json. A tokenizer.json adds its own tokens. What it says about bos and eos around texts comes
before what tokenizer_config.json says, as in transformers 5. Chat templates come from files named .jinja; if
there are any, all others are ignored.

`cpbpe.tokenizer.folders` combines the model with what these files say, because for that one has to know
which tokens are pieces. `folder_writing` writes all files of a folder.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from cpbpe.errors import ModelError
from cpbpe.lazy import importing
from cpbpe.model.formats.json_file import Json, JsonFile, as_json

CONFIG = "tokenizer_config.json"
TOKENS = "special_tokens_map.json"
ADDED = "added_tokens.json"
TOKENIZER = "tokenizer.json"
GENERATION = "generation_config.json"
MODEL_CONFIG = "config.json"
TEMPLATE = "chat_template.jinja"
TEMPLATES = "additional_chat_templates"
OLD_TEMPLATE = "chat_template.json"
FILES = (CONFIG, TOKENS, ADDED, TOKENIZER, GENERATION, MODEL_CONFIG, TEMPLATE, OLD_TEMPLATE)
"""The files that are read beside a model, by their names."""

NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""The roles that transformers knows, in the order in which it adds their tokens."""
_SUFFIX = "_token"
_LISTS = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")
_SWITCHES = ("add_bos_token", "add_eos_token", "legacy", "add_prefix_space")
_KNOWN = {
    *_SWITCHES,
    *_LISTS,
    *(
        "added_tokens_decoder",
        "chat_template",
        "sp_model_kwargs",
        "tokenizer_class",
        "backend",
        "name_or_path",
    ),
    *("special_tokens_map_file", "tokenizer_file", "vocab_file", "is_local", "local_files_only", "use_fast"),
    *("transformers_version", "_commit_hash", "fix_mistral_regex"),
}
"""The members that are read, and those that say nothing about tokens: none of them needs a note."""
_DEFAULTS = {
    **dict.fromkeys(("clean_up_tokenization_spaces", "spaces_between_special_tokens"), False),
    **dict.fromkeys(("use_default_system_prompt", "split_special_tokens"), False),
    **dict.fromkeys(("padding_side", "truncation_side"), "right"),
    "init_inputs": [],
}
"""Members that need no note if they have these values, which change nothing."""
_WITHOUT_NAMES = ("PreTrainedTokenizer", "TokenizersBackend")
"""The classes of transformers that give no token a role by themselves."""
WITH_METASPACE = ("LlamaTokenizer", "CodeLlamaTokenizer")
"""The classes of transformers 5 that put a space in front of texts by Metaspace, whatever a tokenizer.json
says, and only after special tokens if the option `legacy` says it, which only the first one has."""
_FOLLOW_FILE = {
    *("EvollaModel", "arctic", "aria", "beam", "bigbird_pegasus", "camembertv2-base", "canary", "chatlm"),
    *("cohere_asr", "ernie4_5", "ernie4_5_moe", "flex_olmo", "fuyu", "glm", "glm4", "glm4_moe"),
    *("glm4_moe_lite", "glm4v", "glm4v_moe", "glm_image", "glmasr", "got_ocr2", "gpt_bigcode"),
    *("gradium_phonon_tts", "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "h2ovl_chat"),
    *("hyperclovax", "hyperclovax_vlm", "internlm2", "internlm3", "iquestcoder", "jamba", "kimi_k25"),
    *("kimi_linear", "kosmos-2", "llava", "llava_next", "mimo_v2_flash", "minicpm3", "minicpm_ocr"),
    *("minicpmv", "minicpmv4_6", "minicpmv4_7", "minimax_m2", "ministral", "ministral3", "mistral"),
    *("mistral3", "mistral_large4", "mixtral", "modernbert", "modernbert-decoder", "molmo", "molmo2"),
    *("nemo_speechlm", "nemotron", "nvfp4", "nystromformer", "olmo2", "olmo3", "olmo_hybrid", "omniasr"),
    *("opencua", "openvla", "paddleocr_vl", "pegasus_x", "persimmon", "phi3", "phi3_v", "phimoe"),
    *("pix2struct", "pixtral", "pocket_tts", "smolvlm", "stablelm", "step3_vl", "umt5", "vipllava"),
    *("voxtral", "voxtral_realtime", "xlm-roberta-xl"),
}
"""The kinds of models in config.json with which transformers 5 (5.24) follows a tokenizer.json, whatever
class other files name."""
_OF_KIND = {
    "GPT2Tokenizer": (
        *("blip-2", "codegen", "dbrx", "emu3", "gpt-sw3", "gpt2", "gpt_neo", "gptj", "hyperclovax_vision_v2"),
        *("instructblip", "instructblipvideo", "jais2", "opt", "phi", "starcoder2"),
    ),
    "RobertaTokenizer": (
        *("bart", "bridgetower", "clap", "data2vec-text", "florence2", "ibert", "led", "lilt", "longformer"),
        *("mra", "mvp", "roberta", "roberta-prelayernorm"),
    ),
    "Qwen2Tokenizer": (
        *("audioflamingo3", "colqwen2", "cosmos3_omni", "dots3_note", "fun_asr_nano", "hunyuan_vl"),
        *("internvl", "lighton_ocr", "moss_transcribe_diarize", "ovis2", "qianfan_ocr", "qwen2"),
        *("qwen2_5_omni", "qwen2_5_vl", "qwen2_audio", "qwen2_moe", "qwen2_vl", "qwen3", "qwen3_asr"),
        *("qwen3_moe", "qwen3_next", "qwen3_omni_moe", "qwen3_vl", "qwen3_vl_moe", "vibevoice"),
    ),
    "Qwen3_5Tokenizer": ("qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text", "qwen4_exp"),
    "GPTNeoXTokenizer": (
        *("falcon_mamba", "gpt_neox", "mamba", "mamba2", "mpt", "olmo", "olmoe", "rwkv", "xlstm"),
    ),
    "CLIPTokenizer": (
        *("aimv2", "clip", "clipseg", "groupvit", "omdet-turbo", "oneformer", "owlv2", "owlvit", "sam3"),
        *("sam3_video", "xclip"),
    ),
    "BertTokenizer": (
        *("align", "bark", "bert", "blip", "bros", "chinese_clip", "convbert", "distilbert", "electra"),
        *("encoder-decoder", "ernie", "flava", "git", "grounding-dino", "layoutlm", "lxmert"),
        *("megatron-bert", "mm-grounding-dino", "mobilebert", "nomic_bert", "squeezebert", "tvp", "vilt"),
        *("visual_bert",),
    ),
    "GemmaTokenizer": (
        *("diffusion_gemma", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text"),
        *("recurrent_gemma", "shieldgemma2", "t5gemma", "zaya"),
    ),
    "CohereTokenizer": ("aya_vision", "cohere", "cohere2"),
    "LlamaTokenizer": ("idefics", "idefics2"),
    "Siglip2Tokenizer": ("siglip2",),
    "SeamlessM4TTokenizer": ("seamless_m4t", "seamless_m4t_v2"),
    "NllbTokenizer": ("nllb-moe",),
    "BlenderbotTokenizer": ("blenderbot",),
    "DebertaTokenizer": ("deberta",),
    "LayoutLMv2Tokenizer": ("layoutlmv2",),
    "LayoutLMv3Tokenizer": ("layoutlmv3",),
    "LukeTokenizer": ("luke",),
    "WhisperTokenizer": ("whisper",),
    "ParakeetTokenizer": (
        *("granite_speech5_ctc", "nemotron3_5_asr", "nemotron_asr_streaming", "omniasr_ctc", "parakeet_ctc"),
        *("parakeet_rnnt", "parakeet_tdt"),
    ),
    "CanineTokenizer": ("canine",),
    "DPRQuestionEncoderTokenizer": ("dpr",),
    "DiaTokenizer": ("dia",),
    "EsmcTokenizer": ("esmc", "esmfold2"),
    "FNetTokenizer": ("fnet",),
    "FunnelTokenizer": ("funnel",),
    "MPNetTokenizer": ("mpnet",),
    "NougatTokenizer": ("pp_formulanet",),
    "OpenAIGPTTokenizer": ("openai-gpt",),
    "PerceiverTokenizer": ("perceiver",),
    "RagTokenizer": ("rag",),
    "ReformerTokenizer": ("reformer",),
    "SplinterTokenizer": ("splinter",),
    "Tipsv2Tokenizer": ("tipsv2",),
}
"""The classes with which transformers 5 (5.24) loads a tokenizer.json for these kinds of models in
config.json, if no file names a class."""
_ALWAYS_OF_KIND = (
    *("hyperclovax_vision_v2", "qwen2", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen4_exp"),
)
"""The kinds for which it takes that class even if the files name another one."""
_MISTRAL = ("mistral", "mistral3", "voxtral", "ministral", "pixtral")
_BEFORE_5 = re.compile(r"[0-4]\b|5\.0\.0\.?(dev|a|b|rc)")
_MOST_DIGITS = 10
"""No id has more digits than this."""
_HUGE = 10**15
"""Lengths above this mean that there is no limit."""


@dataclass
class FolderSettings:
    """What the files beside a model say."""

    tokens: dict[int, str] = field(default_factory=dict)
    """Tokens by their ids: added ones, and pieces that the files call special."""
    entries: dict[int, Json | str] = field(default_factory=dict)
    """The same tokens, as the files describe them."""
    has_decoder: bool = False
    """Whether these come from `added_tokens_decoder`, and not from older files."""
    roles: dict[str, str] = field(default_factory=dict)
    """The token for each role; "" if the files say that none has it (see `Carried.roles`)."""
    extra: dict[str, None] = field(default_factory=dict)
    """Other special tokens, which may have no ids yet."""
    options: dict[str, bool] = field(default_factory=dict)
    """The encoding options that the files ask for, even if these are the defaults."""
    around: dict[str, str] = field(default_factory=dict)
    """The tokens that transformers puts around texts, by role, whichever tokens these roles have."""
    prefix_space: bool | None = None
    """Whether the model has a dummy prefix; None if the files do not say it."""
    chat_templates: dict[str, str] = field(default_factory=dict)
    """The chat templates, by name."""
    fixes_pattern: bool = False
    """Whether transformers gives a large tokenizer.json another pattern; see `_fixes_pattern`."""
    tokenizer_class: str = ""
    """The class of transformers that the folder is for, without "Fast"; "" if the files do not say it."""
    class_used: str = ""
    """The class by which transformers 5 loads the folder if it has a tokenizer.json. It is "" if the kind of
    model in config.json makes it follow the file."""
    is_of_kind: bool = False
    """Whether no file names this class, but it is that of the kind of model."""
    flags: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The flags of tokens, as `Carried.tokens` has them."""
    stops: list[int] = field(default_factory=list)
    """The ids that end generation."""
    notes: list[str] = field(default_factory=list)
    """What cannot be kept."""

    def follow_tokenizer_json(self, first: str | None, last: str | None) -> None:
        """Which tokens texts begin and end with is what tokenizer.json says, and not what these files say."""
        for end, token in (("bos", first), ("eos", last)):
            option, wanted = f"add_{end}", token is not None
            if self.options.get(option, wanted) != wanted:
                self.notes.append(
                    f"{CONFIG} says {option}_token={self.options[option]}, and {TOKENIZER}, which "
                    f"transformers 5 follows, {'adds' if wanted else 'does not add'} it"
                )
            self.options[option] = wanted
            if token is not None:
                self.around[end] = token


def read_settings(folder: str, main: str) -> FolderSettings:
    """Return what the files of a folder say in addition to its model, the file `main`. Any may be missing.

    If a file cannot be read, a ModelError names it, and says what is wrong with it.
    """
    settings = FolderSettings()
    file = _file(folder, CONFIG)
    config = _object(folder, CONFIG)
    # 1. Tokens, and the role of each. If there is no list by id, transformers reads two other files.
    for id, token in _listed(config, file):
        _add(settings, id, token, f"added_tokens_decoder['{id}']", file)
    _read_named(settings, config, file)
    settings.has_decoder = "added_tokens_decoder" in config
    if not settings.has_decoder:
        _read_named(settings, _object(folder, TOKENS), _file(folder, TOKENS))
        old = _file(folder, ADDED)
        for text, id in _object(folder, ADDED).items():
            if type(id) is not int or id < 0:
                old.wrong(f"the id of {old.shown(text)} must be a number from 0, not {old.shown(id)}")
            _add(settings, id, text, old.shown(text), old)
    # 2. What goes around texts, and in front of them.
    _read_class(settings, folder, config)
    _read_switches(settings, folder, main, config, file)
    if main != TOKENIZER:
        _read_tokenizer_json(settings, folder)
    # 3. Everything else.
    _read_templates(settings, folder, config)
    if settings.tokenizer_class in _WITHOUT_NAMES:
        settings.roles = {**dict.fromkeys(("bos", "eos", "unk", "pad"), ""), **settings.roles}
    ends = _object(folder, GENERATION).get("eos_token_id")
    for id in ends if isinstance(ends, list) else [] if ends is None else [ends]:
        if type(id) is not int:
            generation = _file(folder, GENERATION)
            generation.wrong(f"eos_token_id must be an id or a list of ids, not {generation.shown(ends)}")
        settings.stops.append(id)
    _note_the_rest(settings, config, file)
    return settings


def read_config(path: str) -> Json:
    """Return the object in a tokenizer_config.json; a ModelError says why transformers could not read it."""
    file = JsonFile(path, as_json)
    with open(path, "rb") as opened:
        data = opened.read()
    if data.startswith(b"\xef\xbb\xbf"):
        file.wrong("it begins with a byte order mark, and transformers reads none; remove these three bytes")
    config = file.parsed(data)
    file.typed(config.get("added_tokens_decoder", {}), dict, "added_tokens_decoder")
    for id, token in _listed(config, file):
        file.typed(token, dict, f"added_tokens_decoder['{id}']")
    return config


# --- Tokens ---------------------------------------------------------------------------------------


def _listed(config: Json, file: JsonFile) -> Iterator[tuple[int, Any]]:
    """Yield the tokens that a tokenizer_config.json lists, with their ids."""
    by_id = config.get("added_tokens_decoder")
    if by_id is not None and not isinstance(by_id, dict):
        file.wrong(f"added_tokens_decoder must be an object, not {file.shown(by_id)}")
    for key, token in (by_id or {}).items():
        if not key.isdecimal() or not key.isascii() or len(key) > _MOST_DIGITS:
            file.wrong(f"added_tokens_decoder has the key {file.shown(key)}, which is no id")
        yield int(key), token


def _read_named(settings: FolderSettings, content: Json, file: JsonFile) -> None:
    """Read the members that name a token, and the lists of tokens."""
    for key, token in content.items():
        role = key.removesuffix(_SUFFIX)
        if role != key and not isinstance(token, bool) and key not in _SWITCHES:
            if token is None:
                settings.roles[role] = ""
            elif isinstance(token, (str, dict)):
                text = _content(token, key, file)
                settings.roles[file.valid(role, f"the name {file.shown(key)}")] = text
                _keep_flags(settings, token, text, file)
    for key in _LISTS:
        given = content.get(key)
        if isinstance(given, dict):
            for role, token in given.items():
                role = role.removesuffix(_SUFFIX)
                if f"{role}{_SUFFIX}" in _SWITCHES:
                    file.wrong(f"{key} calls a token {file.shown(role)}, which is the name of a setting")
                file.valid(role, f"the name {file.shown(role)}")
                settings.roles[role] = _content(token, f"{key}[{role!r}]", file)
        elif isinstance(given, list):
            for place, token in enumerate(given):
                text = _content(token, f"{key}[{place}]", file)
                settings.extra[text] = None
                _keep_flags(settings, token, text, file)
        elif given is not None:
            file.wrong(f"{key} must be a list, not {file.shown(given)}")


def _add(settings: FolderSettings, id: int, token: Any, what: str, file: JsonFile) -> None:
    text = _content(token, what, file)
    if id in settings.tokens and settings.tokens[id] != text:
        settings.notes.append(f"the id {id} is {settings.tokens[id]!r} in one file, and {text!r} in another")
        return
    settings.tokens[id] = text
    settings.entries[id] = token
    if isinstance(token, dict):
        settings.flags[text] = _flags(token, file)


def _keep_flags(settings: FolderSettings, token: Any, text: str, file: JsonFile) -> None:
    """Keep the flags of a token that is listed as special, unless its entry by id has given some before."""
    if isinstance(token, dict):
        settings.flags.setdefault(text, _flags({**token, "special": True}, file))


def _flags(token: dict[str, Any], file: JsonFile) -> tuple[str, ...]:
    """Return flags as transformers' class that is built on sentencepiece understands them."""
    with importing:
        from cpbpe.model.formats.tokenizer_json.added import flags_of
    try:
        return flags_of(token, None)
    except ModelError as error:
        file.wrong(str(error).partition(": ")[2])


def _content(token: Any, what: str, file: JsonFile) -> str:
    """Return the text of a token, which may be given as an object."""
    text = token.get("content") if isinstance(token, dict) else token
    if not isinstance(text, str) or not text:
        file.wrong(f"{what} must be a token, and is {file.shown(token)}")
    file.valid(text, f"{what}, {file.shown(text)},")
    return text.removeprefix("\0") or text  # see `tokenizer_json.merging.Names`


# --- Options --------------------------------------------------------------------------------------


def _read_switches(settings: FolderSettings, folder: str, main: str, config: Json, file: JsonFile) -> None:
    for key in _SWITCHES:
        if not isinstance(config.get(key), (bool, type(None))):
            file.wrong(f"{key} must be true, false or null, not {file.shown(config[key])}")
    for end in ("bos", "eos"):
        if (wanted := config.get(f"add_{end}_token")) is not None:
            settings.options[f"add_{end}"] = wanted
    legacy = config.get("legacy")
    if main == TOKENIZER and settings.class_used in WITH_METASPACE:
        settings.options["prefix_after_special"] = bool(legacy) and settings.class_used == "LlamaTokenizer"
    elif main != TOKENIZER and (legacy is False or settings.tokenizer_class == "CodeLlamaTokenizer"):
        settings.options["prefix_after_special"] = False
    settings.prefix_space = config.get("add_prefix_space")
    settings.fixes_pattern = config.get("fix_mistral_regex") is True and _fixes_pattern(folder)
    if (arguments := config.get("sp_model_kwargs")) not in (None, {}):
        settings.notes.append(
            f"{CONFIG} asks sentencepiece for {file.shown(arguments)}, which is not done here"
        )


def is_legacy_lost(config: Json) -> bool:
    """Whether transformers 5 puts no prefix after a special token, whatever the tokenizer.json says.

    Its class for Llama rebuilds the pre-tokenizer from the option `legacy`, which it does not save.
    """
    name = config.get("tokenizer_class")
    is_llama = name in ("LlamaTokenizer", "LlamaTokenizerFast")
    return is_llama and config.get("backend") == "tokenizers" and not config.get("legacy")


def _read_class(settings: FolderSettings, folder: str, config: Json) -> None:
    """Find out which class of transformers the folder is for, and which one loads a tokenizer.json."""
    model: Json = {}
    with suppress(ModelError):
        model = _object(folder, MODEL_CONFIG)
    kind = str(model.get("model_type"))
    of_kind = next((name for name, kinds in _OF_KIND.items() if kind in kinds), "")
    given = (config.get("tokenizer_class"), model.get("tokenizer_class"))
    named = next((name.removesuffix("Fast") for name in given if isinstance(name, str)), None)
    settings.is_of_kind = named is None or kind in _ALWAYS_OF_KIND
    settings.tokenizer_class = of_kind if named is None else named
    used = of_kind if settings.is_of_kind else settings.tokenizer_class
    settings.class_used = "" if kind in _FOLLOW_FILE else used


def _fixes_pattern(folder: str) -> bool:
    """Whether the folder is one of those for which transformers follows `fix_mistral_regex`: older files of
    Mistral, whose tokenizer.json cuts texts otherwise than Mistral's own tekken.json.
    """
    config = _object(folder, MODEL_CONFIG)
    version = config.get("transformers_version")
    is_old = not version or bool(_BEFORE_5.match(str(version)))
    return bool(config) and is_old and config.get("model_type") in (None, *_MISTRAL)


def _read_tokenizer_json(settings: FolderSettings, folder: str) -> None:
    """Read the tokens of a tokenizer.json beside the model, and what it puts around texts."""
    file = _file(folder, TOKENIZER)
    try:
        with open(file.problem, "rb") as opened:
            head = json_head(opened)
    except FileNotFoundError:
        return
    except (ValueError, UnicodeDecodeError) as error:
        file.wrong(f"it is not valid JSON ({error}); copy or download it again, or remove it")
    tokens = head.get("added_tokens")
    ids: dict[str, int] = {}
    for place, token in enumerate(tokens if isinstance(tokens, list) else []):
        id = token.get("id") if isinstance(token, dict) else None
        if type(id) is not int or id < 0:
            file.wrong(f"added_tokens[{place}] must be an object with an id, and is {file.shown(token)}")
        _add(settings, id, token, f"added_tokens[{place}]", file)
        ids[token["content"]] = id
    processor = head.get("post_processor")
    with importing:
        from cpbpe.model.formats.tokenizer_json.added import ends_of, pair_notes
    try:
        ends = ends_of(processor, ids) if isinstance(processor, (dict, type(None))) else None
        settings.notes += [] if ends is None else pair_notes(processor, ends)
    except ModelError as error:
        file.wrong(str(error).partition(": ")[2])
    if ends is None:
        settings.notes.append(
            f"what {TOKENIZER} puts around texts is more than one token in front and one at the end, or is "
            f"not given as a TemplateProcessing"
        )
        return
    first, last = (end and end.removeprefix("\0") for end in ends)
    settings.follow_tokenizer_json(first, last)


# --- Chat templates -------------------------------------------------------------------------------


def _read_templates(settings: FolderSettings, folder: str, config: Json) -> None:
    paths = {"default": os.path.join(folder, TEMPLATE)}
    others = os.path.join(folder, TEMPLATES)
    for name in sorted(os.listdir(others)) if os.path.isdir(others) else ():
        if name.endswith(".jinja"):
            JsonFile(others).valid(name, f"the name {name!a}")
            paths[name.removesuffix(".jinja")] = os.path.join(others, name)
    for title, path in paths.items():
        if title != "default" or os.path.isfile(path):
            with open(path, "rb") as file:
                settings.chat_templates[title] = JsonFile(path).text(file.read())
    if settings.chat_templates:
        return
    for name, given in ((CONFIG, config), (OLD_TEMPLATE, _object(folder, OLD_TEMPLATE))):
        template = given.get("chat_template")
        if template is not None:
            settings.chat_templates = dict(_templates(template, _file(folder, name)))
            return


def _templates(given: Any, file: JsonFile) -> Iterator[tuple[str, str]]:
    """Yield the templates in a member, with names: it is one, an object of them, or a list of objects."""
    if isinstance(given, str):
        yield "default", file.valid(given, "chat_template")
        return
    items: Iterable[tuple[Any, Any]] | None = given.items() if isinstance(given, dict) else None
    if isinstance(given, list) and all(isinstance(item, dict) for item in given):
        items = [(item.get("name"), item.get("template")) for item in given]
    if items is None:
        file.wrong(
            f"chat_template must be a text, an object of texts or a list of named ones, not "
            f"{file.shown(given)}"
        )
    for name, template in items:
        if not isinstance(name, str) or not isinstance(template, str):
            file.wrong(f"a chat_template needs a name and a template, and {file.shown(name)} has none")
        what = f"the chat_template {file.shown(name)}"
        yield file.valid(name, what), file.valid(template, what)


# --- Files ----------------------------------------------------------------------------------------


def _note_the_rest(settings: FolderSettings, config: Json, file: JsonFile) -> None:
    """Add a note about what the files say that cannot be kept."""
    rest = {
        key: value
        for key, value in config.items()
        if key not in _KNOWN
        and not key.endswith((_SUFFIX, "_class", "auto_map"))
        and not (key.startswith("model_max_length") and isinstance(value, (int, float)) and value > _HUGE)
        and value is not None
        and _DEFAULTS.get(key, ...) != value
    }
    if rest:
        shown = ", ".join(f"{key} ({file.shown(value)})" for key, value in list(rest.items())[:4])
        more = f" and {len(rest) - 4} more" if len(rest) > 4 else ""
        settings.notes.append(f"{CONFIG} also says {shown}{more}, which is not kept")


def _file(folder: str, name: str) -> JsonFile:
    """Return a file of the folder, for reading it and for errors."""
    return JsonFile(os.path.join(folder, name), as_json)


def _object(folder: str, name: str) -> Json:
    """Return the object in a file; an empty one if there is no such file."""
    file = _file(folder, name)
    try:
        with open(file.problem, "rb") as opened:
            data = opened.read()
    except FileNotFoundError:
        return {}
    return file.parsed(data)


# --- What a tokenizer.json says before its vocabulary ---------------------------------------------
#
# The vocabulary takes far longer to read than the rest, and the library writes `model` last. So for the added
# tokens, and for what goes around texts, reading the first kilobytes of a file is enough, unless its members
# have been sorted.

_PART = 1 << 16
_SPACE = re.compile(r"[ \t\r\n]*")


def json_head(file: BinaryIO) -> dict[str, Any]:
    r"""Return the members of the object in a file, without `model`; a ValueError if it is not JSON.

    >>> from io import BytesIO
    >>> json_head(BytesIO(b'{"added_tokens": [], "post_processor": null, "model": {"type": "BPE", "vocab"'))
    {'added_tokens': [], 'post_processor': None}
    """
    data = b""
    size = _PART
    while True:
        part = file.read(size)
        data += part
        size = len(data)  # double the size each time, because each attempt parses from the beginning
        text = data.decode("utf-8-sig", errors="replace" if part else "strict")
        if part:  # the last character may be cut off, and then looks like a broken one
            text = text.rstrip("\ufffd")
        try:
            return _members(text)
        except RecursionError:
            raise ValueError("it is nested too deeply to be read") from None
        except json.JSONDecodeError as error:
            is_cut_off = error.pos >= len(text) - 16 or error.msg.startswith("Unterminated")
            if not is_cut_off:
                raise
            if not part:
                raise ValueError("it ends too early") from None


def _members(text: str) -> dict[str, Any]:
    """Return the members of the object in a text, without `model`, or raise a ValueError."""
    decoder = json.JSONDecoder()
    members: dict[str, Any] = {}
    at = _after(text, 0, "{")
    if text.startswith("}", at):
        return members
    while True:
        key, at = decoder.raw_decode(text, at)
        at = _after(text, at, ":")
        if key == "model" and members.keys() >= {"added_tokens", "post_processor"}:
            return members
        value, at = decoder.raw_decode(text, at)
        if key != "model":
            members[key] = value
        at = _after_space(text, at)
        if text.startswith("}", at):
            return members
        at = _after(text, at, ",")


def _after(text: str, at: int, mark: str) -> int:
    """Return where the part after a mark begins. The mark must come next; space around it is skipped.

    If something else comes next, the error is a plain ValueError, because the file has not been cut off.
    """
    at = _after_space(text, at)
    if not text.startswith(mark, at):
        error = json.JSONDecodeError(f"Expecting {mark!r}", text, at)
        raise error if at == len(text) else ValueError(str(error))
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
