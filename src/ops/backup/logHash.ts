/** The hash of an event log, the same in every engine: without log id and positions, which are the engine's own. */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../ports/eventStore.js';

interface LogHash {
  readonly count: number;
  /** The next event's canonical text, in log order. */
  add(text: string): void;
  /** SHA-256 (hex) over the texts so far, each with a line feed. */
  digest(): string;
}

export function logHash(): LogHash {
  const hash = createHash('sha256');
  let count = 0;
  return {
    get count() {
      return count;
    },
    add(text) {
      count += 1;
      hash.update(`${text}\n`);
    },
    digest: () => hash.copy().digest('hex'),
  };
}

/**
 * One line of JSON for an event, the same in every engine. Fields are in the order in which they were stored, on which
 * the leaves of the tree over the log depend (docs/evidence.md#salted-hashes).
 */
export function canonicalText({ stream, revision, id, type, at, data, metadata }: RecordedEvent): string {
  return JSON.stringify([stream, revision, id, type, at, data, metadata]);
}
