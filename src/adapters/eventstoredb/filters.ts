/** The port's filters, as the server judges them and as we do. */
import type { EventFilter } from '../../ports/eventStore.js';
import { matcherOf } from '../eventMatcher.js';

/** Streams with this mark at their beginning are the server's own. */
const SYSTEM_MARK = '$';

/** The stream that holds nothing but the log's id; it is no part of the log that readers see. */
export const LOG_STREAM = 'giftLog';

/** What the server is asked to send: it can judge by one of both only, so what comes is judged again. */
export interface ServerFilter {
  readonly on: 'type' | 'stream';
  /**
   * A regular expression in .NET's words. Its lists of prefixes compare by the language's rules, which miss and add
   * names with accents.
   */
  readonly regex: string;
}

/** Everything but the server's own streams. */
export const ALL_OURS: ServerFilter = { on: 'stream', regex: '^[^$]' };

/** The server's part of a filter; `undefined` when nothing can match. */
export function serverFilter({ types, streams }: EventFilter): ServerFilter | undefined {
  if (types?.length === 0 || streams?.length === 0) return undefined;
  if (types !== undefined) return { on: 'type', regex: `^(?:${types.map(literal).join('|')})\\z` };
  if (streams === undefined || streams.includes('')) return ALL_OURS;
  return { on: 'stream', regex: `^(?:${streams.map(literal).join('|')})` };
}

/** Whether an event is for readers with this filter. */
export function matcher(filter: EventFilter): (stream: string, type: string) => boolean {
  const wanted = matcherOf(filter);
  return (stream, type) => !stream.startsWith(SYSTEM_MARK) && stream !== LOG_STREAM && wanted(stream, type);
}

/** A text that stands for itself in a regular expression: all but plain letters and digits by their number. */
function literal(text: string): string {
  let escaped = '';
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    escaped += /[A-Za-z0-9]/.test(text[index]!) ? text[index]! : `\\u${unit.toString(16).padStart(4, '0')}`;
  }
  return escaped;
}
