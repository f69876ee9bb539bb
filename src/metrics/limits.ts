import { counts } from './counts.js';
import type { Exposition } from './exposition.js';

/** Limits whose refusals are counted (docs/limits.md). */
const LIMITS = [
  'client',
  'user',
  'ops',
  'address',
  'unknown-gifts',
  'unknown-gifts-address',
  'erasures',
  'person-exports',
  'personal-reads',
  'support-replacements',
  'support-reversals',
  'webhook-endpoints',
] as const;

export type LimitName = (typeof LIMITS)[number];

export type LimitTally = (limit: LimitName) => void;

export function countLimited(show: Exposition): LimitTally {
  const limited = counts(1, LIMITS);
  show.counter(
    { name: 'gift_limited_requests_total', help: 'Requests refused by a limit (429), by the limit', labels: ['limit'] },
    limited.samples,
  );
  return (limit) => limited.add(limit);
}
