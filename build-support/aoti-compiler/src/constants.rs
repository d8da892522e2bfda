//! Numbers that headers define, as a library of the widest vectors has them.
//!
//! Written by `cargo xtask regenerate`; change the headers instead.

/// `kAttentionRows` of `attention.h`.
pub(crate) const ATTENTION_ROWS: i64 = 28;

/// `kSplitWords` of `bytes.h`.
pub(crate) const SPLIT_WORDS: i64 = 64;

/// `kMaxTaps` of `conv.h`.
pub(crate) const MAX_TAPS: i64 = 1024;

/// `kDepthwiseTaps` of `depthwise_pixels.h`.
pub(crate) const DEPTHWISE_TAPS: i64 = 256;

/// `kBlockBytes` of `gemm.h`.
pub(crate) const BLOCK_BYTES: i64 = 393216;

/// `kFewRows` of `gemm.h`.
pub(crate) const FEW_ROWS: i64 = 4;

/// `kGeneralRows` of `gemm.h`.
pub(crate) const GENERAL_ROWS: i64 = 140;

/// `kGroup` of `gemm.h`.
pub(crate) const GROUP: i64 = 4;

/// `kMainRows` of `gemm.h`.
pub(crate) const MAIN_ROWS: i64 = 14;

/// `kPlannedRows` of `gemm.h`.
pub(crate) const PLANNED_ROWS: i64 = 56;

/// `kTileLeast` of `gemm.h`.
pub(crate) const TILE_LEAST: i64 = 6;

/// `kTileRows` of `gemm.h`.
pub(crate) const TILE_ROWS: [i64; 6] = [14, 13, 8, 4, 2, 1];

/// `kBlasColumns` of `gemm_blas.h`.
pub(crate) const BLAS_COLUMNS: i64 = 1024;

/// `kBlasRows` of `gemm_blas.h`.
pub(crate) const BLAS_ROWS: i64 = 192;

/// `kBlasStep` of `gemm_blas.h`.
pub(crate) const BLAS_STEP: i64 = 16;

/// `kDigitHead` of `gemm_groups.h`.
pub(crate) const DIGIT_HEAD: i64 = 8;

/// `kGroupedRows` of `gemm_groups.h`.
pub(crate) const GROUPED_ROWS: i64 = 32;

/// `kStreamColumns` of `gemm_stream.h`.
pub(crate) const STREAM_COLUMNS: i64 = 1024;

/// `kGemmUnitRows` of `gemm_units.h`.
pub(crate) const GEMM_UNIT_ROWS: i64 = 32;

/// `kUnitBlock` of `gemm_units.h`.
pub(crate) const UNIT_BLOCK: i64 = 196608;

/// `kUnitBlockRows` of `gemm_units.h`.
pub(crate) const UNIT_BLOCK_ROWS: [i64; 2] = [64, 256];

/// `kUnitDepth` of `gemm_units.h`.
pub(crate) const UNIT_DEPTH: i64 = 32;

/// `kUnitLeastRows` of `gemm_units.h`.
pub(crate) const UNIT_LEAST_ROWS: i64 = 48;

/// `kScoreKeys` of `gpu/attention.h`.
pub(crate) const SCORE_KEYS: i64 = 32;

/// `kRecurrentThreads` of `gpu/recurrent.h`.
pub(crate) const RECURRENT_THREADS: i64 = 256;

/// `kComputers` of `gpu/roles.h`.
pub(crate) const COMPUTERS: i64 = 256;

/// `kCopiers` of `gpu/roles.h`.
pub(crate) const COPIERS: i64 = 128;

/// `kPiecePlaces` of `gpu/roles.h`.
pub(crate) const PIECE_PLACES: i64 = 4;

/// `kScanned` of `gpu/scan.h`.
pub(crate) const SCANNED: i64 = 4;

/// `kOwnUpdates` of `gpu/scatter.h`.
pub(crate) const OWN_UPDATES: i64 = 4;

/// `kRanked` of `gpu/scatter.h`.
pub(crate) const RANKED: i64 = 32;

/// `kSortTile` of `gpu/scatter.h`.
pub(crate) const SORT_TILE: i64 = 2048;

/// `kTileSide` of `gpu/simt.h`.
pub(crate) const TILE_SIDE: i64 = 32;

/// `kSkinnyColumns` of `gpu/skinny.h`.
pub(crate) const SKINNY_COLUMNS: i64 = 16;

/// `kSkinnyThreads` of `gpu/skinny.h`.
pub(crate) const SKINNY_THREADS: i64 = 256;

/// `kSorted` of `gpu/sort.h`.
pub(crate) const SORTED: i64 = 4;

/// `kResultPad` of `gpu/unit_fill.h`.
pub(crate) const RESULT_PAD: i64 = 8;

/// `kRing` of `gpu/unit_fill.h`.
pub(crate) const RING: i64 = 4;

/// `kResultBytes` of `gpu/staged_fill.h`.
pub(crate) const RESULT_BYTES: i64 = 40960;

/// `kSpan` of `gpu/tensor_map.h`.
pub(crate) const SPAN: i64 = 32;

/// `kNeighbours` of `gpu/tensor_map.h`.
pub(crate) const NEIGHBOURS: i64 = 8;

/// `kRowTaps` of `gpu/windows.h`.
pub(crate) const ROW_TAPS: i64 = 8;

/// `kRun` of `gpu/windows.h`.
pub(crate) const RUN: i64 = 4;

/// `kGroupRows` of `group_pixels.h`.
pub(crate) const GROUP_ROWS: i64 = 11;

/// `kGroupStride` of `group_pixels.h`.
pub(crate) const GROUP_STRIDE: i64 = 2;

/// `kGroupTaps` of `group_pixels.h`.
pub(crate) const GROUP_TAPS: i64 = 11;

/// `kMatrixThreads` of `linalg_team.h`.
pub(crate) const MATRIX_THREADS: i64 = 512;

/// `kPixelRows` of `pixel_kernels.h`.
pub(crate) const PIXEL_ROWS: i64 = 14;

/// `kPixelSlack` of `pixels.h`.
pub(crate) const PIXEL_SLACK: i64 = 16;

/// `kForkJoin` of `run.h`.
pub(crate) const FORK_JOIN: i64 = 1024;

/// `kGrainsOfPart` of `run.h`.
pub(crate) const GRAINS_OF_PART: i64 = 4;

/// `kPartsOfThread` of `run.h`.
pub(crate) const PARTS_OF_THREAD: i64 = 4;

/// `kChain` of `tile.h`.
pub(crate) const CHAIN: i64 = 1024;

/// `kConvRows` of `tile.h`.
pub(crate) const CONV_ROWS: i64 = 8;

/// `kPanelBytes` of `tile.h`.
pub(crate) const PANEL_BYTES: i64 = 128;

/// `kWinogradPoints` of `winograd.h`.
pub(crate) const WINOGRAD_POINTS: i64 = 16;

/// `kWinogradTiles` of `winograd.h`.
pub(crate) const WINOGRAD_TILES: i64 = 28;

/// `kPairRows` of `winograd_bytes.h`.
pub(crate) const PAIR_ROWS: i64 = 6;

/// `kWinogradByteTiles` of `winograd_bytes.h`.
pub(crate) const WINOGRAD_BYTE_TILES: i64 = 54;
