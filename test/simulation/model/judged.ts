/** Assertions on histories made by hand: one check explains them, or finds exactly one thing wrong. */
import assert from 'node:assert/strict';
import type { Finding } from './finding.js';
import type { Observation } from './history.js';

export interface Judged {
  /** There is no finding. */
  explained(...history: readonly Observation[]): void;
  /** There is one finding, of at most 30 lines, which this matches. */
  wrong(history: readonly Observation[], what: RegExp): void;
}

export function judgedBy(check: (history: readonly Observation[]) => readonly Finding[]): Judged {
  return {
    explained: (...history) => assert.deepEqual(check(history), []),
    wrong(history, what) {
      const findings = check(history).map(({ rule, text }) => `${rule}: ${text}`);
      assert.equal(findings.length, 1, `${findings.length} findings:\n${findings.join('\n\n')}`);
      assert.match(findings[0] ?? '', what);
      assert.ok((findings[0] ?? '').split('\n').length <= 30, findings[0]);
    },
  };
}
