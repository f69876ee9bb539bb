/** Records of verifications of the whole log (docs/evidence.md#verifying-a-log). No decision depends on them. */
import type { DomainEvent } from './decider.js';

/** Stream of one log's verifications. A copied log also retains those of the log from which it was copied. */
export const verificationStream = (logId: string): string => `verifications-${logId}`;

/**
 * Somebody held the whole log against its signed heads, and it was what was signed. `events`: the number that were read;
 * `verified_heads`: of heads that a known key has signed. A verification with any other outcome appends nothing: a log
 * that was altered stays as it was found.
 */
export type LogVerified = DomainEvent<'LogVerified', { readonly events: number; readonly verified_heads: number }>;
