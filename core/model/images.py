"""Images in a prompt: tokens, arithmetic and cache of one image. Active when an image encoder is named."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any

from scenario.common import yamltree
from scenario.model.optional_part import Feature
from scenario.model.spec import Column, Parameter

ENCODER_FIELDS: dict[str, Parameter] = {
    "patch": Parameter(None, 1, 1000, "px", "Side of a patch.", kind="integer"),
    "merge": Parameter(1, 1, 100, "patches", "Side of the square of patches that becomes one token.", kind="integer"),
    "side": Parameter(0, 0, 1e5, "px", "Side that every image, or every tile, is scaled to; 0: the image keeps its size.", kind="integer"),
    "max_tiles": Parameter(0, 0, 1000, "", "Most tiles that a large image is cut into; 0: no tiles.", kind="integer"),
    "overview": Parameter(0, 0, 1, "", "1 when the whole image is a tile more where there are several.", kind="integer"),
    "fit": Parameter(0, 0, 1, "", "1 when as many tiles as fit in half their area are made (InternVL), 0 when they cover the image.",
                     kind="integer"),
    "max_side": Parameter(0, 0, 1e6, "px", "Longest side that is not scaled down; 0: none.", kind="integer"),
    "row_tokens": Parameter(0, 0, 10, "tokens", "Tokens added per row of image tokens.", kind="integer"),
    "tile_tokens": Parameter(0, 0, 100, "tokens", "Tokens added per tile: a class token.", kind="integer"),
    "cross_layers": Parameter(0, 0, 1000, "", "Cross-attention layers of the language model that read the image; 0: its tokens "
                              "stand in the prompt.", kind="integer"),
    "extra_tokens": Parameter(0, 0, 1e4, "tokens", "Tokens added per image: start and end.", kind="integer"),
    "hidden": Parameter(None, 1, 1e5, "", "Width of the encoder.", kind="integer"),
    "layers": Parameter(None, 1, 1e4, "", "Layers of the encoder.", kind="integer"),
    "ffn": Parameter(None, 1, 1e6, "", "Inner width of its feed-forward network.", kind="integer"),
    "gated": Parameter(0, 0, 1, "", "1 when that network has a gate.", kind="integer"),
    "window": Parameter(0, 0, 1e6, "patches", "Patches that a windowed layer attends to; 0: all.", kind="integer"),
    "window_layers": Parameter(0, 0, 1e4, "", "Layers with windowed attention.", kind="integer"),
    "projector_params": Parameter(0, 0, 1e11, "parameters", "Projector into the language model, applied per token.", kind="integer"),
}  # fmt: skip

_TOWER = "Vision transformer: Dosovitskiy et al. 2021, arXiv:2010.11929."

ENCODER_COLUMNS: dict[str, Column] = {
    "block": Column("patch * merge", "px", "Side of the image area that becomes one token."),
    "scale": Column("min(1, max_side / max(image_width, image_height, 1)) if max_side > 0 else 1", "", "What a large image is scaled by."),
    "tiles_wide": Column("1 if side < 1 or max_tiles < 1 else"
                         " max(floor(sqrt(min(max_tiles, 2 * image_width * image_height / side ** 2))), 1) if fit > 0"
                         " else min(ceil(image_width / side), max_tiles)", "tiles", "Tiles side by side."),
    "tiles_high": Column("1 if side < 1 or max_tiles < 1 else tiles_wide if fit > 0"
                         " else min(ceil(image_height / side), max(floor(max_tiles / tiles_wide), 1))", "tiles", "Tiles above each other."),
    "tiles": Column("tiles_wide * tiles_high + (overview if tiles_wide * tiles_high > 1 else 0)", "tiles", "Tiles, the overview included."),
    "tokens_wide": Column("ceil(side / block) if side > 0 else max(floor(image_width * scale / block + 0.5), 1)", "tokens",
                          "Image tokens in a row."),
    "tokens_high": Column("ceil(side / block) if side > 0 else max(floor(image_height * scale / block + 0.5), 1)", "tokens",
                          "Rows of image tokens."),
    "tokens": Column("tiles * (tokens_high * (tokens_wide + row_tokens) + tile_tokens) + extra_tokens", "tokens",
                     "Tokens of one image, those of its start and end included."),
    "patches": Column("tiles * tokens_high * tokens_wide * merge ** 2", "patches", "Patches that the encoder works on."),
    "layer_params": Column("4 * hidden * hidden + (2 + gated) * hidden * ffn", "parameters", "Matrices of one layer.", source=_TOWER),
    "params": Column("layers * layer_params + 3 * patch ** 2 * hidden + projector_params", "parameters",
                     "Matrices of encoder and projector; norms, biases and position tables left out.", source=_TOWER),
    "attended": Column("max(layers - window_layers, 0) * patches / tiles + window_layers * min(window, patches / tiles)", "patches",
                       "Patches that a patch attends to, summed over layers."),
    "tflop": Column("(2 * patches * (layers * layer_params + 3 * patch ** 2 * hidden) + 4 * hidden * attended * patches"
                    " + 2 * projector_params * patches / merge ** 2) / 1e12", "TFLOP", "Arithmetic of one image.", source=_TOWER),
}  # fmt: skip



@lru_cache(maxsize=1)
def encoders() -> tuple[dict[str, Any], ...]:
    """The rows of the encoders table: name, title, fields, source."""
    name = "encoders.yaml"
    source, node = yamltree.parse((resources.files("scenario.scenarios") / name).read_bytes(), name)
    rows = []
    for key, entry in node.value["encoders"].value.items():
        said = entry.plain()
        for field in said:
            if field not in ENCODER_FIELDS and field not in ("title", "source", "date", "unverified"):
                source.unknown(entry.keys[field], field, "encoder field", list(ENCODER_FIELDS))
        values = {field: said.get(field, parameter.default) for field, parameter in ENCODER_FIELDS.items()}
        cited = f"{said['source']} ({said['date']})" + (" [unverified]" if said.get("unverified") else "")
        rows.append({"name": key, "title": said["title"], **values, "source": cited})
    source.stop()
    return tuple(rows)


FEATURE = Feature(
    "images", "Images in the prompt.",
    inputs={
        "encoder": Parameter(None, kind="choice", choices=tuple(row["name"] for row in encoders()), derive="blank",
                             doc="Image encoder of the model, by its catalog name."),
        "images": Parameter(1, 0, 1e6, "images", "Images in a prompt.", kind="integer"),
    },
    scalars={
        "image_width": Parameter(1024, 1, 1e5, "px", "Width of an image.", kind="integer"),
        "image_height": Parameter(1024, 1, 1e5, "px", "Height of an image.", kind="integer"),
    },
    columns={
        "image_positions": Column("images * encoder_tokens", "tokens", "Positions of the images that the language model reads, in its "
                                  "prompt or in its cross-attention layers."),
        "image_tokens": Column("0 if encoder_cross_layers > 0 else image_positions", "tokens", "Prompt tokens that the images add; "
                               "none where cross-attention layers read them."),
        "image_tflop": Column("images * encoder_tflop", "TFLOP", "Arithmetic of the encoder."),
        "image_prefill_tflop": Column("2 * gemm_params * image_tokens / 1e12", "TFLOP",
                                      "Arithmetic of the language model's weights for these tokens."),
        "image_kv_gb": Column("image_cross_gb if encoder_cross_layers > 0 else image_tokens * kv_bytes_per_token / 1e9", "GB",
                              "KV cache that the images occupy per sequence, before windows forget them: in all layers, or in the "
                              "cross-attention layers that read them."),
        "image_cross_gb": Column("coalesce(image_positions * encoder_cross_layers * kv_width * kv_bits / 8e9, 0)", "GB",
                                 "That of cross-attention layers, held whatever the context."),
        "image_prompt_kv_gb": Column("image_positions * kv_bytes_per_token / 1e9", "GB",
                                     "The same if the images' tokens stood in the prompt."),
        "image_embedding_gb": Column("image_positions * hidden * 16 / 8e9", "GB",
                                     "What the encoder puts out, in BF16 and in the width of the language model."),
        "encoder_gb": Column("encoder_params * 16 / 8e9", "GB", "Weights of the encoder in BF16; held once, beside the model."),
    },
    extends={"fixed_gb": "coalesce(encoder_gb, 0)", "memory_gb": "coalesce(encoder_gb, 0)", "kv_sequence_gb": "image_cross_gb"},
    changes={
        "room_per_sequence_gb": Column(
            "max((memory_available_gb - fixed_gb) / batch - lookahead_tokens * (kv_bytes_per_token + draft_kv_bytes_per_token) / 1e9"
            " - state_bytes / 1e9 - image_cross_gb, 0)", "GB", "Memory that each sequence of this batch may fill with context."),
        "prefill_tokens": Column("prompt_tokens + coalesce(image_tokens, 0)", "tokens", "Tokens that prefill works on, images included."),
        "encoder_ms": Column("coalesce(image_tflop / (gpu_bf16_tflops * gpus * mfu) * 1000, 0)", "ms",
                             "The images' encoder, in BF16; a lower bound."),
    },
)  # fmt: skip
