/**
 * A hash of an event log that two engines agree on: over what an event is, in log order, and nothing that is the
 * engine's own (log id, positions).
 */
import { createHash } from 'node:crypto';
import type { RecordedEvent } from '../../ports/eventStore.js';

/** Counts and hashes the events of a log, in log order. */
export interface LogHash {
  /** Events so far. */
  readonly count: number;
  /** Takes the next event, as its canonical text. */
  add(text: string): void;
  /** SHA-256 (hex) over the texts so far, each with a line feed; more may follow. */
  digest(): string;
}

/** The hash of a log without events. */
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
 * An event as JSON in one line: stream, revision, id, type, at, data, metadata; keys of objects sorted. The same event
 * has the same text in every engine.
 */
export function canonicalText({ stream, revision, id, type, at, data, metadata }: RecordedEvent): string {
  return `${JSON.stringify([stream, revision, id, type, at]).slice(0, -1)},${canonicalJson(data)},${canonicalJson(metadata)}]`;
}

/** JSON with sorted keys, of what was parsed from JSON. */
function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  let text = '';
  for (const key of Object.keys(value).sort())
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`;
  return `{${text}}`;
}
