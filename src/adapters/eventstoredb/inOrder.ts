import type { StreamAppend } from '../../ports/eventStore.js';
import type { Append } from './appends.js';
import type { EncodedEvent } from './records.js';

/**
 * Limits of a group, in unanswered appends and their bytes: behind a slow disk they must not outlast the server's
 * timeout.
 */
const GROUP = { appends: 256, bytes: 4_000_000 };

/**
 * Appends in groups: the server handles the appends of one call in sequence, and each group waits for all answers to
 * the one before. No append is retried, so that no late repeat follows later appends.
 * @throws the error of the first append that failed, after the whole group is answered
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
