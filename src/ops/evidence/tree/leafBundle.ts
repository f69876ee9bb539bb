import type { EventStore } from '../../../ports/eventStore.js';
import { TILE_WIDTH } from '../format/tiles.js';
import type { TileFolder } from './tileFolder.js';
import { findLeafRules } from './leafRules.js';
import { leavesOf } from './leaves.js';

const LENGTH_BYTES = 2;

export interface BundleDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'read' | 'readAll'>;
  readonly folder: Pick<TileFolder, 'lastPosition'>;
}

/**
 * The first `width` leaves of a tile of level 0, each preceded by its length (c2sp.org/tlog-tiles). `undefined` where
 * the log has fewer, or the folder does not know where they start.
 * @throws UnavailableError, MalformedEvidenceError
 */
export async function leafBundle(
  { stored, folder }: BundleDeps,
  index: number,
  width: number,
): Promise<Buffer | undefined> {
  const after = index === 0 ? undefined : await folder.lastPosition(index - 1);
  const rules = await findLeafRules(stored);
  if (rules === undefined || (index > 0 && after === undefined)) return undefined;
  const leaves = leavesOf(rules);
  const parts: Buffer[] = [];
  for await (const { events } of stored.readAll(after, {}, { batchSize: TILE_WIDTH }))
    for (const event of events) {
      const entry = leaves.entry(event);
      const length = Buffer.alloc(LENGTH_BYTES);
      length.writeUInt16BE(entry.length);
      parts.push(length, entry);
      if (parts.length === 2 * width) return Buffer.concat(parts);
    }
  return undefined;
}
