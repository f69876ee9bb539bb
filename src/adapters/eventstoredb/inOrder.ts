/**
 * Many appends whose order in the log matters: sent without waiting for each, over one call, which the server carries
 * out one after the other.
 */
import type { StreamAppend } from '../../ports/eventStore.js';
import type { Append } from './appends.js';
import type { EncodedEvent } from './records.js';

/**
 * Appends sent before their answers are waited for, and their events in bytes: what waits behind a slow disk must not
 * outlast the server's patience.
 */
const GROUP = { appends: 256, bytes: 4_000_000 };

/**
 * Each group waits for all answers to the one before, and nothing is tried again here, so that no late try gets behind
 * what came after it.
 * @throws what the first append that failed met, after all of its group are answered
 */
export async function appendGroups(
  appends: readonly StreamAppend[],
  encode: (append: StreamAppend) => readonly EncodedEvent[],
  send: Append,
): Promise<void> {
  for (let next = 0; next < appends.length;) {
    const answers: Promise<unknown>[] = [];
    for (let bytes = 0; next < appends.length && answers.length < GROUP.appends && bytes < GROUP.bytes; next++) {
      const one = appends[next]!;
      const events = encode(one);
      for (const { data, metadata } of events) bytes += data.length + metadata.length;
      answers.push(send(one.stream, events, one.expected));
    }
    const failed = (await Promise.allSettled(answers)).find((answer) => answer.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }
}
