/**
 * The tiles of a log's tree as files, each under its path of c2sp.org/tlog-tiles, with the latest signed head in
 * `checkpoint`. Any web server can serve the folder. All tiles can be built again from the log.
 * - A full tile is written once, and never changed: `keep` refuses to replace it with other hashes.
 * - A full tile gets its name only once the 256 tiles below it are on disk. So a power cut corrupts only tiles at the
 * right edge, whose hashes lead to the root that a start checks (`logTree.ts`).
 * - Partial tiles are those of the latest signed head.
 * - The file `witnessed` holds a signed head, shown by a witness, that the log did not continue.
 * - The file `format` is the folder's format mark, written before everything else.
 * - The file `positions` has the position of the last event of each full tile of leaves, a line each.
 */
import { existsSync, readdirSync } from 'node:fs';
import { type FileHandle, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { orMissing } from '../../../lib/files/orMissing.js';
import { inParallel } from '../../../lib/async/inParallel.js';
import { EngineError } from '../../../lib/engineError.js';
import { makeFolder } from '../../../lib/files/folders.js';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import { textOf } from '../../../lib/files/storedText.js';
import { draftOf, replaceFile } from '../../../lib/files/replaceFile.js';
import { syncFolder } from '../../../lib/files/syncFolder.js';
import { FORMAT_MARK, type FormatFault, formatFault } from '../../../ports/dataFormat.js';
import type { Position } from '../../../ports/eventStore.js';
import { parseCheckpoint } from '../format/checkpoint.js';
import { HASH_BYTES } from '../format/parsing.js';
import { parseNote } from '../format/signedNote.js';
import { type HashTile, TILE_WIDTH, tileAt, tilePath, tileWidthAt } from '../format/tiles.js';

const HEAD_FILE = 'checkpoint';
const WITNESSED_FILE = 'witnessed';
const POSITIONS_FILE = 'positions';
const FORMAT_FILE = 'format';
const SYNCED_AT_ONCE = 8;
const READS = 4;

export interface TileHashes {
  readonly tile: HashTile;
  readonly hashes: Buffer;
}

/** A tile with other hashes already exists at the path of a tile to be written. */
export class OtherTileError extends Error {
  override readonly name = 'OtherTileError';
  constructor(file: string) {
    super(`${file} holds other hashes than the log gives`);
  }
}

/** Every method throws the file system's errors. */
export interface TileFolder {
  readonly path: string;
  /** The number of leaves in full tiles, and the position of the last one's event. */
  end(): Promise<{ readonly size: number; readonly position: Position | undefined }>;
  /** Position of the last event of the full tile of leaves `index`; `undefined`: the folder does not know it. */
  lastPosition(index: number): Promise<Position | undefined>;
  /** As `lastPosition`, of `count` tiles from `index` on; fewer where the folder knows no more. */
  lastPositions(index: number, count: number): Promise<readonly Position[]>;
  /** The tile's hashes, also from a wider tile that begins with them; `undefined`: both are missing or truncated. */
  read(tile: HashTile): Promise<Buffer | undefined>;
  /** The hashes of the tile at a path, such as `tile/0/x001/234`; `undefined` also where the path is of no such tile. */
  readPath(path: string): Promise<Buffer | undefined>;
  /**
   * Stores full tiles.
   * @param full the tiles, in the order in which they became full
   * @param positions the position of the last event of each tile of level 0
   * @throws OtherTileError
   */
  keep(full: readonly TileHashes[], positions: readonly Position[]): Promise<void>;
  /** The latest signed head; `undefined`: none was published. */
  head(): Promise<string | undefined>;
  /**
   * Stores partial tiles on disk, and then the signed head.
   * @param partial the partial tiles of the head's size, or of a later one; empty: those of the previous head remain
   */
  publish(note: string, partial: readonly TileHashes[]): Promise<void>;
  /** A signed head, shown by a witness, that the log did not continue; `undefined`: no such head is stored. */
  witnessed(): Promise<string | undefined>;
  /** Stores a head durably for `witnessed`. @param note the signed note; `undefined` removes the stored one */
  keepWitnessed(note: string | undefined): Promise<void>;
  /** Removes all tiles; the signed heads stay. */
  clear(): Promise<void>;
}

/** The folder of one log's tree. @throws EngineError where the folder has another release's data format */
export function openTileFolder(trees: string, logId: string): TileFolder {
  const path = join(trees, logId);
  const fault = formatFaultOf(path);
  if (fault !== undefined)
    throw new EngineError(
      'SEAL_DIR',
      `${path} ${fault.problem}: ${fault.remedy}, or move the folder away: it is made again from the log`,
    );
  return tileFolder(path);
}

function formatFaultOf(path: string): FormatFault | undefined {
  const mark = textOf(join(path, FORMAT_FILE));
  if (mark === undefined) return isBegun(path) ? formatFault({}) : undefined;
  const [format, version] = mark.split(' ');
  return formatFault({ format: Number(format), version });
}

/** Whether the folder has more than a draft of its mark, which comes before everything else. */
function isBegun(path: string): boolean {
  return existsSync(path) && readdirSync(path).some((name) => name !== draftOf(FORMAT_FILE));
}

export function tileFolder(path: string): TileFolder {
  const fileOf = (tile: HashTile): string => join(path, tilePath(tile));
  const headFile = join(path, HEAD_FILE);
  const witnessedFile = join(path, WITNESSED_FILE);
  const positionsFile = join(path, POSITIONS_FILE);
  const positions = lastPositions(positionsFile);

  async function head(): Promise<string | undefined> {
    return (await readIfThere(headFile))?.toString();
  }

  async function readOnce(tile: HashTile): Promise<Buffer | undefined> {
    const full = await readIfThere(fileOf({ ...tile, width: TILE_WIDTH }));
    const length = tile.width * HASH_BYTES;
    if (full !== undefined && full.length === TILE_WIDTH * HASH_BYTES) return full.subarray(0, length);
    if (tile.width === TILE_WIDTH) return undefined;
    const folder = dirname(fileOf(tile));
    const widths = (await namesIn(folder)).map(Number).filter((width) => width >= tile.width);
    if (widths.length === 0) return undefined;
    const partial = await readIfThere(join(folder, String(Math.min(...widths))));
    return partial === undefined || partial.length < length ? undefined : partial.subarray(0, length);
  }

  async function read(tile: HashTile): Promise<Buffer | undefined> {
    // A partial tile may be removed between the folder's listing and the read: a wider one exists by then.
    for (let reads = 1; reads < READS; reads++) {
      const found = await readOnce(tile);
      if (found !== undefined) return found;
    }
    return readOnce(tile);
  }

  function mark(): void {
    makeOwned(path);
    const file = join(path, FORMAT_FILE);
    if (!existsSync(file)) replaceFile(file, `${FORMAT_MARK.format} ${FORMAT_MARK.version}\n`);
  }

  /** Writes a file whose name and content appear at once. */
  async function write(file: string, content: string | Uint8Array, synced: boolean): Promise<void> {
    makeOwned(dirname(file));
    const draft = draftOf(file);
    await writeFile(draft, content, { mode: 0o600, flush: synced });
    keepOwner(draft);
    await rename(draft, file);
  }

  async function keepTile({ tile, hashes }: TileHashes): Promise<void> {
    const file = fileOf(tile);
    const there = await readIfThere(file);
    if (there?.equals(hashes) === true) return;
    if (there?.length === hashes.length) throw new OtherTileError(file);
    if (tile.level > 0) {
      const below = Array.from({ length: TILE_WIDTH }, (_, at) => tile.index * TILE_WIDTH + at);
      await inParallel(below, SYNCED_AT_ONCE, async (index) =>
        sync(fileOf({ level: tile.level - 1, index, width: TILE_WIDTH })),
      );
    }
    await write(file, hashes, false);
  }

  return {
    path,
    head,
    lastPosition: positions.at,
    lastPositions: positions.from,
    async end() {
      const count = await positions.count();
      return { size: count * TILE_WIDTH, position: await positions.at(count - 1) };
    },
    read,
    async readPath(given) {
      const tile = tileAt(given);
      return tile === undefined || tile.level === 'entries' ? undefined : read({ ...tile, level: tile.level });
    },
    async keep(full, ends) {
      mark();
      for (const one of full) await keepTile(one);
      if (ends.length === 0) return;
      await positions.append(ends);
    },
    async publish(note, partial) {
      mark();
      const before = partial.length === 0 ? undefined : await head();
      for (const { tile, hashes } of partial) await write(fileOf(tile), hashes, true);
      const present = new Map(partial.map(({ tile }) => [dirname(fileOf(tile)), fileOf(tile)]));
      for (const folder of present.keys()) syncFolder(folder);
      replaceFile(headFile, note);
      for (const file of before === undefined ? [] : partialTilesOf(before).map(fileOf)) {
        const now = present.get(dirname(file));
        if (now === undefined) await rm(dirname(file), { recursive: true, force: true });
        else if (now !== file) await rm(file, { force: true });
      }
    },
    witnessed: async () => (await readIfThere(witnessedFile))?.toString(),
    async keepWitnessed(note) {
      if (note === undefined) return rm(witnessedFile, { force: true });
      mark();
      replaceFile(witnessedFile, note);
    },
    async clear() {
      await rm(positionsFile, { force: true });
      await rm(join(path, 'tile'), { recursive: true, force: true });
    },
  };
}

/** The partial tiles at the right edge of a tree of this signed head's size. */
function partialTilesOf(note: string): HashTile[] {
  const { size } = parseCheckpoint(parseNote(note).body);
  const tiles: HashTile[] = [];
  for (let [level, hashes] = [0, size]; hashes > 0; level++, hashes = Math.floor(hashes / TILE_WIDTH)) {
    const index = Math.floor(hashes / TILE_WIDTH);
    const width = tileWidthAt(size, level, index);
    if (width > 0) tiles.push({ level, index, width });
  }
  return tiles;
}

/** Creates a folder and its missing parents; each gets the owner of the folder above it. */
function makeOwned(folder: string): void {
  if (existsSync(folder)) return;
  makeOwned(dirname(folder));
  if (makeFolder(folder)) keepOwner(folder);
}

const readIfThere = async (file: string): Promise<Buffer | undefined> => orMissing(readFile(file), undefined);

const namesIn = async (folder: string): Promise<string[]> => orMissing(readdir(folder), []);

async function sync(file: string): Promise<void> {
  const opened = await open(file, 'r');
  try {
    await opened.sync();
  } finally {
    await opened.close();
  }
}

/** Bytes to read at the file's start to find its first line feed: more than the line of any position. */
const FIRST_BYTES = 64;

/**
 * The positions of a log's every 256th event, in one file, a line each. The file grows only at its end. Every method
 * throws the file system's errors.
 */
interface LastPositions {
  /** Number of lines, without a last one that was cut short. */
  count(): Promise<number>;
  at(index: number): Promise<Position | undefined>;
  from(index: number, count: number): Promise<readonly Position[]>;
  append(positions: readonly Position[]): Promise<void>;
}

interface Opened {
  readonly file: FileHandle;
  /** Bytes of each line, with its line feed; 0: the file has no line. */
  readonly width: number;
  readonly count: number;
}

function lastPositions(path: string): LastPositions {
  async function opened<T>(flags: 'r' | 'a+', use: (opened: Opened) => Promise<T>): Promise<T> {
    const file = await open(path, flags, 0o600);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(FIRST_BYTES), 0, FIRST_BYTES, 0);
      const width = buffer.subarray(0, bytesRead).indexOf('\n') + 1;
      return await use({ file, width, count: width === 0 ? 0 : Math.floor((await file.stat()).size / width) });
    } finally {
      await file.close();
    }
  }

  const reading = async <T>(use: (opened: Opened) => Promise<T>, missing: T): Promise<T> =>
    orMissing(opened('r', use), missing);

  const linesFrom = async (index: number, most: number): Promise<readonly Position[]> =>
    reading<readonly Position[]>(async ({ file, width, count }) => {
      const lines = Math.min(most, count - index);
      if (index < 0 || lines <= 0) return [];
      const { buffer } = await file.read(Buffer.alloc(lines * width), 0, lines * width, index * width);
      return Array.from({ length: lines }, (_, at) => buffer.toString('latin1', at * width, (at + 1) * width - 1));
    }, []);

  return {
    count: async () => reading(async ({ count }) => count, 0),
    at: async (index) => (await linesFrom(index, 1))[0],
    from: linesFrom,
    append: async (positions) =>
      opened('a+', async ({ file, width, count }) => {
        if (count === 0) keepOwner(path);
        await file.truncate(width * count);
        await file.appendFile(positions.map((position) => `${position}\n`).join(''), 'latin1');
      }),
  };
}
