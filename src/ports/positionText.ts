/** The text form of a log position that callers receive and send: `{log id}:{position}`. */
import type { Position } from './eventStore.js';

const POSITION = /^([0-9a-f-]{36}):([0-9a-z]{1,64})$/;

export const positionText = (logId: string, position: Position): string => `${logId}:${position}`;

/** The two parts of a position's text; `undefined` where the text is malformed. */
export function parsedPosition(text: string): { readonly log: string; readonly position: Position } | undefined {
  const [, log, position] = POSITION.exec(text) ?? [];
  return log === undefined || position === undefined ? undefined : { log, position };
}
