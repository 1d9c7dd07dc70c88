"""The shape of a tile, one block of rows against one block of columns, and the memory that it takes."""

from __future__ import annotations

# Found by measuring. A tile of 2048 x 4096 scores stays in a large cache; groups along rows may be larger than along
# columns, where every element looked at lies in another cache line.
ROWS, COLUMNS = 2048, 4096
ROW_GROUP, COLUMN_GROUP = 32, 16


def tile_shape(n: int, m: int, dim: int, k: int, budget: int, *, workers: int = 1) -> tuple[int, int]:
    """Rows and columns of a tile: those found fastest, halved until the working memory fits the budget in bytes.

    `workers` make products at once.

    Raises `ValueError` for a budget too small for the smallest tile.
    """
    height, width = min(ROWS, _padded(n, COLUMN_GROUP)), min(COLUMNS, _padded(m, ROW_GROUP))
    while (need := _memory(height, width, dim, k, workers)) > budget:
        if height > COLUMN_GROUP and height >= width // 2:
            height = _padded(height // 2, COLUMN_GROUP)
        elif width > ROW_GROUP:
            width = _padded(width // 2, ROW_GROUP)
        elif height > COLUMN_GROUP:
            height = _padded(height // 2, COLUMN_GROUP)
        else:
            raise ValueError(f"a memory budget of {budget} bytes is too small; the smallest tile needs {need}")
    return height, width


def _padded(size: int, group: int) -> int:
    return max(1, -(-size // group)) * group


def _memory(height: int, width: int, dim: int, k: int, workers: int) -> int:
    """Bytes in use at most, for a tile of that shape."""
    tables = (workers + 1) * 4 * height * width
    maxima = 3 * 4 * height * width // min(ROW_GROUP, COLUMN_GROUP)
    vectors = 4 * dim * ((2 * workers + 1) * height + 4 * width)
    # Looking: scores, ids, places and their copies for k groups of every row.
    looks = 40 * max(height * min(k * (ROW_GROUP + 1), width + k), width * min(k * (COLUMN_GROUP + 1), height + k))
    return tables + maxima + vectors + looks + (1 << 16)
