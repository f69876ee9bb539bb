import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { TILE_WIDTH } from '../format/tiles.js';
import type { TileFolder } from './tileFolder.js';

export interface IndexDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'readAll'>;
  readonly folder: Pick<TileFolder, 'end' | 'lastPosition'>;
}

/**
 * Indexes of the events' leaves in the tree. The events of one tile are found by one reading of its part of the log.
 * Later events may be missing, since the number of events beyond the tree is unknown.
 * @param size number of leaves in the tree
 */
export async function leafIndexes(
  { stored, folder }: IndexDeps,
  events: readonly RecordedEvent[],
  size: number,
): Promise<ReadonlyMap<RecordedEvent, number>> {
  const tiles = Math.floor((await folder.end()).size / TILE_WIDTH);
  const wanted = new Map<number, Map<string, RecordedEvent>>();
  for (const event of events) {
    const tile = await tileOf(folder, tiles, event.position);
    wanted.set(tile, (wanted.get(tile) ?? new Map<string, RecordedEvent>()).set(event.id, event));
  }
  const found = new Map<RecordedEvent, number>();
  for (const [tile, ofTile] of wanted) {
    const after = tile === 0 ? undefined : await folder.lastPosition(tile - 1);
    let index = tile * TILE_WIDTH;
    reading: for await (const batch of stored.readAll(after, {}, { batchSize: TILE_WIDTH }))
      for (const { id } of batch.events) {
        const event = ofTile.get(id);
        if (event !== undefined) found.set(event, index);
        index += 1;
        ofTile.delete(id);
        if (ofTile.size === 0 || index >= size) break reading;
      }
  }
  return found;
}

/** Index of the first tile that does not end before the position; the number of full tiles where each does. */
async function tileOf(folder: Pick<TileFolder, 'lastPosition'>, tiles: number, position: Position): Promise<number> {
  let [low, high] = [0, tiles];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (((await folder.lastPosition(middle)) ?? position) < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
