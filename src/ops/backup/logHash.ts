/**
 * A hash of an event log on which all engines agree: over the events in log order, without what is the engine's own
 * (log id, positions).
 */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../ports/eventStore.js';

/** Counts and hashes events in log order. */
export interface LogHash {
  readonly count: number;
  /** Adds the next event's canonical text. */
  add(text: string): void;
  /** SHA-256 (hex) over the texts so far, each with a line feed; more may follow. */
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
 * An event as one line of JSON with sorted keys: stream, revision, id, type, at, data, metadata. The same in every
 * engine.
 */
export function canonicalText({ stream, revision, id, type, at, data, metadata }: RecordedEvent): string {
  return `${JSON.stringify([stream, revision, id, type, at]).slice(0, -1)},${canonicalJson(data)},${canonicalJson(metadata)}]`;
}

function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  let text = '';
  for (const key of Object.keys(value).sort())
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`;
  return `{${text}}`;
}
