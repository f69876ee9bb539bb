/**
 * Whether each write that is in the log was answered, where the engines answered the service: an idempotency key that
 * can't store the answer is no reason not to (docs/api/conventions.md#idempotency-keys).
 */
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { EventLog } from '../engines/eventLog.js';
import type { Finding } from '../model/finding.js';
import { describe, type History } from '../model/history.js';

/** Writes of one step: an event of theirs says that they are done. */
const KINDS: ReadonlySet<string> = new Set(['purchase', 'redeem', 'unredeem', 'claim']);
const STREAMS = [giftStream(''), transactionStream('')];
/** Calls that an answer needs. */
export const CALLS_OF_ANSWERS = /^(events (append|read|end|last|reaches)|documents (get|find|count|reached).*@|keys )/;

/** @param wasSilent whether an engine may not have answered such a call in this span, ms since the epoch */
export function checkAnswered(
  history: History,
  { stored }: Pick<EventLog, 'stored'>,
  wasSilent: (sent: number, answered: number) => boolean,
): Finding[] {
  const refused = history.flatMap((one, index) => {
    const { operation, sent, answered, answer } = one;
    const id = answer?.status === 503 ? answer.headers['x-request-id'] : undefined;
    if (id === undefined || answered === undefined || !KINDS.has(operation.kind) || wasSilent(sent, answered))
      return [];
    return [{ id, line: describe(one, index) }];
  });
  if (refused.length === 0) return [];
  const done = new Set(
    stored
      .filter(({ stream }) => STREAMS.some((prefix) => stream.startsWith(prefix)))
      .map(({ metadata }) => (JSON.parse(metadata) as { readonly requestId?: string }).requestId),
  );
  return refused
    .filter(({ id }) => done.has(id))
    .map(({ line }) => ({
      rule: 'answered',
      text: `The log has what this request did, which was not answered.\n${line}`,
    }));
}
