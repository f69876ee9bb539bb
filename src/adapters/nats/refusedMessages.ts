/**
 * Messages that the server's permissions refuse. The client drops them, and reports that only in its status, so their
 * senders wait in vain.
 */

/** Milliseconds for which a refusal counts: senders repeat what is not answered sooner. */
const COUNTS_MS = 5_000;

export interface RefusedMessages {
  /** Notes a refused message. @returns whether that was not known */
  note(subject: string): boolean;
  /** A subject to which the server refuses messages at present. */
  refused(): string | undefined;
}

export function openRefusedMessages(): RefusedMessages {
  /** Times of the last refusals, by subject; replies go to a subject each, and count as one. */
  const last = new Map<string, number>();
  const counts = (at: number): boolean => performance.now() - at < COUNTS_MS;
  return {
    note(subject) {
      const key = subject.startsWith('_INBOX.') ? '_INBOX' : subject;
      const before = last.get(key);
      last.set(key, performance.now());
      return before === undefined || !counts(before);
    },
    refused() {
      for (const [subject, at] of last) {
        if (counts(at)) return subject;
        last.delete(subject);
      }
      return undefined;
    },
  };
}
