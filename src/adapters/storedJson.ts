/** JSON of events as an engine has stored it: a process that alters the engine's files can store anything. */
import type { RecordedEvent } from '../ports/eventStore.js';
import { AlteredEventError } from '../ports/unavailable.js';

type Named = Pick<RecordedEvent, 'position' | 'revision' | 'type'>;

/**
 * Parses a stored text. The parser's own message would quote the text, which may be personal.
 * @throws AlteredEventError
 */
export function storedObject(what: 'data' | 'metadata', text: string, event: Named): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (typeof value !== 'object' || value === null) throw alteredEvent(event, `its ${what} are no JSON object`);
  return value;
}

export function alteredEvent({ position, revision, type }: Named, why: string): AlteredEventError {
  return new AlteredEventError(
    `the event at position ${position} (${type}, revision ${revision} of its stream) can't be read: ${why}`,
  );
}
