"""The formats by their names."""

from __future__ import annotations

from cpbpe.packing.formats.arrow_tables import Arrow, Parquet
from cpbpe.packing.formats.datatrove import Datatrove
from cpbpe.packing.formats.dolma import Dolma
from cpbpe.packing.formats.mds import Mds
from cpbpe.packing.formats.megatron import Megatron
from cpbpe.packing.formats.nanogpt import NanoGpt
from cpbpe.packing.formats.npy import Npy
from cpbpe.packing.formats.protocol import Format, MappedFormat

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (Npy(), Megatron(), NanoGpt(), Datatrove(), Dolma(), Mds(), Parquet(), Arrow())
}


def mapped(name: str) -> MappedFormat | None:
    """The format of a name, if its files can be mapped into memory."""
    format = FORMATS[name]
    return format if isinstance(format, MappedFormat) else None
