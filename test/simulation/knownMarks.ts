/** The marks that seeds must reach: one that none meets shows that the simulation has lost a fault, or work. */
import type { Counts } from './seedReport.js';

/** Marks by the number of short runs (`--minutes 0.1`) of which one meets them, with room to spare. */
const WITHIN: ReadonlyMap<number, readonly string[]> = new Map([
  [
    300,
    [
      'a charge is disputed',
      "a bank's proof of identity succeeds",
      'a checkpoint is beyond the log',
      'a dispute is reported twice',
      "a dispute's end is reported before its start",
      'a process ends its work before it stops',
      'a process starts',
      'a projector starts behind the log',
      'a redemption by a user who has moved is answered 403',
      'a restored log is resumed',
      'a verification ends: done',
      'a webhook is delivered twice',
      "an operator's abort is taken on",
      "an operator's rebuild is taken on",
      "an operator's verification is taken on",
      "a bank's report is answered 200",
      'a code is drawn from a pool that was just imported',
      'a code is generated before the import of a pool',
      'an engine is away for minutes',
      'an import of an erased user is refused',
      'days pass',
      'discard of parked work (group): 200',
      'discard of parked work (purchase): 200',
      'discard of parked work (refund): 200',
      'documents: a write has an unknown outcome and has happened',
      'documents: an abandoned call takes effect',
      'events: ConflictError',
      'log: an answer could not be kept for its idempotency key',
      'log: lease lost',
      'log: lease not released: the next holder waits until it runs out',
      'log: parked: it could not be done',
      'log: rebuilding ended',
      'money is given back by hand',
      'refund answered 200',
      'replace answered 200',
      'retry of parked work (group): 200',
      'retry of parked work (notification): 200',
      'retry of parked work (purchase): 200',
      'the key store is restored with the log',
      'the log is restored from a backup',
      'the read store is lost',
      'the read store is put back to an earlier state',
      'the key store is put back to an earlier state',
      'the log is put back under its own id',
      'two requests with one key at once',
    ],
  ],
  [
    1_000,
    [
      'a log is put back to before a published head',
      'a key store of before an erasure is put back',
      'a process freezes for longer than a lease',
      'disk: a power cut loses a part of a file, or all',
      'documents: a full disk refuses a write',
      'documents: a process crashes between a write and its answer',
      'events: a write has an unknown outcome and has happened',
      'events: an abandoned call takes effect',
      'log: checkpoint not saved',
      'money is given back by hand before a refund arrives',
      'provider: a write has an unknown outcome and has happened',
      'provider: an abandoned call takes effect',
      'receiver: a write has an unknown outcome and has happened',
      'receiver: an abandoned call takes effect',
    ],
  ],
  [
    10_000,
    [
      'a verification ends: failed',
      'events: a full disk refuses a write',
      'events: a process crashes between a write and its answer',
      'keys: a write has an unknown outcome and has happened',
      'log: projector: dropped a build that nobody uses',
      'refund answered 202',
    ],
  ],
]);

/** Marks that one of so many seeds should have met, and none has. */
export function missingMarks(met: Counts, seeds: number): string[] {
  return [...WITHIN]
    .filter(([within]) => within <= seeds)
    .flatMap(([, names]) => names.filter((name) => (met[name] ?? 0) === 0));
}
