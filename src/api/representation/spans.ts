/** Spans of time by which lists are narrowed (docs/api/conventions.md#times). */
import { timeWithZone } from '../../lib/writtenTime.js';
import { faultOf } from '../pipeline/errors.js';
import type { Schema } from '../pipeline/route.js';

const TIME = { type: 'string', maxLength: 40 } as const;

/** @param what the plural of what is listed */
export const spanParameters = (what: string): Readonly<Record<'from' | 'to', Schema>> => ({
  from: { ...TIME, description: `Only ${what} from this time on: ISO 8601 with its zone.` },
  to: { ...TIME, description: `Only ${what} before this time: ISO 8601 with its zone.` },
});

/** Milliseconds since the epoch, from the first on and before the second. @throws HttpError `schema` */
export const spanIn = (query: Readonly<Record<string, unknown>>): { readonly from: number; readonly to: number } => ({
  from: timeIn(query, 'from') ?? -Infinity,
  to: timeIn(query, 'to') ?? Infinity,
});

function timeIn(query: Readonly<Record<string, unknown>>, name: 'from' | 'to'): number | undefined {
  const text = query[name] as string | undefined;
  if (text === undefined) return undefined;
  const time = timeWithZone(text);
  if (time === undefined) throw faultOf(name, 'must be a time with its zone, such as 2026-05-04T09:00:00+01:00');
  return time;
}
