import type { Logger } from 'pino';
import type { EventStore, Position } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { LOOKS, positionFault, type ReachedLog, shownPosition } from '../../ports/storedPosition.js';

export const PROCESS_CHECKPOINT = 'checkpoint/process-managers';

/** A checkpoint, valid for this log and these types of events. */
export interface ProcessCheckpoint {
  readonly logId: string;
  readonly types?: string;
  readonly position: Position;
}

/** The stored position, as it is; `undefined` where none is stored for this log. @throws UnavailableError */
export async function storedProcessPosition(records: Records, logId: string): Promise<unknown> {
  const stored = (await records.get<Partial<ProcessCheckpoint>>(PROCESS_CHECKPOINT))?.value;
  return stored?.logId === logId ? stored.position : undefined;
}

interface CheckpointOptions {
  readonly events: Pick<EventStore, 'logId' | 'readAll' | keyof ReachedLog>;
  /** Store of the checkpoint; its loss only means that the log is read from its beginning. */
  readonly records: Records;
  readonly logger: Logger;
  readonly types: readonly string[];
}

interface Checkpoints {
  /**
   * `undefined`: start at the log's beginning. Where this release follows types that the stored checkpoint does not
   * name, the log before it is searched for them; the checkpoint holds if there are none. `signal` ends the search,
   * without a checkpoint. A stored position that is none of this log is logged and ignored. @throws UnavailableError
   */
  last(signal: AbortSignal): Promise<Position | undefined>;
  /** Stores the checkpoint; a failure is only logged. */
  save(position: Position): Promise<void>;
}

export function processCheckpoints({ events, records, logger, types }: CheckpointOptions): Checkpoints {
  async function save(position: Position): Promise<void> {
    const checkpoint: ProcessCheckpoint = { logId: events.logId, types: types.join(' '), position };
    await records
      .put(PROCESS_CHECKPOINT, checkpoint)
      .catch((error: unknown) => logger.info({ err: error }, 'checkpoint not saved'));
  }

  async function isBefore(position: Position, added: readonly string[], signal: AbortSignal): Promise<boolean> {
    for await (const batch of events.readAll(undefined, { types: added }, { batchSize: 1, signal })) {
      const [first] = batch.events;
      if (first !== undefined) return first.position <= position;
      if (batch.position >= position) return false;
    }
    return false;
  }

  return {
    save,
    async last(signal) {
      const stored = (await records.get<ProcessCheckpoint>(PROCESS_CHECKPOINT))?.value;
      if (stored === undefined || stored.logId !== events.logId || stored.types === undefined) return undefined;
      const fault = await positionFault(events, stored.position, LOOKS.most);
      if (fault !== undefined) {
        logger.warn(
          { checkpoint: shownPosition(stored.position) },
          `process managers: the stored position ${fault}: it counts as absent, and the log is read from its beginning`,
        );
        return undefined;
      }
      const looked = new Set(stored.types.split(' '));
      const added = types.filter((type) => !looked.delete(type));
      // A later release followed more types: work that was settled for it may be open for this one.
      if (looked.size > 0) return undefined;
      if (added.length === 0) return stored.position;
      logger.info({ types: added }, 'process managers: looking for events of types that are new to them');
      if ((await isBefore(stored.position, added, signal)) || signal.aborted) return undefined;
      await save(stored.position);
      return stored.position;
    },
  };
}
