/** Writes an endpoint's progress from time to time: deliveries answered since then are repeated after a kill. */
import { pause } from '../lib/async/pause.js';
import type { Records } from '../ports/readStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type Lease, NotOursError } from '../runtime/coordination/index.js';
import { type Progress, progressRecord } from './progress.js';

export interface ProgressSaver {
  /** Notes that the progress has changed: it is written after `pauseMs`. */
  changed(): void;
  /**
   * Resolves once all changes are written; nothing may rely on them before that.
   * @throws UnavailableError; NotOursError
   */
  save(): Promise<void>;
  /** Writes the outstanding changes, if the lease is still held. */
  close(): Promise<void>;
}

interface ProgressSaverOptions {
  readonly records: Records;
  readonly endpointId: string;
  /** Version of the stored record; 0: there is none. */
  readonly version: number;
  readonly read: () => Progress;
  readonly pauseMs: () => number;
  /** Once the lease is lost nothing is written: another process may deliver. */
  readonly lease: Pick<Lease, 'held'>;
  readonly fail: (error: unknown) => void;
}

export function progressSaver(options: ProgressSaverOptions): ProgressSaver {
  const { records, endpointId, read, pauseMs, lease, fail } = options;
  const closing = new AbortController();
  let { version } = options;
  let dirty = false;
  let soon: Promise<void> | undefined;
  let last: Promise<void> = Promise.resolve();

  async function put(): Promise<void> {
    if (!dirty) return;
    if (!lease.held) throw new NotOursError('another process may deliver by now');
    dirty = false;
    try {
      const stored = await records.put(progressRecord(endpointId), read(), { expected: version });
      if (stored === undefined) throw new UnavailableError('another process delivers to the endpoint');
      version = stored;
    } catch (error) {
      dirty = true;
      throw error;
    }
  }

  /** Writes run one after the other, since each expects the version that the previous one stored. */
  function save(): Promise<void> {
    const next = last.then(put);
    last = next.catch(() => undefined);
    return next;
  }

  async function saveSoon(): Promise<void> {
    await pause(pauseMs(), closing.signal);
    soon = undefined;
    await save();
  }

  return {
    changed() {
      dirty = true;
      if (!closing.signal.aborted) soon ??= saveSoon().catch(fail);
    },
    save: async () => {
      dirty = true;
      await save();
    },
    async close() {
      closing.abort();
      await soon;
      await save().catch(fail);
    },
  };
}
