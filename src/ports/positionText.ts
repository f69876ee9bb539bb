/** How callers are given a position: `{log id}:{position}`. */
import type { Position } from './eventStore.js';

const POSITION = /^([0-9a-f-]{36}):([0-9a-z]{1,64})$/;

export const positionText = (logId: string, position: Position): string => `${logId}:${position}`;

/** `undefined`: malformed. */
export function parsedPosition(text: string): { readonly log: string; readonly position: Position } | undefined {
  const [, log, position] = POSITION.exec(text) ?? [];
  return log === undefined || position === undefined ? undefined : { log, position };
}
