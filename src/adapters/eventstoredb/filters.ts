import type { EventFilter } from '../../ports/eventStore.js';
import { matcherOf } from '../eventMatcher.js';

const SYSTEM_MARK = '$';

/** Stream with the log's id and its seal, which readers never see. */
export const LOG_STREAM = 'giftLog';

/** The server filters by types or streams, not both, so `matcher` filters again. */
export interface ServerFilter {
  readonly on: 'type' | 'stream';
  /**
   * A regular expression, since the server's prefix lists compare by language, which misses and adds names with
   * accents.
   */
  readonly regex: string;
}

export const ALL_OURS: ServerFilter = { on: 'stream', regex: '^[^$]' };

export function serverFilter({ types, streams }: EventFilter): ServerFilter | undefined {
  if (types?.length === 0 || streams?.length === 0) return undefined;
  if (types !== undefined) return { on: 'type', regex: `^(?:${types.map(literal).join('|')})\\z` };
  if (streams === undefined || streams.includes('')) return ALL_OURS;
  return { on: 'stream', regex: `^(?:${streams.map(literal).join('|')})` };
}

/** Whether readers see the events of a stream. */
export const isInLog = (stream: string): boolean => !stream.startsWith(SYSTEM_MARK) && stream !== LOG_STREAM;

export function matcher(filter: EventFilter): (stream: string, type: string) => boolean {
  const required = matcherOf(filter);
  return (stream, type) => isInLog(stream) && required(stream, type);
}

/** The text as a regular expression in .NET's syntax: all but plain letters and digits are escaped. */
function literal(text: string): string {
  let escaped = '';
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    escaped += /[A-Za-z0-9]/.test(text[index]!) ? text[index]! : `\\u${unit.toString(16).padStart(4, '0')}`;
  }
  return escaped;
}
